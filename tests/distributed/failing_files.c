/* Loaded before libc (LD_PRELOAD): makes writes, fsyncs and renames beneath a folder fail at
 * intervals, like a failing disk.
 *
 * THALWEG_FAILING_FOLDER names the folder. THALWEG_FAILING_FILES names a file of four 32-bit
 * numbers that a test writes while the process runs: the interval between failing calls (0: none
 * fails), their errno, the number of calls seen, and the number of failed calls. Without both
 * variables it does nothing. Threads: any number may call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct control {
  _Atomic unsigned every, error, seen, failed;
} control;

static control* told;
static char folder[4096];

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("THALWEG_FAILING_FILES");
  const char* beneath = getenv("THALWEG_FAILING_FOLDER");
  if (!name || !beneath || strlen(beneath) >= sizeof folder) return;
  const int fd = open(name, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = mmap(NULL, sizeof(control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return;
  strcpy(folder, beneath);
  told = memory;
}

/* Returns true if the file of `fd` is beneath the folder. */
static int is_there(int fd) {
  char link[40], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path);
  const size_t length = strlen(folder);
  return n >= (ssize_t)length && !memcmp(path, folder, length) && ((size_t)n == length || path[length] == '/');
}

/* Returns true if this call must fail; sets errno. */
static int fails(int fd) {
  const unsigned every = told ? atomic_load(&told->every) : 0;
  if (!every || !is_there(fd)) return 0;
  if ((atomic_fetch_add(&told->seen, 1) + 1) % every) return 0;
  atomic_fetch_add(&told->failed, 1);
  errno = (int)atomic_load(&told->error);
  return 1;
}

/* The next definition of the name after this library. POSIX allows dlsym's result to be
 * converted in this way only. */
#define REAL(name, type, ...) \
  type (*real)(__VA_ARGS__);  \
  *(void**)&real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void* bytes, size_t n) {
  REAL(write, ssize_t, int, const void*, size_t);
  return fails(fd) ? -1 : real(fd, bytes, n);
}

ssize_t pwrite(int fd, const void* bytes, size_t n, off_t at) {
  REAL(pwrite, ssize_t, int, const void*, size_t, off_t);
  return fails(fd) ? -1 : real(fd, bytes, n, at);
}

ssize_t writev(int fd, const struct iovec* parts, int n) {
  REAL(writev, ssize_t, int, const struct iovec*, int);
  return fails(fd) ? -1 : real(fd, parts, n);
}

int fsync(int fd) {
  REAL(fsync, int, int);
  return fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
  REAL(fdatasync, int, int);
  return fails(fd) ? -1 : real(fd);
}

int renameat(int a, const char* from, int b, const char* to) {
  REAL(renameat, int, int, const char*, int, const char*);
  return fails(b) ? -1 : real(a, from, b, to);
}

int rename(const char* from, const char* to) {
  REAL(rename, int, const char*, const char*);
  char parent[4096];
  const char* end = strrchr(to, '/');
  int fd = -1;
  if (told && end && (size_t)(end - to) < sizeof parent) {
    memcpy(parent, to, (size_t)(end - to));
    parent[end - to] = 0;
    fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  const int bad = fd >= 0 && fails(fd);
  const int why = errno;
  if (fd >= 0) close(fd);
  errno = why;
  return bad ? -1 : real(from, to);
}
