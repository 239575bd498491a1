/* Groups: collective operations that kernels start. Kernels of CollectiveReduceV2 and its kin use the
 * optional set "group", version 1: host->query(h, TW_S(TW_GROUP_SET), 1) returns a const
 * tw_group_api*. A session is a member of groups if its options collective_store, collective_rank
 * and collective_members say so, with one session in each other process. A call names its group by
 * a key. At the first call with a key, the host makes a group of a collective engine (collective.h)
 * and waits for the other members. Calls with different keys run at once and in any order; calls
 * with one key come one after the other, and all members make the same ones.
 * Threads: any. */
#ifndef THALWEG_PLUGIN_GROUP_H
#define THALWEG_PLUGIN_GROUP_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_GROUP_SET "group"

/* The entries of tw_collective_def. */
enum {
  TW_GROUP_ALL_REDUCE = 1,
  TW_GROUP_BROADCAST = 2,
  TW_GROUP_ALL_GATHER = 3,
  TW_GROUP_REDUCE_SCATTER = 4,
  TW_GROUP_ALL_TO_ALL = 5,
  TW_GROUP_PERMUTE = 6
};

/* One operation. */
typedef struct tw_group_call {
  TW_HEAD;
  TW_TEXT(key);            /* of the group; equal at all members */
  uint32_t members;        /* size of the group, which has the members of ranks 0 to members - 1; 0: all members of the session */
  uint32_t operation;      /* TW_GROUP_* */
  uint32_t reduce;         /* TW_REDUCE_*, for all_reduce and reduce_scatter */
  uint32_t sends;          /* of broadcast: 1 at the one member that sends */
  uint32_t in, out;        /* flat numbers of an input and an output, in host memory. Of a broadcast that receives, `in` is UINT32_MAX */
  const uint32_t* sources; /* of permute: rank r gets the input of sources[r], or zeros if that is UINT32_MAX; equal at all members */
  uint64_t n_sources;      /* the size of the group */
  int64_t timeout;         /* nanoseconds for each operation of the group, set by the first call; 0: as the session's options say */
} tw_group_call;

typedef struct tw_group_api {
  TW_HEAD;
  /* Starts the operation; for an asynchronous kernel whose output has memory. Completes the frame's
   * token. Failures complete the token, too: UNAVAILABLE naming a lost member; DEADLINE_EXCEEDED;
   * INVALID_ARGUMENT if the members' calls differ; ABORTED if another member gave up; the failure
   * that ended the group before. If the call itself fails, the token is not completed:
   * FAILED_PRECONDITION (the session is in no group, or a call with this key is under way);
   * NOT_FOUND (no engine). */
  TW_R tw_status* (*start)(const tw_frame* f, const tw_group_call* c);
  /* Returns the number of members of the session, and its rank among them. FAILED_PRECONDITION. */
  TW_R tw_status* (*members)(const tw_frame* f, uint32_t* out_members, uint32_t* out_rank);
} tw_group_api;

#ifdef __cplusplus
}
#endif
#endif
