/* The speed of the disk and of the loader. Writes the bytes of the checkpoint row beside the
 * existing file, syncs and renames them over it, and reads them back, by plain calls of 4 MB.
 * Also opens a shared library. Each reply is one time. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include "checkpoint_data.h"
#include "machine_worker.h"

enum { kPiece = 4 << 20 };

static void path_in(const char* folder, char* out, size_t room) { snprintf(out, room, "%s/raw", folder); }

/* argument: a folder. */
void answer_raw_write(const char* argument) {
  static float* parts[kCheckpointParts];
  for (int i = 0; i < kCheckpointParts; ++i) {
    if (parts[i]) continue;
    parts[i] = malloc(kCheckpointPartBytes);
    if (!parts[i]) worker_fail("out of memory");
    checkpoint_fill(parts[i], i);
  }
  char path[4000], final[4000];
  snprintf(path, sizeof path, "%s/raw.new", argument);
  path_in(argument, final, sizeof final);
  const double begin = worker_now_ns();
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0) worker_fail("cannot make '%s'", path);
  for (int i = 0; i < kCheckpointParts; ++i) {
    for (int at = 0; at < kCheckpointPartBytes; at += kPiece) {
      if (write(file, (char*)parts[i] + at, kPiece) != kPiece) worker_fail("cannot write '%s'", path);
    }
  }
  if (fsync(file) || close(file) || rename(path, final)) worker_fail("cannot sync '%s'", path);
  worker_reply("%.9g", worker_now_ns() - begin);
}

/* Reads into fresh memory, as any reader of a checkpoint does. */
void answer_raw_read(const char* argument) {
  char path[4096];
  path_in(argument, path, sizeof path);
  const double begin = worker_now_ns();
  const int file = open(path, O_RDONLY);
  if (file < 0) worker_fail("cannot open '%s'", path);
  char* parts[kCheckpointParts];
  for (int i = 0; i < kCheckpointParts; ++i) {
    parts[i] = mmap(NULL, kCheckpointPartBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (parts[i] == MAP_FAILED) worker_fail("out of memory");
    for (int at = 0; at < kCheckpointPartBytes; at += kPiece) {
      if (read(file, parts[i] + at, kPiece) != kPiece) worker_fail("'%s' is too short", path);
    }
  }
  const double taken = worker_now_ns() - begin;
  close(file);
  for (int i = 0; i < kCheckpointParts; ++i) munmap(parts[i], kCheckpointPartBytes);
  worker_reply("%.9g", taken);
}

static void open_library(void* user) {
  void* library = dlopen(user, RTLD_NOW | RTLD_LOCAL);
  if (!library) worker_fail("%s", dlerror());
  dlclose(library);
}

/* argument: a shared library. */
void answer_dlopen(const char* argument) { worker_reply_time(open_library, (void*)argument, 9, 1, 1); }
