// ScatterNd: slices put into a tensor of zeros; where indices repeat, slices add up, in the order in which they stand.
// half and bfloat16 add up in float.
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/common/rows.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class ScatterNd {
 public:
  explicit ScatterNd(const tw::Node& n) { WantBadIndicesRefused(n); }
  void operator()(tw::Frame f, tw::In<tw::Any> indices, tw::In<T> updates, tw::In<tw::Any> shape, tw::Out<T> output) const {
    const Ints dims = ReadInts(shape.v, "shape");
    Allocate(output, dims.at, dims.n);
    if (output.size() == 0 && updates.size() == 0) return;
    const SliceIndex index(indices.v, dims.at, dims.n);
    index.WantUpdates(updates.v);
    if constexpr (std::is_same_v<T, tw_string>) {
      // Strings do not add up: the last one stays.
      FillZero(f.f, output.v());
      for (int64_t row = 0; row < index.rows; ++row) CopyRun(f.f, updates.v, row * index.inner, output.v(), index(row), index.inner);
    } else if constexpr (kIsSmallFloat<T>) {
      std::vector<float> sum(output.size(), 0.f);
      CombineRows(f.f, sum.data(), int64_t(sum.size()), updates.data(), index.rows, index.inner, index,
                  [](float a, T b) { return a + float(b); });
      for (uint64_t i = 0; i < output.size(); ++i) output[i] = T(sum[i]);
    } else {
      FillZero(f.f, output.v());
      CombineRows(f.f, output.data(), int64_t(output.size()), updates.data(), index.rows, index.inner, index, [](T a, T b) {
        if constexpr (std::is_same_v<T, bool>)
          return a || b;
        else
          return Plus(a, b);
      });
    }
  }
};

}  // namespace

void register_scatter_nd(tw::Plugin& p) {
  p.kernel<ScatterNd<float>, ScatterNd<double>, ScatterNd<half>, ScatterNd<bfloat16>, ScatterNd<complex64>, ScatterNd<complex128>,
           ScatterNd<int8_t>, ScatterNd<int16_t>, ScatterNd<int32_t>, ScatterNd<int64_t>, ScatterNd<uint8_t>, ScatterNd<uint16_t>,
           ScatterNd<uint32_t>, ScatterNd<uint64_t>, ScatterNd<bool>, ScatterNd<tw_string>>("ScatterNd @CPU");
}

}  // namespace thalweg::cpu
