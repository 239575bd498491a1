/* Files at shelf://PATH, beneath the folder that the plugin's setting `root` names. Written from
 * plugins/roles.md, the README of `thalweg new file_system` and the public headers alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "thalweg/plugin/plugin.h"

typedef struct shelf {
  int folder; /* descriptor */
} shelf;

static tw_status* failed(const tw_host* h) {
  const int e = errno;
  const uint32_t code = e == ENOENT                                       ? TW_NOT_FOUND
                        : e == EEXIST                                     ? TW_ALREADY_EXISTS
                        : e == EACCES || e == EPERM || e == EROFS         ? TW_PERMISSION_DENIED
                        : e == ENOSPC || e == EDQUOT || e == ENOMEM       ? TW_RESOURCE_EXHAUSTED
                        : e == EMFILE || e == ENFILE || e == EAGAIN       ? TW_UNAVAILABLE
                        : e == EIO                                        ? TW_DATA_LOSS
                        : e == EINVAL || e == ENAMETOOLONG || e == EISDIR ? TW_INVALID_ARGUMENT
                                                                          : TW_INTERNAL;
  const char* why = strerror(e);
  return tw_fail(h, code, why, strlen(why));
}

static const char kScheme[] = "shelf://";

/* Copies the path behind the scheme, without '/' at its begin and end; "." is the root itself. */
static tw_status* path_of(const tw_host* h, const char* path, uint64_t len, char to[PATH_MAX]) {
  const uint64_t skip = sizeof kScheme - 1;
  if (len < skip || memcmp(path, kScheme, skip) != 0) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("a path begins with shelf://"));
  path += skip;
  len -= skip;
  for (; len > 0 && *path == '/'; ++path) --len;
  while (len > 0 && path[len - 1] == '/') --len;
  if (len >= PATH_MAX || memchr(path, 0, len)) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("the path is too long, or has a zero byte"));
  memcpy(to, path, len);
  to[len] = 0;
  if (len == 0) strcpy(to, ".");
  return NULL;
}

/* Opens beneath the root: neither `..` nor a link leads out of it. */
static int open_beneath(const shelf* s, const char* path, int flags, mode_t mode) {
  struct open_how how = {
      .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .mode = mode, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  return (int)syscall(SYS_openat2, s->folder, path, &how, sizeof how);
}

/* Opens the folder of `path`, which is cut to it; *out_name: the last part of the path. */
static tw_status* folder_of(const tw_host* h, const shelf* s, char path[PATH_MAX], const char** out_name, int* out_fd) {
  char* slash = strrchr(path, '/');
  *out_name = slash ? slash + 1 : path;
  if (!strcmp(*out_name, ".") || !strcmp(*out_name, "..")) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("this names no file"));
  if (slash) *slash = 0;
  *out_fd = open_beneath(s, slash ? path : ".", O_RDONLY | O_DIRECTORY, 0);
  return *out_fd < 0 ? failed(h) : NULL;
}

static tw_status* opened(const tw_host* h, const shelf* s, const tw_file_request* r, int flags, void** out_file) {
  char path[PATH_MAX];
  TW_TRY(path_of(h, r->path, r->path_len, path));
  int* file = malloc(sizeof *file);
  if (!file) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  *file = open_beneath(s, path, flags, flags & O_CREAT ? 0666 : 0);
  if (*file < 0) {
    tw_status* why = failed(h);
    free(file);
    return why;
  }
  *out_file = file;
  return NULL;
}

static tw_status* create(const tw_host* h, void* user, const tw_file_request* r, void** out_file) {
  return opened(h, user, r, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, out_file);
}

static tw_status* append(const tw_host* h, void* file, const void* bytes, uint64_t n) {
  const char* from = bytes;
  while (n > 0) {
    const ssize_t put = write(*(int*)file, from, n < (1u << 30) ? n : 1u << 30);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed(h);
    from += put;
    n -= (uint64_t)put;
  }
  return NULL;
}

static tw_status* sync_file(const tw_host* h, void* file) { return fsync(*(int*)file) == 0 ? NULL : failed(h); }

static tw_status* close_file(const tw_host* h, void* file) {
  const int fd = *(int*)file;
  free(file);
  return close(fd) == 0 ? NULL : failed(h);
}

static tw_status* open_file(const tw_host* h, void* user, const tw_file_request* r, void** out_file, uint64_t* out_bytes) {
  void* file;
  TW_TRY(opened(h, user, r, O_RDONLY, &file));
  struct stat st;
  if (fstat(*(int*)file, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(*(int*)file);
    free(file);
    return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("it is no regular file"));
  }
  *out_file = file;
  *out_bytes = (uint64_t)st.st_size;
  return NULL;
}

static tw_status* read_file(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n) {
  char* at = to;
  if (offset > INT64_MAX || n > INT64_MAX - offset) return tw_fail(h, TW_OUT_OF_RANGE, TW_S("the file ends before"));
  while (n > 0) {
    const ssize_t got = pread(*(int*)file, at, n < (1u << 30) ? n : 1u << 30, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(h);
    if (got == 0) return tw_fail(h, TW_OUT_OF_RANGE, TW_S("the file ends before"));
    at += got;
    offset += (uint64_t)got;
    n -= (uint64_t)got;
  }
  return NULL;
}

static void release(const tw_host* h, void* file) {
  (void)h;
  close(*(int*)file);
  free(file);
}

static tw_status* rename_file(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  char old_path[PATH_MAX], new_path[PATH_MAX];
  const char *old_name, *new_name;
  int old_folder, new_folder;
  TW_TRY(path_of(h, from, from_len, old_path));
  TW_TRY(path_of(h, to, to_len, new_path));
  TW_TRY(folder_of(h, user, old_path, &old_name, &old_folder));
  tw_status* why = folder_of(h, user, new_path, &new_name, &new_folder);
  if (!why) {
    why = renameat(old_folder, old_name, new_folder, new_name) == 0 ? NULL : failed(h);
    close(new_folder);
  }
  close(old_folder);
  return why;
}

static tw_status* unlinked(const tw_host* h, const shelf* s, const char* path, uint64_t len, int flags) {
  char text[PATH_MAX];
  const char* name;
  int folder;
  TW_TRY(path_of(h, path, len, text));
  TW_TRY(folder_of(h, s, text, &name, &folder));
  tw_status* why = unlinkat(folder, name, flags) == 0 ? NULL : failed(h);
  close(folder);
  return why;
}

static tw_status* remove_file(const tw_host* h, void* user, const char* path, uint64_t len) { return unlinked(h, user, path, len, 0); }
static tw_status* remove_folder(const tw_host* h, void* user, const char* path, uint64_t len) {
  return unlinked(h, user, path, len, AT_REMOVEDIR);
}

static tw_status* make_folder(const tw_host* h, void* user, const char* path, uint64_t len) {
  char text[PATH_MAX];
  const char* name;
  int folder;
  TW_TRY(path_of(h, path, len, text));
  if (!strcmp(text, ".")) return NULL;
  TW_TRY(folder_of(h, user, text, &name, &folder));
  tw_status* why = mkdirat(folder, name, 0777) == 0 || errno == EEXIST ? NULL : failed(h);
  close(folder);
  return why;
}

static tw_status* list(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  char path[PATH_MAX];
  TW_TRY(path_of(h, folder, len, path));
  const int fd = open_beneath(user, path, O_RDONLY | O_DIRECTORY, 0);
  DIR* d = fd < 0 ? NULL : fdopendir(fd);
  if (!d) {
    tw_status* why = failed(h);
    if (fd >= 0) close(fd);
    return why;
  }
  tw_status* why = NULL;
  errno = 0;
  for (struct dirent* e; !why && (e = readdir(d)) != NULL; errno = 0) {
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) why = to->put(to, e->d_name, strlen(e->d_name) + 1);
  }
  if (!why && errno) why = failed(h);
  closedir(d);
  return why;
}

static tw_status* sync_folder_of(const tw_host* h, void* user, const char* path, uint64_t len) {
  char text[PATH_MAX];
  const char* name;
  int folder;
  TW_TRY(path_of(h, path, len, text));
  TW_TRY(folder_of(h, user, text, &name, &folder));
  tw_status* why = fsync(folder) == 0 ? NULL : failed(h);
  close(folder);
  return why;
}

/* ---- The plugin ---- */

typedef struct text {
  char bytes[4096];
  uint64_t len;
} text;

static tw_status* put(tw_sink* s, const void* bytes, uint64_t len) {
  text* t = s->user;
  if (len >= sizeof t->bytes - t->len) len = sizeof t->bytes - t->len - 1;
  memcpy(t->bytes + t->len, bytes, len);
  t->len += len;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  text root = {"/tmp", 0};
  tw_sink to = {TW_SIZED(tw_sink), &root, put};
  tw_status* unset = h->setting(h, TW_S("root"), &to);
  if (unset && h->status->code(unset) != TW_NOT_FOUND) return unset;
  h->status->release(unset);
  root.bytes[root.len ? root.len : strlen(root.bytes)] = 0;
  shelf* s = malloc(sizeof *s);
  if (!s) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  s->folder = open(root.bytes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const tw_file_system_def d = {TW_SIZED(tw_file_system_def),
                                TW_S("shelf"),
                                s,
                                create,
                                append,
                                sync_file,
                                close_file,
                                open_file,
                                read_file,
                                release,
                                rename_file,
                                remove_file,
                                list,
                                make_folder,
                                remove_folder,
                                sync_folder_of,
                                NULL,
                                NULL,
                                NULL};
  tw_status* why = s->folder < 0 ? failed(h) : tw_add_file_system(r, &d);
  if (why) {
    if (s->folder >= 0) close(s->folder);
    free(s);
    return why;
  }
  *out_instance = s;
  return NULL;
}

static void shutdown_shelf(const tw_host* h, void* instance) {
  (void)h;
  close(((shelf*)instance)->folder);
  free(instance);
}

TW_PLUGIN_WITH("org.example.shelf", "1.0", init, shutdown_shelf)
