// UnsortedSegmentSum: rows of data added up by segment, in the order in which they stand; rows with a negative segment are left out.
// half and bfloat16 add up in float.
#include <limits>
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/common/rows.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
void UnsortedSegmentSum(tw::Frame f, tw::In<T> data, tw::In<tw::Any> segment_ids, tw::In<tw::Any> num_segments, tw::Out<T> output) {
  const int64_t rows = int64_t(segment_ids.size()), segments = IndexAt(num_segments.v, 0);
  if (segments < 0) Invalid("num_segments is " + std::to_string(segments) + "; it must not be negative");
  Ints dims;
  dims.push(segments);
  for (int i = segment_ids.rank(); i < data.rank(); ++i) dims.push(data.dim(i));
  Allocate(output, dims.at, dims.n);
  CheckIndices(segment_ids.v, std::numeric_limits<int64_t>::min(), segments, "segment_ids");
  const int64_t inner = Product(dims.at, 1, dims.n);
  if (rows * inner != int64_t(data.size()))
    Invalid("segment_ids of shape " + DimsText(segment_ids.v) + " do not match the first axes of data of shape " + DimsText(data.v));
  auto target = [&](int64_t row) {
    const int64_t segment = IndexAt(segment_ids.v, uint64_t(row));
    return segment < 0 ? -1 : segment * inner;
  };
  if constexpr (kIsSmallFloat<T>) {
    std::vector<float> sum(output.size(), 0.f);
    CombineRows(f.f, sum.data(), data.data(), rows, inner, target, [](float a, T b) { return a + float(b); });
    for (uint64_t i = 0; i < output.size(); ++i) output[i] = T(sum[i]);
  } else {
    FillZero(f.f, output.v());
    CombineRows(f.f, output.data(), data.data(), rows, inner, target, [](T a, T b) { return Plus(a, b); });
  }
}

}  // namespace

void register_segment_sum(tw::Plugin& p) {
  p.kernel<UnsortedSegmentSum<float>, UnsortedSegmentSum<double>, UnsortedSegmentSum<half>, UnsortedSegmentSum<bfloat16>,
           UnsortedSegmentSum<int8_t>, UnsortedSegmentSum<int16_t>, UnsortedSegmentSum<int32_t>, UnsortedSegmentSum<int64_t>,
           UnsortedSegmentSum<uint8_t>, UnsortedSegmentSum<uint16_t>, UnsortedSegmentSum<uint32_t>, UnsortedSegmentSum<uint64_t>,
           UnsortedSegmentSum<complex64>, UnsortedSegmentSum<complex128>>("UnsortedSegmentSum @CPU");
}

}  // namespace thalweg::cpu
