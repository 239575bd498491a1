/* A complete membership service in a shared folder; `file` addresses are folders. Needs only the public headers:
 *
 *     cc -shared -fPIC -I<prefix>/include folder_membership.c -o libfolder_membership.so
 *
 * A cluster is one file in the folder, a log of changes. To change the store, a member locks the log,
 * reads the new records and appends its own. A revision is the position in the file where a record
 * ends, so it grows with every change. A record is valid until a later record of the same key. A
 * watch reads the log from its beginning and skips records that are no longer valid. The log is never
 * shortened: a cluster lives as long as a job.
 *
 * A member's lease is a file that the member touches. A member that finds a lease that is too old by
 * the folder's clock removes the keys of the lease's owner. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "thalweg/plugin/plugin.h"

enum { kMost = 1 << 26 /* bytes of a key or value */, kEvery = 10000000 /* nanoseconds between looks */ };

typedef struct record {
  uint64_t owner, removed, key_len, bytes; /* owner: the member whose end removes the key; 0: none; then key and value */
} record;
typedef struct entry { /* of an existing key */
  struct entry* next;
  uint64_t revision, owner, bytes, key_len;
  char key[]; /* then the value */
} entry;
typedef struct watch {
  struct watch* next;
  struct member* m;
  uint64_t at, from; /* at: how far it has read; from: before this, it skips invalid records */
  bool busy, over;
  void (*change)(void* arg, const tw_change* c);
  void* arg;
  uint64_t len;
  char prefix[];
} watch;
typedef struct member {
  const tw_host* h;
  tw_member_config config;
  char folder[400], path[600], lease[700];
  int log;
  bool stop, lost;
  uint64_t id, end; /* how far the log has been read */
  int64_t renewed;
  entry* all;
  watch* watches;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t changed;
} member;

static tw_status* failure(const tw_host* h, uint32_t code, const char* path, const char* what) {
  char text[800];
  snprintf(text, sizeof text, "file membership: '%s': %s", path, what);
  return h->status->make(h, code, text, strlen(text), NULL);
}
static entry** find(member* m, const void* key, uint64_t n) {
  entry** at = &m->all;
  while (*at && ((*at)->key_len != n || memcmp((*at)->key, key, n))) at = &(*at)->next;
  return at;
}
static void drop_entry(entry** at) {
  entry* old = *at;
  if (old) *at = old->next;
  free(old);
}
/* Reads the record at `at`. Returns where it ends, or 0 if there is no complete record. */
static uint64_t read_record(const member* m, uint64_t at, record* r, char** out) {
  struct stat st;
  *out = NULL;
  if (fstat(m->log, &st) || pread(m->log, r, sizeof *r, (off_t)at) != sizeof *r || r->key_len > kMost || r->bytes > kMost) return 0;
  const uint64_t n = r->key_len + r->bytes, end = at + sizeof *r + n;
  if ((uint64_t)st.st_size < end || !(*out = malloc(n + 1))) return 0;
  if (pread(m->log, *out, n, (off_t)(at + sizeof *r)) == (ssize_t)n) return end;
  free(*out);
  return *out = NULL, 0;
}
/* Reads the new records of the log. */
static void catch_up(member* m) {
  record r;
  char* bytes;
  for (uint64_t end; (end = read_record(m, m->end, &r, &bytes)); free(bytes)) {
    entry* e = r.removed || !r.key_len ? NULL : malloc(sizeof *e + r.key_len + r.bytes);
    m->end = end;
    drop_entry(find(m, bytes, r.key_len));
    if (!e) continue;
    *e = (entry){m->all, end, r.owner, r.bytes, r.key_len};
    memcpy(e->key, bytes, r.key_len + r.bytes);
    m->all = e;
  }
}
static void leave_log(member* m) {
  flock(m->log, LOCK_UN);
  pthread_mutex_unlock(&m->mu);
}
/* Locks the log until leave_log. Cuts off a record that a writer left incomplete when it died. */
static tw_status* enter_log(member* m, int64_t deadline) {
  pthread_mutex_lock(&m->mu);
  while (flock(m->log, LOCK_EX | LOCK_NB)) {
    if (errno == EWOULDBLOCK && (!deadline || m->h->run->now(m->h) < deadline)) {
      nanosleep(&(struct timespec){0, 1000000}, NULL);
    } else if (errno != EINTR) {
      pthread_mutex_unlock(&m->mu);
      return failure(m->h, TW_DEADLINE_EXCEEDED, m->path, "another member kept the lock for too long");
    }
  }
  catch_up(m);
  return ftruncate(m->log, (off_t)m->end) ? leave_log(m), failure(m->h, TW_UNAVAILABLE, m->path, strerror(errno)) : NULL;
}
static tw_status* append(member* m, record r, const void* key, const void* value) {
  const struct iovec v[] = {{&r, sizeof r}, {(void*)key, r.key_len}, {(void*)value, r.bytes}};
  const uint64_t end = m->end + sizeof r + r.key_len + r.bytes;
  if (r.key_len > kMost || r.bytes > kMost) return failure(m->h, TW_INVALID_ARGUMENT, m->path, "keys and values have at most 64 MiB");
  if (writev(m->log, v, 3) == (ssize_t)(end - m->end)) catch_up(m);
  return m->end == end ? NULL : failure(m->h, TW_RESOURCE_EXHAUSTED, m->path, strerror(errno)); /* the next one cuts it off */
}
static tw_status* change(member* m, record r, const void* key, const void* value, uint64_t expected, int64_t deadline,
                         uint64_t* out_revision) {
  TW_TRY(enter_log(m, deadline));
  const entry* e = *find(m, key, r.key_len);
  tw_status* why = NULL;
  if (expected != UINT64_MAX && expected != (e ? e->revision : 0))
    why = failure(m->h, TW_ABORTED, m->path, "the key has another revision; get it again");
  else if (e || !r.removed)
    why = append(m, r, key, value);
  if (!why && out_revision) *out_revision = m->end;
  leave_log(m);
  return why;
}
/* Removes the keys of a member that left or whose lease ran out. */
static void end_member(member* m, uint64_t id, const char* lease) {
  tw_status* why = enter_log(m, m->h->run->now(m->h) + 5000000000);
  if (why) return m->h->status->release(why);
  for (entry *e = m->all, *next; e && !why; e = next) {
    next = e->next;
    if (e->owner != id) continue;
    char* key = malloc(e->key_len);
    const record r = {.removed = 1, .key_len = e->key_len};
    if (key) memcpy(key, e->key, e->key_len), why = append(m, r, key, NULL);
    free(key);
  }
  if (!why) unlink(lease);
  m->h->status->release(why);
  leave_log(m);
}

static int64_t age(const struct stat* now, const struct stat* then) {
  return (now->st_mtim.tv_sec - then->st_mtim.tv_sec) * 1000000000 + now->st_mtim.tv_nsec - then->st_mtim.tv_nsec;
}
/* Renews our lease, and checks the leases of the other members. */
static void renew(member* m) {
  const int64_t now = m->h->run->now(m->h);
  struct stat mine, other;
  if (m->lost || now - m->renewed < m->config.lease / 4) return;
  if (!utimensat(AT_FDCWD, m->lease, NULL, 0) && !stat(m->lease, &mine)) {
    m->renewed = now;
  } else if (errno == ENOENT || now - m->renewed > m->config.lease) {
    tw_status* why = failure(m->h, TW_UNAVAILABLE, m->lease, "the lease could not be renewed in time");
    m->lost = true;
    if (m->config.lost) m->config.lost(m->config.arg, why);
    return m->h->status->release(why);
  }
  DIR* d = m->renewed == now ? opendir(m->folder) : NULL;
  const size_t before = strlen(m->path) - strlen(m->folder) - 1; /* of the cluster's name */
  for (struct dirent* f; d && (f = readdir(d));) {
    char path[700], *end;
    if (strncmp(f->d_name, m->path + strlen(m->folder) + 1, before) || strncmp(f->d_name + before, ".lease.", 7)) continue;
    const uint64_t id = strtoull(f->d_name + before + 7, &end, 10);
    snprintf(path, sizeof path, "%s/%s", m->folder, f->d_name);
    if (!*end && id != m->id && !stat(path, &other) && age(&mine, &other) > m->config.lease) end_member(m, id, path);
  }
  if (d) closedir(d);
}
/* Calls back one watch with the new records. mu is held, except during a callback. */
static void tell(member* m, watch* w) {
  record r;
  char* bytes;
  for (uint64_t end; !w->over && w->at < m->end && (end = read_record(m, w->at, &r, &bytes)); free(bytes)) {
    const entry* e = *find(m, bytes, r.key_len);
    const bool stands = end > w->from || (!r.removed && e && e->revision == end);
    w->at = end;
    if (!r.key_len || r.key_len < w->len || memcmp(bytes, w->prefix, w->len) || !stands) continue;
    const tw_change c = {TW_SIZED(tw_change), bytes, r.key_len, r.removed ? NULL : bytes + r.key_len, r.bytes, end};
    w->busy = true;
    pthread_mutex_unlock(&m->mu);
    w->change(w->arg, &c);
    pthread_mutex_lock(&m->mu);
    w->busy = false;
    pthread_cond_broadcast(&m->changed);
  }
}
static void* look(void* arg) {
  member* m = arg;
  for (bool stop = false; !stop; nanosleep(&(struct timespec){0, kEvery}, NULL)) {
    tw_status* why = enter_log(m, m->h->run->now(m->h) + 1000000000);
    if (!why) flock(m->log, LOCK_UN);
    if (why) pthread_mutex_lock(&m->mu);
    for (watch* w = m->watches; w; w = w->next) tell(m, w);
    stop = m->stop;
    pthread_mutex_unlock(&m->mu);
    m->h->status->release(why);
    if (!stop) renew(m);
  }
  return NULL;
}

static void free_member(member* m) {
  while (m->all) drop_entry(&m->all);
  for (watch *w = m->watches, *next; w; w = next) next = w->next, free(w);
  if (m->log >= 0) close(m->log);
  pthread_mutex_destroy(&m->mu), pthread_cond_destroy(&m->changed);
  free(m);
}
static tw_status* start(member* m, int64_t deadline) {
  const tw_host* h = m->h;
  sigset_t all, before;
  if ((m->log = open(m->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
    return failure(h, TW_UNAVAILABLE, m->path, strerror(errno));
  TW_TRY(enter_log(m, deadline));
  tw_status* why = append(m, (record){.removed = 1}, NULL, NULL); /* an empty record, whose end is a unique number */
  leave_log(m);
  if (why) return why;
  m->id = m->end, m->renewed = h->run->now(h);
  snprintf(m->lease, sizeof m->lease, "%s.lease.%llu", m->path, (unsigned long long)m->id);
  const int fd = open(m->lease, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failure(h, TW_UNAVAILABLE, m->lease, strerror(errno));
  close(fd);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes no signals */
  const int error = pthread_create(&m->thread, NULL, look, m);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error) unlink(m->lease);
  return error ? failure(h, TW_RESOURCE_EXHAUSTED, m->path, strerror(error)) : NULL;
}
static tw_status* join(const tw_host* h, void* user, const tw_member_config* c, int64_t deadline, void** out_member) {
  (void)user;
  if (!c->address_len || c->address_len > 300 || !c->cluster_len || c->cluster_len > 100 || memchr(c->cluster, '/', c->cluster_len) ||
      c->lease <= 0)
    return failure(h, TW_INVALID_ARGUMENT, "join", "it needs the path of a folder, the name of a cluster (no '/'), and a lease");
  member* m = calloc(1, sizeof *m);
  if (!m) return failure(h, TW_RESOURCE_EXHAUSTED, "join", "no memory");
  m->h = h, m->config = *c, m->log = -1;
  snprintf(m->folder, sizeof m->folder, "%.*s", (int)c->address_len, c->address);
  snprintf(m->path, sizeof m->path, "%s/%.*s", m->folder, (int)c->cluster_len, c->cluster);
  pthread_mutex_init(&m->mu, NULL), pthread_cond_init(&m->changed, NULL);
  tw_status* why = start(m, deadline);
  if (why)
    free_member(m);
  else
    *out_member = m;
  return why;
}
static void leave(const tw_host* h, void* self) {
  member* m = self;
  (void)h;
  pthread_mutex_lock(&m->mu);
  m->stop = true;
  for (watch* w = m->watches; w; w = w->next) w->over = true;
  pthread_mutex_unlock(&m->mu);
  pthread_join(m->thread, NULL);
  if (!m->lost) end_member(m, m->id, m->lease);
  free_member(m);
}
static tw_status* put(const tw_host* h, void* self, const tw_put* p, uint64_t* out_revision) {
  member* m = self;
  if (!p->key_len) return failure(h, TW_INVALID_ARGUMENT, m->path, "a key has at least one byte");
  return change(m, (record){p->mine ? m->id : 0, 0, p->key_len, p->bytes}, p->key, p->value, p->expected, p->deadline, out_revision);
}
static tw_status* get(const tw_host* h, void* self, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to,
                      uint64_t* out_revision) {
  member* m = self;
  TW_TRY(enter_log(m, deadline));
  const entry* e = *find(m, key, key_len);
  tw_status* why = e ? to->put(to, e->key + e->key_len, e->bytes) : failure(h, TW_NOT_FOUND, m->path, "there is no such key");
  if (!why) *out_revision = e->revision;
  leave_log(m);
  return why;
}
static tw_status* remove_key(const tw_host* h, void* self, const char* key, uint64_t key_len, uint64_t expected, int64_t deadline) {
  (void)h;
  return change(self, (record){.removed = 1, .key_len = key_len}, key, NULL, expected, deadline, NULL);
}
static tw_status* start_watch(const tw_host* h, void* self, const char* prefix, uint64_t len, void (*told)(void* arg, const tw_change* c),
                              void* arg, void** out_watch) {
  member* m = self;
  watch* w = calloc(1, sizeof *w + len);
  if (!w) return failure(h, TW_RESOURCE_EXHAUSTED, m->path, "no memory for a watch");
  w->m = m, w->change = told, w->arg = arg, w->len = len;
  memcpy(w->prefix, prefix, len);
  pthread_mutex_lock(&m->mu);
  w->from = m->end, w->next = m->watches, m->watches = w;
  pthread_mutex_unlock(&m->mu);
  *out_watch = w;
  return NULL;
}
static void unwatch(const tw_host* h, void* self) {
  watch *w = self, **at = &w->m->watches;
  member* m = w->m;
  (void)h;
  pthread_mutex_lock(&m->mu);
  w->over = true;
  while (w->busy) pthread_cond_wait(&m->changed, &m->mu);
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  pthread_mutex_unlock(&m->mu);
  free(w);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_membership_def d = {TW_SIZED(tw_membership_def), TW_S("file"), NULL, join, leave, put, get, remove_key, start_watch, unwatch};
  (void)h, (void)out_instance;
  return tw_add_membership(r, &d);
}
TW_PLUGIN("org.example.file", "1.0", init)
