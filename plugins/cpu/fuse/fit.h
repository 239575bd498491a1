// Decides whether a node can be a member of a fused set, and finds the layout of its values over
// the set's domain.
#ifndef THALWEG_PLUGINS_CPU_FUSE_FIT_H_
#define THALWEG_PLUGINS_CPU_FUSE_FIT_H_

#include "fuse/catalogue.h"
#include "fuse/domain.h"
#include "kernels/reduce.h"

namespace thalweg::cpu {

inline constexpr uint32_t kMostInputs = 3;
inline constexpr int64_t kMostColumns = kRowBlock;  // the longest row that a tile holds whole

struct Fit {
  const char* why = nullptr;  // the reason why the node does not fit; NULL if it fits
  int32_t inner = 0;          // the domain's inner axes that the node needs; 0 if it needs no rows
  bool whole_rows = false;
  Lie in[kMostInputs] = {}, out = Lie::kNone;  // kNone for an input that is read only at compile time
};

// Returns NULL, or the reason why the node fits into no domain at all.
const char* Unfit(const tw_part_node& n);

// Returns the domain that the node's loop runs over. REQUIRES: Unfit returned NULL.
tw_shape DomainOf(const tw_part_node& n, const Operation& op);

// If domain.inner is 0, the node may choose the rows. REQUIRES: Unfit returned NULL.
Fit FitInto(const tw_part_node& n, const Operation& op, const Domain& domain);

inline std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }
inline const tw_shape& OutShape(const tw_part_node& n) { return n.shapes[n.n_in]; }

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_FIT_H_
