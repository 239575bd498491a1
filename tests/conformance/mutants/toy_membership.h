/* Membership within one process: a list of keys with revisions, and watches that are notified at
 * once, under the lock. */
#ifndef MUTANTS_TOY_MEMBERSHIP_H
#define MUTANTS_TOY_MEMBERSHIP_H
#include <pthread.h>

#include "toy.h"

typedef struct toy_member {
  char* cluster;
} toy_member;

typedef struct toy_entry {
  struct toy_entry* next;
  char *cluster, *key, *value;
  uint64_t key_len, bytes, revision;
  const toy_member* owner; /* the key ends when this member leaves; NULL: never */
} toy_entry;

typedef struct toy_watch {
  struct toy_watch* next;
  char *cluster, *prefix;
  uint64_t prefix_len;
  void (*change)(void* arg, const tw_change* c);
  void* arg;
} toy_watch;

static struct {
  pthread_mutex_t mu;
  toy_entry* entries; /* sorted by revision */
  toy_watch* watches;
  uint64_t revision;
} store = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL, 0};

static UNUSED char* toy_text(const void* bytes, uint64_t n) {
  char* p = calloc(1, n + 1);
  if (n) memcpy(p, bytes, n);
  return p;
}

static UNUSED toy_entry** toy_entry_at(const toy_member* m, const char* key, uint64_t len) {
  toy_entry** at = &store.entries;
  while (*at && (strcmp((*at)->cluster, m->cluster) != 0 || (*at)->key_len != len || memcmp((*at)->key, key, len) != 0)) at = &(*at)->next;
  return at;
}

static UNUSED void toy_tell(const toy_watch* w, const toy_entry* e, uint64_t revision, int removed) {
  const tw_change c = {TW_SIZED(tw_change), e->key, e->key_len, removed ? NULL : e->value, removed ? 0 : e->bytes, revision};
  if (strcmp(w->cluster, e->cluster) == 0 && e->key_len >= w->prefix_len && memcmp(e->key, w->prefix, w->prefix_len) == 0)
    w->change(w->arg, &c);
}
static UNUSED void toy_tell_all(const toy_entry* e, uint64_t revision, int removed) {
  for (const toy_watch* w = store.watches; w; w = w->next) toy_tell(w, e, revision, removed);
}

static UNUSED void toy_erase(toy_entry** at) {
  toy_entry* e = *at;
  *at = e->next;
  toy_tell_all(e, ++store.revision, 1);
  free(e->cluster);
  free(e->key);
  free(e->value);
  free(e);
}

static UNUSED tw_status* toy_member_join(const tw_host* h, void* user, const tw_member_config* c, int64_t deadline, void** out_member) {
  toy_member* m = calloc(1, sizeof *m);
  (void)h, (void)user, (void)deadline;
  m->cluster = toy_text(c->cluster, c->cluster_len);
  *out_member = m;
  return NULL;
}

static UNUSED void toy_member_leave(const tw_host* h, void* member) {
  toy_member* m = member;
  (void)h;
  pthread_mutex_lock(&store.mu);
  for (toy_entry** at = &store.entries; *at;) {
    if ((*at)->owner == m) {
      toy_erase(at);
    } else {
      at = &(*at)->next;
    }
  }
  pthread_mutex_unlock(&store.mu);
  free(m->cluster);
  free(m);
}

static UNUSED tw_status* toy_expected(const tw_host* h, const toy_entry* e, uint64_t expected) {
  if (expected == UINT64_MAX || expected == (e ? e->revision : 0)) return NULL;
  return tw_fail(h, TW_ABORTED, TW_S("the key has another revision"));
}

static UNUSED tw_status* toy_put(const tw_host* h, void* member, const tw_put* p, uint64_t* out_revision) {
  toy_member* m = member;
  pthread_mutex_lock(&store.mu);
  toy_entry **at = toy_entry_at(m, p->key, p->key_len), *e = *at;
  tw_status* s = toy_expected(h, e, p->expected);
  if (!s) {
    if (e) {
      *at = e->next;
      free(e->value);
    } else {
      e = calloc(1, sizeof *e);
      e->cluster = toy_text(m->cluster, strlen(m->cluster));
      e->key = toy_text(p->key, p->key_len);
      e->key_len = p->key_len;
    }
    e->next = NULL;
    e->value = toy_text(p->value, p->bytes);
    e->bytes = p->bytes;
    e->owner = p->mine ? m : NULL;
    *out_revision = e->revision = ++store.revision;
    for (at = &store.entries; *at;) at = &(*at)->next;
    *at = e;
    toy_tell_all(e, e->revision, 0);
  }
  pthread_mutex_unlock(&store.mu);
  return s;
}

static UNUSED tw_status* toy_get(const tw_host* h, void* member, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to,
                                 uint64_t* out_revision) {
  (void)deadline;
  pthread_mutex_lock(&store.mu);
  const toy_entry* e = *toy_entry_at(member, key, key_len);
  tw_status* s = e ? to->put(to, e->value, e->bytes) : tw_fail(h, TW_NOT_FOUND, TW_S("there is no such key"));
  if (e) *out_revision = e->revision;
  pthread_mutex_unlock(&store.mu);
  return s;
}

static UNUSED tw_status* toy_remove_key(const tw_host* h, void* member, const char* key, uint64_t key_len, uint64_t expected,
                                        int64_t deadline) {
  (void)deadline;
  pthread_mutex_lock(&store.mu);
  toy_entry** at = toy_entry_at(member, key, key_len);
  tw_status* s = toy_expected(h, *at, expected);
  if (!s && *at) toy_erase(at);
  pthread_mutex_unlock(&store.mu);
  return s;
}

static UNUSED tw_status* toy_watch_keys(const tw_host* h, void* member, const char* prefix, uint64_t len,
                                        void (*change)(void* arg, const tw_change* c), void* arg, void** out_watch) {
  const toy_member* m = member;
  toy_watch* w = calloc(1, sizeof *w);
  (void)h;
  *w = (toy_watch){store.watches, toy_text(m->cluster, strlen(m->cluster)), toy_text(prefix, len), len, change, arg};
  pthread_mutex_lock(&store.mu);
  w->next = store.watches;
  store.watches = w;
  for (const toy_entry* e = store.entries; e; e = e->next) toy_tell(w, e, e->revision, 0);
  pthread_mutex_unlock(&store.mu);
  *out_watch = w;
  return NULL;
}

static UNUSED void toy_unwatch(const tw_host* h, void* watch) {
  toy_watch *w = watch, **at = &store.watches;
  (void)h;
  pthread_mutex_lock(&store.mu);
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  pthread_mutex_unlock(&store.mu);
  free(w->cluster);
  free(w->prefix);
  free(w);
}

static UNUSED tw_membership_def toy_membership(void) {
  const tw_membership_def d = {TW_SIZED(tw_membership_def),
                               TW_S("toy"),
                               NULL,
                               toy_member_join,
                               toy_member_leave,
                               toy_put,
                               toy_get,
                               toy_remove_key,
                               toy_watch_keys,
                               toy_unwatch};
  return d;
}
#endif
