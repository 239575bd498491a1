// Checked borders around tensors, shared by Pad, MirrorPad and its gradient.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_PAD_H_
#define THALWEG_PLUGINS_CPU_KERNELS_PAD_H_

#include <algorithm>

#include "kernels/common/copy.h"

namespace thalweg::cpu {

// The width of the larger tensor's border on each axis. Throws INVALID_ARGUMENT unless the smaller
// tensor fits into it.
struct Border {
  Ints before, after;
  Border(const tw_view* paddings, const tw_view* small, const tw_view* large) {
    if (paddings->count != 2 * uint64_t(small->rank))
      throw tw::Error{TW_INTERNAL, "paddings is " + DimsText(paddings) + " for a tensor of shape " + DimsText(small)};
    for (int i = 0; i < small->rank; ++i) {
      before.push(IndexAt(paddings, 2 * uint64_t(i)));
      after.push(IndexAt(paddings, 2 * uint64_t(i) + 1));
      if (before[i] < 0 || after[i] < 0) {
        throw tw::Error{TW_INTERNAL, "paddings[" + std::to_string(i) + "] is [" + std::to_string(before[i]) + ", " +
                                         std::to_string(after[i]) + "]; neither may be negative"};
      }
      if (before[i] + small->dims[i] + after[i] != large->dims[i])
        throw tw::Error{TW_INTERNAL, DimsText(small) + " and its border do not make " + DimsText(large)};
    }
  }
};

// SYMMETRIC mirrors the edge element too; REFLECT mirrors around it.
struct Mirror {
  int64_t skip;
  explicit Mirror(const tw::Node& n) : skip(n.s("mode") == "REFLECT" ? 1 : 0) {}
  void Check(const Border& border, const tw_view* small) const {
    for (int i = 0; i < small->rank; ++i) {
      const int64_t widest = std::max(border.before[i], border.after[i]);
      if (widest > 0 && widest > small->dims[i] - skip)
        Invalid("a border of " + std::to_string(widest) + " on axis " + std::to_string(i) + " is more than " + DimsText(small) +
                " can mirror");
    }
  }
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_PAD_H_
