// DynamicPartition distributes slices of a tensor over several outputs. DynamicStitch and
// ParallelDynamicStitch put slices into their places.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/common/rows.h"
#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Returns `count`, followed by the axes of v from `first` on.
Ints RowsOf(int64_t count, const tw_view* v, int first) {
  Ints dims;
  dims.push(count);
  for (int i = first; i < v->rank; ++i) dims.push(v->dims[i]);
  return dims;
}

// Copies slices of the size of T, each straight to the end of its output.
template <class T>
void Deal(const tw_view* data, const tw::In<int32_t>& partitions, const tw::ManyOut<tw::Any>& outputs) {
  std::vector<T*> ends;
  for (uint32_t k = 0; k < outputs.size(); ++k) ends.push_back(reinterpret_cast<T*>(outputs[k].data()));
  const T* from = reinterpret_cast<const T*>(Bytes(data));
  for (uint64_t i = 0; i < partitions.size(); ++i) *ends[size_t(partitions[i])]++ = from[i];
}

void Partition(tw::Frame f, tw::In<tw::Any> data, tw::In<int32_t> partitions, tw::ManyOut<tw::Any> outputs) {
  CheckMovable(data.v->dtype);
  CheckIndices(partitions.v, 0, outputs.size(), "partitions");
  // The slices of output k are rows[first[k]] to rows[first[k + 1] - 1].
  std::vector<int64_t> first(size_t(outputs.size()) + 1, 0);
  for (uint64_t i = 0; i < partitions.size(); ++i) ++first[size_t(partitions[i]) + 1];
  const int64_t inner = Product(data.dims(), partitions.rank(), data.rank()), slice = inner * ElementBytes(data.v->dtype);
  for (uint32_t k = 0; k < outputs.size(); ++k) {
    const Ints dims = RowsOf(first[k + 1], data.v, partitions.rank());
    Allocate(outputs[k], dims.at, dims.n);
  }
  if (slice == 4) return Deal<uint32_t>(data.v, partitions, outputs);
  if (slice == 8) return Deal<uint64_t>(data.v, partitions, outputs);
  std::partial_sum(first.begin(), first.end(), first.begin());
  const TempArray<int64_t> rows(f, partitions.size());
  std::vector<int64_t> next(first.begin(), first.end() - 1);
  for (uint64_t i = 0; i < partitions.size(); ++i) rows[size_t(next[size_t(partitions[i])]++)] = int64_t(i);
  for (uint32_t k = 0; k < outputs.size(); ++k) {
    const int64_t begin = first[k], count = first[k + 1] - begin;
    CopySlices(f.f, data.v, outputs[k].v(), count, inner, [&](int64_t i) { return rows[size_t(begin + i)] * inner; });
  }
}

int64_t Places(const tw::Many<int32_t>& indices) {
  int64_t places = 0;
  for (uint32_t i = 0; i < indices.size(); ++i) {
    CheckIndices(indices[i].v, 0, int64_t{1} << 31, ("indices of input " + std::to_string(i) + " ").c_str());
    for (uint64_t k = 0; k < indices[i].size(); ++k) places = std::max(places, int64_t{indices[i][k]} + 1);
  }
  return places;
}

bool AllTaken(tw::Frame f, const tw::Many<int32_t>& indices, int64_t places) {
  std::vector<bool, tw::TempAllocator<bool>> taken(static_cast<size_t>(places), false, f);
  int64_t count = 0;
  for (uint32_t i = 0; i < indices.size(); ++i) {
    for (uint64_t k = 0; k < indices[i].size(); ++k) {
      const size_t at = size_t(indices[i][k]);
      count += !taken[at];
      taken[at] = true;
    }
  }
  return count == places;
}

void Stitch(tw::Frame f, tw::Many<int32_t> indices, tw::Many<tw::Any> data, tw::Out<tw::Any> merged) {
  CheckMovable(data[0].v->dtype);
  const int64_t places = Places(indices), inner = Product(data[0].dims(), indices[0].rank(), data[0].rank());
  const Ints dims = RowsOf(places, data[0].v, indices[0].rank());
  Allocate(merged, dims.at, dims.n);
  if (merged.size() == 0) return;
  if (!AllTaken(f, indices, places)) FillZero(f.f, merged.v());
  for (uint32_t i = 0; i < indices.size(); ++i) {
    const int32_t* at = indices[i].data();
    PutSlices(f.f, data[i].v, merged.v(), int64_t(indices[i].size()), inner, [&](int64_t k) { return at[k] * inner; });
  }
}

}  // namespace

void register_dynamic_partition(tw::Plugin& p) {
  p.kernel<Partition>("DynamicPartition @CPU");
  p.kernel<Stitch>("DynamicStitch @CPU");
  p.kernel<Stitch>("ParallelDynamicStitch @CPU");
}

}  // namespace thalweg::cpu
