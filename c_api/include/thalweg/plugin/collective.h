/* Collectives: one operation, executed by all members of a group. A collective engine works for
 * some device kinds and uses no transport of the host; members find one another through the
 * key-value store in the group's config. All members of a group make the same calls in the same
 * order. An operation is enqueued on the device's native queue, which the engine's library can use
 * (without a queue, the input is ready), and the timeline reports its end. If a member is lost, the
 * timelines of all members fail within the group's deadline.
 * Threads: calls about one group are serialised by the host; create may block, the others do not. */
#ifndef THALWEG_PLUGIN_COLLECTIVE_H
#define THALWEG_PLUGIN_COLLECTIVE_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/membership.h"
#include "thalweg/plugin/role.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { TW_REDUCE_SUM = 1, TW_REDUCE_PROD = 2, TW_REDUCE_MIN = 3, TW_REDUCE_MAX = 4, TW_REDUCE_MEAN = 5 };

typedef struct tw_group_config {
  TW_HEAD;
  TW_TEXT(name);                 /* equal for all members and never reused: prefix of the group's keys */
  uint32_t rank, members;        /* 0 <= rank < members */
  const tw_key_value_api* store; /* key-value store for finding the other members; lives as long as the group */
  void* store_self;
  void* device;     /* the device's self; NULL: host memory */
  TW_TEXT(native);  /* type of tw_collective_call.queue: events->kind of the device (cuda, opencl); empty: no queue */
  int64_t deadline; /* longest duration of one operation in nanoseconds; 0: no limit */
} tw_group_config;

typedef struct tw_collective_call {
  TW_HEAD;
  uint32_t reduce;    /* TW_REDUCE_*, for all_reduce and reduce_scatter */
  uint32_t root;      /* root rank of broadcast */
  const tw_view* in;  /* of broadcast: the root's; an engine does not read that of the other members */
  const tw_view* out; /* may be `in` for all_reduce and broadcast */
  void* queue;        /* native queue of the device (events->queue); the operation runs in its order; NULL: none */
  tw_timeline* line;
  uint64_t value;
  /* For permute: rank r gets the input of sources[r], or zeros if that is UINT32_MAX. All members pass
   * equal lists; borrowed until the entry returns; NULL for the other operations. */
  const uint32_t* TW_COLLECTIVE_SINCE_1(sources);
  uint64_t TW_COLLECTIVE_SINCE_1(n_sources); /* of permute: the size of the group */
} tw_collective_call;

typedef struct tw_collective_def {
  TW_HEAD;
  TW_TEXT(name);
  TW_TEXT(kind); /* the device kind whose memory it works on */
  void* user;
  TW_R tw_status* (*create)(const tw_host* h, void* user, const tw_group_config* c, void** out_group); /* connects to the other members;
                                                                                                          may block */
  TW_R void (*destroy)(const tw_host* h, void* group);                                                 /* aborts running operations first */
  TW_R void (*abort)(const tw_host* h, void* group, const tw_status* why); /* any thread; running operations fail with why (borrowed) */
  TW_R tw_status* (*all_reduce)(const tw_host* h, void* group, const tw_collective_call* c); /* out: shape of in */
  TW_R tw_status* (*broadcast)(const tw_host* h, void* group, const tw_collective_call* c);  /* out: shape of the root's in */
  TW_R tw_status* (*all_gather)(const tw_host* h, void* group, const tw_collective_call* c); /* out: members x as many elements, by rank */
  TW_C tw_status* (*reduce_scatter)(const tw_host* h, void* group, const tw_collective_call* c); /* out: this rank's part of the elements */
  TW_C tw_status* (*all_to_all)(const tw_host* h, void* group, const tw_collective_call* c);     /* part r of in goes to rank r */
  /* out: the in of rank sources[rank], or zeros. The host makes it of all_to_all where it is NULL. */
  TW_C tw_status* (*TW_COLLECTIVE_SINCE_1(permute))(const tw_host* h, void* group, const tw_collective_call* c);
} tw_collective_def;

#ifdef __cplusplus
}
#endif
#endif
