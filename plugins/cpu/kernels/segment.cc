// SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin: reduce consecutive rows with the
// same segment number.
#include "kernels/segment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/arithmetic.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/reduce_loops.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kColumns = 512;                  // accumulators side by side
constexpr int64_t kAccBytes = sizeof(complex128);  // the size of the largest one

// Returns the first row of [low, high) whose number is not below `segment`, or high if there is
// none.
int64_t FirstRow(const tw_view* ids, int64_t segment, int64_t low, int64_t high) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (IndexAt(ids, uint64_t(middle)) < segment)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Returns the end of a segment that begins at `row`, in a number of steps logarithmic in its size.
int64_t EndOf(const tw_view* ids, int64_t segment, int64_t row) {
  const int64_t rows = int64_t(ids->count);
  int64_t step = 1;
  while (row + step <= rows && IndexAt(ids, uint64_t(row + step - 1)) <= segment) step *= 2;
  return FirstRow(ids, segment + 1, row + step / 2, std::min(rows, row + step));
}

class Segments {
 public:
  Segments(const SegmentReduction& reduction, const tw_view* x, const tw_view* indices, const tw_view* ids, const tw_view* y)
      : r_(reduction), k_(*reduction.kernel), x_(x), indices_(indices), ids_(ids), y_(y), inner_(Product(y->dims, 1, y->rank)) {}
  int64_t inner() const { return inner_; }

  // Reduces columns [column, column + n) of segments [begin, end). n: at most kColumns.
  void Reduce(int64_t begin, int64_t end, int64_t column, int64_t n) const {
    alignas(64) char acc[kColumns * kAccBytes];
    int64_t row = FirstRow(ids_, begin, 0, int64_t(ids_->count));
    for (int64_t s = begin; s < end; ++s) {
      const int64_t last = EndOf(ids_, s, row);
      const int64_t at = s * inner_ + column;
      if (row == last && r_.empty == Empty::kZero) {
        std::memset(Bytes(y_) + at * k_.y_bytes, 0, size_t(n) * k_.y_bytes);
        continue;
      }
      k_.start(acc, n);
      TakeRows(row, last, column, n, acc);
      Divide(reinterpret_cast<double*>(acc), n, last - row);
      Finish(acc, n, last - row, Bytes(y_) + at * k_.y_bytes);
      row = last;
    }
  }

 private:
  const char* RowAt(int64_t row, int64_t column) const {
    const int64_t from = indices_ ? IndexAt(indices_, uint64_t(row)) : row;
    return Bytes(x_) + (from * inner_ + column) * k_.x_bytes;
  }
  void TakeRows(int64_t row, int64_t last, int64_t column, int64_t n, char* acc) const {
    if (!indices_ && inner_ == 1) return TakeRun(row, last, acc);
    if (!indices_ && !k_.load) return k_.take_rows(RowAt(row, column), n, inner_, last - row, acc);
    alignas(64) float wide[kColumns];
    for (; row < last; ++row) {
      const char* from = RowAt(row, column);
      if (k_.load) k_.load(reinterpret_cast<const uint16_t*>(from), wide, n);
      k_.take_rows(k_.load ? static_cast<const void*>(wide) : from, n, 0, 1, acc);
    }
  }
  // Takes in rows of one element, which are adjacent in memory.
  void TakeRun(int64_t row, int64_t last, char* acc) const {
    alignas(64) float wide[kColumns];
    for (int64_t n; row < last; row += n) {
      n = std::min(kColumns, last - row);
      const char* from = RowAt(row, 0);
      if (k_.load) k_.load(reinterpret_cast<const uint16_t*>(from), wide, n);
      k_.take_row(k_.load ? static_cast<const void*>(wide) : from, n, acc);
    }
  }
  void Divide(double* sums, int64_t n, int64_t count) const {
    if (r_.divisor == Divisor::kNone) return;
    const double by = r_.divisor == Divisor::kCount ? double(count) : std::sqrt(double(count));
    for (int64_t j = 0; j < n; ++j) sums[j] /= by;
  }
  void Finish(const char* acc, int64_t n, int64_t count, char* y) const {
    if (!k_.store) return k_.finish(acc, n, count, y);
    alignas(64) float wide[kColumns];
    k_.finish(acc, n, count, wide);
    k_.store(wide, reinterpret_cast<uint16_t*>(y), n);
  }

  const SegmentReduction& r_;
  const ReduceKernel& k_;
  const tw_view *x_, *indices_, *ids_, *y_;
  int64_t inner_;
};

// Returns true if no number is negative or smaller than the one before it. The compiler can
// vectorise the loop.
template <class T>
bool Ascend(const tw_view* ids) {
  auto* p = reinterpret_cast<const T*>(Bytes(ids));
  bool falls = ids->count > 0 && p[0] < 0;
  for (uint64_t i = 1; i < ids->count; ++i) falls |= p[i] < p[i - 1];
  return !falls;
}
bool Ascend(const tw_view* ids) {
  return (ids->dtype == TW_INT32 && Ascend<int32_t>(ids)) || (ids->dtype == TW_INT64 && Ascend<int64_t>(ids));
}

}  // namespace

int64_t CheckSegments(const tw_view* segment_ids, int64_t rows, int64_t limit) {
  if (segment_ids->rank != 1 || segment_ids->dims[0] != rows)
    Invalid("segment_ids is " + DimsText(segment_ids) + "; it must be a vector of " + std::to_string(rows) + " numbers, one per row");
  int64_t before = 0;
  const int64_t highest = rows > 0 ? IndexAt(segment_ids, uint64_t(rows - 1)) : 0;
  const bool right = Ascend(segment_ids) && (limit < 0 || highest < limit);
  if (right) before = highest;
  for (int64_t i = 0; !right && i < rows; ++i) {
    const int64_t now = IndexAt(segment_ids, uint64_t(i));
    auto where = [&] { return "segment_ids[" + std::to_string(i) + "] = " + std::to_string(now); };
    if (now < 0) Invalid(where() + " is negative");
    if (now < before) Invalid(where() + " comes after " + std::to_string(before) + "; the numbers must not decrease");
    if (limit >= 0 && now >= limit) Invalid(where() + " is not below " + std::to_string(limit) + ", the number of segments");
    before = now;
  }
  if (rows > 0 && before == std::numeric_limits<int64_t>::max()) Invalid("segment " + std::to_string(before) + " is out of any range");
  return rows > 0 ? before + 1 : 0;
}

void ReduceSegments(const tw_frame* f, const SegmentReduction& reduction, const tw_view* x, const tw_view* indices,
                    const tw_view* segment_ids, const tw_view* y) {
  if (y->count == 0) return;
  const Segments s(reduction, x, indices, segment_ids, y);
  const int64_t segments = y->dims[0], chunks = (s.inner() + kColumns - 1) / kColumns;
  const int64_t cost = (int64_t(segment_ids->count) / segments + 1) * std::min(s.inner(), kColumns);
  // A piece is a run of segments within one chunk of columns.
  ParallelFor(f, segments * chunks, cost + 20, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t chunk = begin / segments, first = begin % segments, last = std::min(segments, first + end - begin);
      s.Reduce(first, last, chunk * kColumns, std::min(kColumns, s.inner() - chunk * kColumns));
      begin += last - first;
    }
  });
}

namespace {

template <Empty kEmpty>
void RunSegment(const tw_frame* f, const ReduceKernel& k) {
  const tw_view *data = f->in[0], *ids = f->in[1];
  if (data->rank < 1) Invalid("data is a scalar; it must have rows");
  Ints dims;
  dims.push(CheckSegments(ids, data->dims[0]));
  for (int i = 1; i < data->rank; ++i) dims.push(data->dims[i]);
  Allocate(tw::Out<tw::Any>{f, 0}, dims.at, dims.n);
  ReduceSegments(f, {&k, kEmpty}, data, nullptr, ids, f->out[0]);
}

template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, uint64_t, std::conditional_t<kIsComplex<T>, complex128, double>>;
template <class T, class Way>
constexpr ReduceKernel kPlain = MakeReduce<T, Total<T>, ReduceLoops<T, Total<T>, Way>>();
template <class T>
constexpr ReduceKernel kMean = MakeReduce<T, Total<T>, ReduceLoops<T, Total<T>, Summing<Total<T>>>>(FinishMean<T, Total<T>>);
template <class T, class Way>
constexpr ReduceKernel kChoice = MakeReduce<T, T, ReduceLoops<T, T, Way>>();

std::string Spec(const std::string& op, const std::string& type) { return op + "(" + type + ", _ -> " + type + ") @CPU"; }

void AddSums(tw::Plugin& p, const char* type, const ReduceKernel& sum, const ReduceKernel& mean, const ReduceKernel& prod) {
  AddKernel<RunSegment<Empty::kZero>>(p, Spec("SegmentSum", type), sum);
  AddKernel<RunSegment<Empty::kZero>>(p, Spec("SegmentMean", type), mean);
  AddKernel<RunSegment<Empty::kStart>>(p, Spec("SegmentProd", type), prod);
}
void AddExtremes(tw::Plugin& p, const char* type, const ReduceKernel& max, const ReduceKernel& min) {
  AddKernel<RunSegment<Empty::kZero>>(p, Spec("SegmentMax", type), max);
  AddKernel<RunSegment<Empty::kZero>>(p, Spec("SegmentMin", type), min);
}

template <class... T>
void AddReal(tw::Plugin& p) {
  (AddSums(p, tw::dtype<T>, kPlain<T, Summing<Total<T>>>, kMean<T>, kPlain<T, Multiplying<Total<T>>>), ...);
  (AddExtremes(p, tw::dtype<T>, kChoice<T, Largest<T>>, kChoice<T, Smallest<T>>), ...);
}
template <class... T>
void AddComplex(tw::Plugin& p) {
  (AddSums(p, tw::dtype<T>, kPlain<T, Summing<Total<T>>>, kMean<T>, kPlain<T, Multiplying<Total<T>>>), ...);
}
void AddSmallFloat(tw::Plugin& p, const char* type, const ReduceKernels& k) {
  AddSums(p, type, k.sum, k.mean, k.prod);
  AddExtremes(p, type, k.max, k.min);
}

}  // namespace

void register_segment(tw::Plugin& p) {
  const Reductions& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ReductionTable);
  AddSmallFloat(p, "float", t.of_float);
  AddSmallFloat(p, "half", t.of_half);
  AddSmallFloat(p, "bfloat16", t.of_bfloat16);
  AddReal<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
  AddComplex<complex64, complex128>(p);
}

}  // namespace thalweg::cpu
