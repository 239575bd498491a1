/* Membership: the members of a cluster, and a small key-value store that all of them see. etcd, a
 * launcher or a file in a shared folder can implement it. Keys and values are bytes; each change of
 * the store has a revision, greater than all before. A member lives as long as its lease is
 * renewed, which the plugin does until leave; keys that the member put with `mine` are removed with
 * it.
 * Threads: any. Entries that may block end by their deadline (clock of host->run->now, nanoseconds)
 * with DEADLINE_EXCEEDED. */
#ifndef THALWEG_PLUGIN_MEMBERSHIP_H
#define THALWEG_PLUGIN_MEMBERSHIP_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The store alone, which collectives and transports use to find each other. self: passed along with
 * the table. */
typedef struct tw_key_value_api {
  TW_HEAD;
  TW_R tw_status* (*put)(void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes);
  /* Waits until the key exists. */
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
  TW_TEXT(address); /* of the service, in the form that the plugin's documentation defines */
  TW_TEXT(cluster); /* its name: prefix of all keys */
  TW_TEXT(name);    /* of this member */
  TW_TEXT(credential);
  int64_t lease; /* nanoseconds without a renewal after which a member is gone */
  void* arg;
  TW_O void (*lost)(void* arg, const tw_status* why); /* the lease could not be renewed in time, so this member counts as gone; why:
                                                         borrowed */
} tw_member_config;

/* A key to put. */
typedef struct tw_put {
  TW_HEAD;
  TW_TEXT(key);
  const void* value;
  uint64_t bytes;
  uint64_t expected;       /* required revision of the key; 0: the key must not exist; UINT64_MAX: no condition */
  int64_t deadline;        /* on the clock of host->run->now */
  uint32_t mine, reserved; /* mine 1: the key is removed with this member */
} tw_put;

typedef struct tw_membership_def {
  TW_HEAD;
  TW_TEXT(scheme);
  void* user;
  TW_R tw_status* (*join)(const tw_host* h, void* user, const tw_member_config* c, int64_t deadline, void** out_member); /* may block */
  TW_R void (*leave)(const tw_host* h,
                     void* member); /* ends its lease, keys and watches; no callback of it is called afterwards; may block */
  /* Puts a key. ABORTED if its revision is not the expected one. */
  TW_R tw_status* (*put)(const tw_host* h, void* member, const tw_put* p, uint64_t* out_revision);
  TW_R tw_status* (*get)(const tw_host* h, void* member, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to,
                         uint64_t* out_revision); /* NOT_FOUND */
  /* Removes a key. expected: as of tw_put. */
  TW_R tw_status* (*remove)(const tw_host* h, void* member, const char* key, uint64_t key_len, uint64_t expected, int64_t deadline);
  /* Calls change(arg, c) for every existing key under the prefix, by revision, and then for every
   * later change, in order, one at a time. Ends with unwatch, after which change is not called. */
  TW_R tw_status* (*watch)(const tw_host* h, void* member, const char* prefix, uint64_t len, void (*change)(void* arg, const tw_change* c),
                           void* arg, void** out_watch);
  TW_R void (*unwatch)(const tw_host* h, void* watch); /* may block until a running `change` has returned; not from inside it */
} tw_membership_def;

#ifdef __cplusplus
}
#endif
#endif
