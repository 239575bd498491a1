/* A file system in memory: a list of files, each a block that readers share. Folders need not be
 * created. */
#ifndef MUTANTS_TOY_FILES_H
#define MUTANTS_TOY_FILES_H
#include <pthread.h>

#include "toy.h"

typedef struct toy_bytes {
  int refs;
  uint64_t size, room;
  char* data;
} toy_bytes;

typedef struct toy_file {
  struct toy_file* next;
  char* path;
  toy_bytes* bytes;
} toy_file;

typedef struct toy_disk {
  pthread_mutex_t mu;
  toy_file* files;
} toy_disk;
static toy_disk disk = {PTHREAD_MUTEX_INITIALIZER, NULL};

static UNUSED void toy_unref(toy_bytes* b) {
  if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL)) return;
  free(b->data);
  free(b);
}

/* Returns the file's place in the list, or the end of the list. REQUIRES: the lock. */
static UNUSED toy_file** toy_find(const char* path, uint64_t len) {
  toy_file** at = &disk.files;
  while (*at && (strlen((*at)->path) != len || memcmp((*at)->path, path, len) != 0)) at = &(*at)->next;
  return at;
}

static UNUSED void toy_unlink(toy_file** at) {
  toy_file* gone = *at;
  *at = gone->next;
  toy_unref(gone->bytes);
  free(gone->path);
  free(gone);
}

static UNUSED tw_status* toy_create(const tw_host* h, void* user, const tw_file_request* r, void** out_file) {
  tw_status* s = NULL;
  (void)user;
  pthread_mutex_lock(&disk.mu);
  toy_file** at = toy_find(r->path, r->path_len);
  if (*at) {
    s = tw_fail(h, TW_ALREADY_EXISTS, TW_S("the name is taken"));
  } else {
    toy_file* f = calloc(1, sizeof *f);
    f->path = calloc(1, r->path_len + 1);
    memcpy(f->path, r->path, r->path_len);
    f->bytes = calloc(1, sizeof *f->bytes);
    f->bytes->refs = 2;
    *at = f;
    *out_file = f->bytes;
  }
  pthread_mutex_unlock(&disk.mu);
  return s;
}

static UNUSED tw_status* toy_append(const tw_host* h, void* file, const void* bytes, uint64_t n) {
  toy_bytes* b = file;
  if (b->size + n > b->room) {
    char* more = realloc(b->data, 2 * (b->size + n));
    if (!more) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("the disk is full"));
    b->data = more;
    b->room = 2 * (b->size + n);
  }
  if (n) memcpy(b->data + b->size, bytes, n);
  b->size += n;
  return NULL;
}

static UNUSED tw_status* toy_sync(const tw_host* h, void* file) {
  (void)h, (void)file;
  return NULL;
}

static UNUSED tw_status* toy_close(const tw_host* h, void* file) {
  (void)h;
  toy_unref(file);
  return NULL;
}

static UNUSED tw_status* toy_open(const tw_host* h, void* user, const tw_file_request* r, void** out_file, uint64_t* out_bytes) {
  tw_status* s = NULL;
  (void)user;
  pthread_mutex_lock(&disk.mu);
  toy_file* f = *toy_find(r->path, r->path_len);
  if (f) {
    __atomic_add_fetch(&f->bytes->refs, 1, __ATOMIC_RELAXED);
    *out_file = f->bytes;
    *out_bytes = f->bytes->size;
  } else {
    s = tw_fail(h, TW_NOT_FOUND, TW_S("there is no such file"));
  }
  pthread_mutex_unlock(&disk.mu);
  return s;
}

static UNUSED tw_status* toy_read_file(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n) {
  const toy_bytes* b = file;
  if (offset > b->size || n > b->size - offset) return tw_fail(h, TW_OUT_OF_RANGE, TW_S("the file ends before"));
  if (n) memcpy(to, b->data + offset, n);
  return NULL;
}

static UNUSED void toy_release_file(const tw_host* h, void* file) {
  (void)h;
  toy_unref(file);
}

static UNUSED tw_status* toy_rename(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  tw_status* s = NULL;
  (void)user;
  pthread_mutex_lock(&disk.mu);
  if (!*toy_find(from, from_len)) {
    s = tw_fail(h, TW_NOT_FOUND, TW_S("there is no such file"));
  } else {
    toy_file** old = toy_find(to, to_len);
    if (*old) toy_unlink(old);
    toy_file* f = *toy_find(from, from_len);
    char* path = calloc(1, to_len + 1);
    memcpy(path, to, to_len);
    free(f->path);
    f->path = path;
  }
  pthread_mutex_unlock(&disk.mu);
  return s;
}

static UNUSED tw_status* toy_remove(const tw_host* h, void* user, const char* path, uint64_t len) {
  tw_status* s = NULL;
  (void)user;
  pthread_mutex_lock(&disk.mu);
  toy_file** at = toy_find(path, len);
  if (*at) {
    toy_unlink(at);
  } else {
    s = tw_fail(h, TW_NOT_FOUND, TW_S("there is no such file"));
  }
  pthread_mutex_unlock(&disk.mu);
  return s;
}

static UNUSED tw_status* toy_list(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  tw_status* s = NULL;
  (void)h, (void)user;
  pthread_mutex_lock(&disk.mu);
  for (const toy_file* f = disk.files; f && !s; f = f->next) {
    if (strlen(f->path) <= len + 1 || memcmp(f->path, folder, len) != 0 || f->path[len] != '/') continue;
    s = to->put(to, f->path + len + 1, strlen(f->path + len + 1) + 1);
  }
  pthread_mutex_unlock(&disk.mu);
  return s;
}

static UNUSED tw_file_system_def toy_files(void) {
  const tw_file_system_def d = {TW_SIZED(tw_file_system_def),
                                TW_S("toy"),
                                NULL,
                                toy_create,
                                toy_append,
                                toy_sync,
                                toy_close,
                                toy_open,
                                toy_read_file,
                                toy_release_file,
                                toy_rename,
                                toy_remove,
                                toy_list};
  return d;
}
#endif
