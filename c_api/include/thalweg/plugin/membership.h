/* Membership: who takes part, and a small store of keys all of them see. etcd, a launcher or a file in a shared folder can implement it.
 * Keys and values are bytes; each change of the store has a revision, greater than all before. A member lives as long as its lease is
 * renewed, which the plugin does by itself until leave; keys that it put with `mine` go with it.
 * Threads: any. Entries that may block end by their deadline (clock of host->run->now, nanoseconds) with DEADLINE_EXCEEDED. */
#ifndef THALWEG_PLUGIN_MEMBERSHIP_H
#define THALWEG_PLUGIN_MEMBERSHIP_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The store alone, as collectives and transports use it to meet. self: what came with the table. */
typedef struct tw_key_value_api {
  TW_HEAD;
  TW_R tw_status* (*put)(void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes);
  /* Waits until the key is there. */
  TW_R tw_status* (*get)(void* self, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to);
} tw_key_value_api;

typedef struct tw_change {
  TW_HEAD;
  TW_TEXT(key);
  const void* value; /* NULL: removed */
  uint64_t bytes, revision;
} tw_change;

typedef struct tw_member_config {
  TW_HEAD;
  TW_TEXT(address); /* of the service: what the plugin's documentation says */
  TW_TEXT(cluster); /* its name: prefix of all keys */
  TW_TEXT(name);    /* of this member */
  TW_TEXT(credential);
  int64_t lease; /* nanoseconds without a sign of life after which a member is gone */
  void* arg;
  TW_O void (*lost)(void* arg, const tw_status* why); /* the lease could not be renewed in time: this member counts as gone; borrowed */
} tw_member_config;

typedef struct tw_membership_def {
  TW_HEAD;
  TW_TEXT(scheme);
  void* user;
  TW_R tw_status* (*join)(const tw_host* h, void* user, const tw_member_config* c, int64_t deadline, void** out_member); /* may block */
  TW_R void (*leave)(const tw_host* h,
                     void* member); /* its lease and keys end, watches too; nothing of it is called afterwards; may block */
  /* mine 1: the key goes when this member goes. expected: only if the key's revision is that; 0: if there is no such key;
   * UINT64_MAX: in any case. ABORTED if it is another. */
  TW_R tw_status* (*put)(const tw_host* h, void* member, const char* key, uint64_t key_len, const void* value, uint64_t bytes,
                         uint32_t mine, uint64_t expected, int64_t deadline, uint64_t* out_revision);
  TW_R tw_status* (*get)(const tw_host* h, void* member, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to,
                         uint64_t* out_revision); /* NOT_FOUND */
  /* expected: as of put. */
  TW_R tw_status* (*remove)(const tw_host* h, void* member, const char* key, uint64_t key_len, uint64_t expected, int64_t deadline);
  /* change(arg, c) for every key under the prefix that there is, by revision, and then for every change after, in order, one at a time.
   * Ends with unwatch, after which it is not called. */
  TW_R tw_status* (*watch)(const tw_host* h, void* member, const char* prefix, uint64_t len, void (*change)(void* arg, const tw_change* c),
                           void* arg, void** out_watch);
  TW_R void (*unwatch)(const tw_host* h, void* watch); /* may block until a running `change` is over; not from inside it */
} tw_membership_def;

#ifdef __cplusplus
}
#endif
#endif
