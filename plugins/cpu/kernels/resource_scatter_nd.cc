// ResourceScatterNdUpdate, -Add, -Sub, -Max and -Min change slices of a variable in place under its
// lock, in the order of the index vectors. The vectors are checked before anything is changed. Sums
// of half and bfloat16 are stored in the variable, so they are rounded after each slice.
#include <algorithm>

#include "kernels/combine.h"
#include "kernels/common/rows.h"
#include "kernels/common/slices.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Throws INVALID_ARGUMENT unless all slices are inside the variable and each has an update.
SliceIndex Slices(const tw_view* variable, const tw_view* indices, const tw_view* updates) {
  if (variable->dtype != updates->dtype)
    Invalid("the variable is " + TypeText(variable->dtype) + ", updates are " + TypeText(updates->dtype));
  if (indices->rank < 1) Invalid("indices must be index vectors, but are a scalar");
  const SliceIndex index(indices, variable->dims, variable->rank);
  const int outer = indices->rank - 1, depth = int(indices->dims[outer]);
  if (updates->rank != outer + variable->rank - depth || !std::equal(indices->dims, indices->dims + outer, updates->dims) ||
      !std::equal(variable->dims + depth, variable->dims + variable->rank, updates->dims + outer)) {
    Invalid("updates of shape " + DimsText(updates) + " for indices of shape " + DimsText(indices) + " into the variable of shape " +
            DimsText(variable));
  }
  return index;
}

class Update {
 public:
  explicit Update(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::Var<tw::Any> ref, tw::In<tw::Any> indices, tw::In<tw::Any> updates) const {
    const SliceIndex index = Slices(ref.v, indices.v, updates.v);
    PutSlices(f.f, updates.v, ref.v, index.rows, index.inner, index);
  }
};

template <class T, class Combine>
class VariableScatter {
 public:
  explicit VariableScatter(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::Var<T> ref, tw::In<tw::Any> indices, tw::In<T> updates) const {
    const SliceIndex index = Slices(ref.v, indices.v, updates.v);
    CombineRows(f.f, ref.data(), int64_t(ref.size()), updates.data(), index.rows, index.inner, index, Combine());
  }
};

}  // namespace

void register_resource_scatter_nd(tw::Plugin& p) {
  p.kernel<Update>("ResourceScatterNdUpdate @CPU; update ref");
  RegisterCombiners<VariableScatter>(p, "ResourceScatterNd", " @CPU; update ref");
}

}  // namespace thalweg::cpu
