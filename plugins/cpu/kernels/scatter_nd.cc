// ScatterNd: adds slices into a tensor of zeros. If indices repeat, their slices are added in
// order. Half and bfloat16 are added in float.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/common/rows.h"
#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Strings for one place are concatenated in order; that is their sum.
void Join(tw::Frame f, tw::In<tw_string> updates, const SliceIndex& index, tw::Out<tw_string> output) {
  tw::TempVector<std::pair<int64_t, uint64_t>> places(f);  // with the index of the element that goes there
  places.reserve(updates.size());
  for (uint64_t i = 0; i < updates.size(); ++i) places.emplace_back(index(int64_t(i) / index.inner) + int64_t(i) % index.inner, i);
  std::sort(places.begin(), places.end());
  for (size_t i = 0, end; i < places.size(); i = end) {
    tw::TempString joined(f);
    for (end = i; end < places.size() && places[end].first == places[i].first; ++end) joined += View(updates[places[end].second]);
    output.set(uint64_t(places[i].first), joined);
  }
}

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
      FillZero(f.f, output.v());
      Join(f, updates, index, output);
    } else if constexpr (kIsSmallFloat<T>) {
      tw::TempVector<float> sum(output.size(), 0.f, f);
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
