// Whether a node can be a member of a fused set, and how its values lie over the set's domain.
#ifndef THALWEG_PLUGINS_CPU_FUSE_FIT_H_
#define THALWEG_PLUGINS_CPU_FUSE_FIT_H_

#include "fuse/catalogue.h"
#include "fuse/domain.h"
#include "kernels/reduce.h"

namespace thalweg::cpu {

inline constexpr uint32_t kMostInputs = 3;
inline constexpr int64_t kMostColumns = kRowBlock;  // of a row that has to be whole

struct Fit {
  const char* why = nullptr;  // it does not; NULL: it does
  int32_t inner = 0;          // of the domain as the node needs it; 0: no rows
  bool whole_rows = false;
  Lie in[kMostInputs] = {}, out = Lie::kNone;  // kNone: an input that only compiling reads
};

// Of any domain: NULL, or why not.
const char* Unfit(const tw_part_node& n);

// What the node's loop runs over. REQUIRES: Unfit said nothing.
tw_shape DomainOf(const tw_part_node& n, const Operation& op);

// domain.inner 0: the node may choose. REQUIRES: Unfit said nothing.
Fit FitInto(const tw_part_node& n, const Operation& op, const Domain& domain);

inline std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }
inline const tw_shape& OutShape(const tw_part_node& n) { return n.shapes[n.n_in]; }

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_FIT_H_
