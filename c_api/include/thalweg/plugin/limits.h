/* Optional set "limits", version 1: upper limits of sizes that only running tells. host->query(h,
 * TW_S(TW_LIMITS_SET), 1) returns a const tw_limits_api*, or NULL if the host has none.
 * tw_shape is frozen and has no room for limits, so they come from an entry of their own. A compiler
 * for hardware with fixed sizes asks for them; everybody else pays nothing. The host derives them from
 * the dims of schemas, from constants, and from three hints of schemas (op.h):
 *     ?elementwise                the outputs grow with the inputs
 *     ?grows                      no output gets smaller in any size if some inputs get larger
 *     ?limits y 0 elements x      axis 0 of output y is at most as large as x has elements
 *     ?limits y 0 axis x 1        ... as axis 1 of x is large
 *     ?limits y 0 value n         ... as the value of n, a scalar of type int32 or int64
 * A schema may have several `?limits`; the smallest holds. For an op that grows, the host runs the
 * shape rule with the limits in place of the sizes; if the rule refuses these, no limit is known.
 * Hosts that do not know a hint skip it.
 * Threads: those of the callback that received the part. */
#ifndef THALWEG_PLUGIN_LIMITS_H
#define THALWEG_PLUGIN_LIMITS_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/compiler.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_LIMITS_SET "limits"
typedef struct tw_limits_api {
  TW_HEAD;
  /* Returns the largest size of axis `axis` of output `port` of node `node` of the part, or, with
   * node -1, of the part's input `port`; -1: no limit is known. A known size is its own limit. The
   * limit holds for the shapes that the part shows: a part whose compile or load asks for a limit of a
   * size that is not known gets another plan for other shapes of feeds, as a part without prepare.
   * part: that of claim, rewrite, compile, load or prepare, and only inside of that call; -1 for any
   * other record, for a node, port or axis that does not exist, and for a value of unknown rank. */
  TW_R int64_t (*limit)(const tw_part* part, int32_t node, uint32_t port, uint32_t axis);
} tw_limits_api;

#ifdef __cplusplus
}
#endif
#endif
