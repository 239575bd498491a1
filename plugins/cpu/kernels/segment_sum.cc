// UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax, UnsortedSegmentMin: combine rows of
// data by segment, in row order. Rows with a negative segment are ignored. Half and bfloat16 are
// added and multiplied in float. A segment without rows gives 0 for Sum, 1 for Prod, the lowest
// finite number for Max and the highest for Min. NaN wins in Max and Min.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/buckets.h"
#include "kernels/common/rows.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Start: the result of a segment without rows. kCopiesFirst: other segments begin with their first
// row instead.
struct Sum {
  static constexpr bool kCopiesFirst = false;
  template <class T>
  static T Start() {
    return T(0);
  }
  template <class T>
  static T Combine(T a, T x) {
    return Plus(a, x);
  }
};
struct Prod {
  static constexpr bool kCopiesFirst = false;
  template <class T>
  static T Start() {
    return T(1);
  }
  template <class T>
  static T Combine(T a, T x) {
    return Times(a, x);
  }
};
struct Max {
  static constexpr bool kCopiesFirst = true;
  template <class T>
  static T Start() {
    return std::numeric_limits<T>::lowest();
  }
  template <class T>
  static T Combine(T a, T x) {
    return x < a || a != a ? a : x;
  }
};
struct Min {
  static constexpr bool kCopiesFirst = true;
  template <class T>
  static T Start() {
    return std::numeric_limits<T>::max();
  }
  template <class T>
  static T Combine(T a, T x) {
    return a < x || a != a ? a : x;
  }
};

// The target of each row of data: the start of its segment, or nowhere (-1). Also knows which row
// is the first of its segment.
class Targets {
 public:
  Targets(const tw_frame* f, const tw_view* ids, int64_t segments, int64_t inner, bool first) : ids_(ids), inner_(inner), first_(f) {
    if (!first) return;
    first_.resize(ids->count);
    std::vector<bool, tw::TempAllocator<bool>> seen(size_t(segments), false, f);
    for (uint64_t row = 0; row < ids->count; ++row) {
      const int64_t segment = IndexAt(ids, row);
      if (segment < 0) continue;
      first_[row] = !seen[size_t(segment)];
      seen[size_t(segment)] = true;
    }
  }
  int64_t operator()(int64_t row) const {
    const int64_t segment = IndexAt(ids_, uint64_t(row));
    return segment < 0 ? -1 : segment * inner_;
  }
  bool First(int64_t row) const { return !first_.empty() && first_[size_t(row)]; }

 private:
  const tw_view* ids_;
  int64_t inner_;
  std::vector<bool, tw::TempAllocator<bool>> first_;
};

// Combines short rows one after the other; `to` holds the segment's result so far.
template <class Way, class Acc, class T>
void CombineShort(Acc* to, const T* from, int64_t rows, int64_t inner, const Targets& target) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = target(row);
    if (at < 0) continue;
    const T* x = from + row * inner;
    if (target.First(row))
      for (int64_t j = 0; j < inner; ++j) to[at + j] = Acc(x[j]);
    else
      for (int64_t j = 0; j < inner; ++j) to[at + j] = Way::Combine(to[at + j], Acc(x[j]));
  }
}

// Combines longer rows segment by segment.
template <class Way, class Acc, class T>
void CombineLong(const tw_frame* f, T* to, const T* from, int64_t inner, const Buckets& buckets) {
  ForBuckets(f, buckets, inner, 1, [&](int64_t segment, int64_t column, int64_t n) {
    Acc acc[kBucketColumns];
    const int64_t *row = buckets.begin(segment), *end = buckets.end(segment);
    if (Way::kCopiesFirst && row < end)
      for (int64_t first = *row++ * inner + column, j = 0; j < n; ++j) acc[j] = Acc(from[first + j]);
    else
      std::fill_n(acc, n, Acc(Way::template Start<T>()));
    for (; row < end; ++row) {
      const T* x = from + *row * inner + column;
      for (int64_t j = 0; j < n; ++j) acc[j] = Way::Combine(acc[j], Acc(x[j]));
    }
    for (int64_t j = 0; j < n; ++j) to[segment * inner + column + j] = T(acc[j]);
  });
}

template <class T, class Way>
void UnsortedSegment(tw::Frame f, tw::In<T> data, tw::In<tw::Any> segment_ids, tw::In<tw::Any> num_segments, tw::Out<T> output) {
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
  if (output.size() == 0) return;
  constexpr int64_t kShort = 16;
  using Acc = std::conditional_t<kIsSmallFloat<T>, float, T>;
  if (inner >= kShort) {
    const Buckets buckets(f.f, rows, segments, [&](int64_t row) { return IndexAt(segment_ids.v, uint64_t(row)); });
    return CombineLong<Way, Acc>(f.f, output.data(), data.data(), inner, buckets);
  }
  const Targets target(f.f, segment_ids.v, segments, inner, Way::kCopiesFirst);
  if constexpr (kIsSmallFloat<T>) {
    tw::TempVector<float> sum(output.size(), float(Way::template Start<T>()), f);
    CombineShort<Way>(sum.data(), data.data(), rows, inner, target);
    for (uint64_t i = 0; i < output.size(); ++i) output[i] = T(sum[i]);
  } else {
    std::fill_n(output.data(), output.size(), Way::template Start<T>());
    CombineShort<Way>(output.data(), data.data(), rows, inner, target);
  }
}

template <class Way, class... T>
void AddTypes(tw::Plugin& p, const char* spec) {
  p.kernel<UnsortedSegment<T, Way>...>(spec);
}
template <class Way, class... Complex>
void AddOp(tw::Plugin& p, const char* spec) {
  AddTypes<Way, float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Complex...>(p,
                                                                                                                                     spec);
}

}  // namespace

void register_segment_sum(tw::Plugin& p) {
  AddOp<Sum, complex64, complex128>(p, "UnsortedSegmentSum @CPU");
  AddOp<Prod, complex64, complex128>(p, "UnsortedSegmentProd @CPU");
  AddOp<Max>(p, "UnsortedSegmentMax @CPU");
  AddOp<Min>(p, "UnsortedSegmentMin @CPU");
}

}  // namespace thalweg::cpu
