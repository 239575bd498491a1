// TensorScatterUpdate, TensorScatterAdd, -Sub, -Max, -Min: apply updates to slices of a copy of the
// tensor, or of its memory, in order. Half and bfloat16 are added in float.
#include <vector>

#include "kernels/combine.h"
#include "kernels/common/rows.h"
#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void TakeOver(const tw_frame* f, const tw_view* tensor, const tw_view* output) {
  if (Bytes(tensor) != Bytes(output)) CopyRun(f, tensor, 0, output, 0, int64_t(output->count));
}

class Update {
 public:
  explicit Update(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::In<tw::Any> tensor, tw::In<tw::Any> indices, tw::In<tw::Any> updates, tw::Out<tw::Any> output) const {
    const SliceIndex index(indices.v, tensor.dims(), tensor.rank());
    index.WantUpdates(updates.v);
    TakeOver(f.f, tensor.v, output.v());
    PutSlices(f.f, updates.v, output.v(), index.rows, index.inner, index);
  }
};

template <class T, class Combine>
class TensorScatter {
 public:
  explicit TensorScatter(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::In<T> tensor, tw::In<tw::Any> indices, tw::In<T> updates, tw::Out<T> output) const {
    const SliceIndex index(indices.v, tensor.dims(), tensor.rank());
    index.WantUpdates(updates.v);
    if (updates.size() == 0) return TakeOver(f.f, tensor.v, output.v());
    const Combine combine;
    if constexpr (kIsSmallFloat<T>) {
      tw::TempVector<float> wide(tensor.data(), tensor.data() + tensor.size(), f);
      CombineRows(f.f, wide.data(), int64_t(wide.size()), updates.data(), index.rows, index.inner, index,
                  [&](float a, T b) { return combine(a, float(b)); });
      for (uint64_t i = 0; i < output.size(); ++i) output[i] = T(wide[i]);
    } else {
      TakeOver(f.f, tensor.v, output.v());
      CombineRows(f.f, output.data(), int64_t(output.size()), updates.data(), index.rows, index.inner, index, combine);
    }
  }
};

}  // namespace

void register_tensor_scatter(tw::Plugin& p) {
  p.kernel<Update>("TensorScatterUpdate @CPU; inplace output=tensor");
  RegisterCombiners<TensorScatter>(p, "TensorScatter", " @CPU; inplace output=tensor");
}

}  // namespace thalweg::cpu
