// SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN, with and without a number of segments:
// selected rows, reduced by segment. Their gradients divide the rows of the result's gradient in
// the same way and add them to the selected rows.
#include <cmath>
#include <vector>

#include "kernels/buckets.h"
#include "kernels/common/copy.h"
#include "kernels/common/kernel.h"
#include "kernels/common/rows.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/reduce_loops.h"
#include "kernels/register.h"
#include "kernels/segment.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kFewRows = 1 << 16;  // up to this number there are always buckets for all rows

void WantVector(const tw_view* indices) {
  if (indices->rank != 1) throw tw::Error{TW_INTERNAL, "indices is " + DimsText(indices) + "; it must be a vector"};
}

template <Divisor kDivisor>
void RunSparse(const tw_frame* f, const ReduceKernel& k) {
  const tw_view *data = f->in[0], *indices = f->in[1], *ids = f->in[2];
  if (data->rank < 1) throw tw::Error{TW_INTERNAL, "data is a scalar; it must have rows"};
  WantVector(indices);
  CheckIndices(indices, 0, data->dims[0], "indices");
  int64_t segments = -1;
  if (f->n_in > 3) {
    segments = IndexAt(f->in[3], 0);
    if (segments < 0) throw tw::Error{TW_INTERNAL, "num_segments is " + std::to_string(segments) + "; it must not be negative"};
  }
  const int64_t used = CheckSegments(ids, int64_t(indices->count), segments);
  Ints dims;
  dims.push(segments < 0 ? used : segments);
  for (int i = 1; i < data->rank; ++i) dims.push(data->dims[i]);
  Allocate(tw::Out<tw::Any>{f, 0}, dims.at, dims.n);
  ReduceSegments(f, {&k, Empty::kZero, kDivisor}, data, indices, ids, f->out[0]);
}

// Returns the factors of each segment's rows; empty if they are 1.
template <Divisor kDivisor>
tw::TempVector<double> Scales(tw::Frame f, const tw_view* ids, int64_t segments) {
  tw::TempVector<double> scales(f);
  if (kDivisor == Divisor::kNone) return scales;
  scales.resize(size_t(segments), 0.);
  for (uint64_t i = 0; i < ids->count; ++i) ++scales[size_t(IndexAt(ids, i))];
  for (double& scale : scales) scale = kDivisor == Divisor::kCount ? 1 / scale : 1 / std::sqrt(scale);
  return scales;
}

// Adds to the output's rows the gradients in their buckets. scales: one per segment, or empty.
template <class T, class SomeBuckets>
void AddUp(const tw_frame* f, tw::In<T> grad, tw::In<tw::Any> ids, const tw::TempVector<double>& scales, const SomeBuckets& buckets,
           int64_t inner, T* output) {
  ForBuckets(f, buckets, inner, 3, [&](int64_t bucket, int64_t column, int64_t n) {
    double sums[kBucketColumns] = {};
    for (const int64_t* i = buckets.begin(bucket); i < buckets.end(bucket); ++i) {
      const int64_t segment = IndexAt(ids.v, uint64_t(*i));
      const T* from = grad.data() + segment * inner + column;
      const double scale = scales.empty() ? 1 : scales[size_t(segment)];
      for (int64_t j = 0; j < n; ++j) sums[j] += double(Wide<T>(from[j])) * scale;
    }
    T* to = output + buckets.target(bucket) * inner + column;
    for (int64_t j = 0; j < n; ++j) to[j] = T(Wide<T>(sums[j]));
  });
}

template <class T, Divisor kDivisor>
void Grad(tw::Frame f, tw::In<T> grad, tw::In<tw::Any> indices, tw::In<tw::Any> ids, tw::In<int32_t> output_dim0, tw::Out<T> output) {
  if (grad.rank() < 1) throw tw::Error{TW_INTERNAL, "grad is a scalar; it must have rows"};
  const int64_t rows = output_dim0[0], count = int64_t(indices.size());
  if (rows < 0) throw tw::Error{TW_INTERNAL, "output_dim0 is " + std::to_string(rows) + "; it must not be negative"};
  Ints dims;
  dims.push(rows);
  for (int i = 1; i < grad.rank(); ++i) dims.push(grad.dim(i));
  WantVector(indices.v);
  CheckIndices(indices.v, 0, rows, "indices");
  CheckSegments(ids.v, count, grad.dim(0));
  Allocate(output, dims.at, dims.n);
  const int64_t inner = Product(dims.at, 1, dims.n);
  const tw::TempVector<double> scales = Scales<kDivisor>(f, ids.v, grad.dim(0));
  const auto target = [&](int64_t i) { return IndexAt(indices.v, uint64_t(i)); };
  if (rows <= kFewRows || rows / 2 <= count) return AddUp(f.f, grad, ids, scales, Buckets(f.f, count, rows, target), inner, output.data());
  FillZero(f.f, output.v());
  AddUp(f.f, grad, ids, scales, FewBuckets(f.f, count, target), inner, output.data());
}

template <Divisor kDivisor>
void AddOp(tw::Plugin& p, const std::string& op, const std::string& type, const ReduceKernel& k) {
  AddKernel<RunSparse<kDivisor>>(p, op + "(" + type + ", _, _ -> " + type + ") @CPU", k);
  AddKernel<RunSparse<kDivisor>>(p, op + "WithNumSegments(" + type + ", _, _, _ -> " + type + ") @CPU", k);
}
void AddFloat(tw::Plugin& p, const char* type, const ReduceKernel& sum) {
  AddOp<Divisor::kNone>(p, "SparseSegmentSum", type, sum);
  AddOp<Divisor::kCount>(p, "SparseSegmentMean", type, sum);
  AddOp<Divisor::kRootOfCount>(p, "SparseSegmentSqrtN", type, sum);
}

template <class T, class Acc>
constexpr ReduceKernel kSum = MakeReduce<T, Acc, ReduceLoops<T, Acc, Summing<Acc>>>();
template <class... T>
void AddWhole(tw::Plugin& p) {
  (AddOp<Divisor::kNone>(p, "SparseSegmentSum", tw::dtype<T>, kSum<T, uint64_t>), ...);
}
template <Divisor kDivisor>
void AddGrad(tw::Plugin& p, const char* spec) {
  p.kernel<Grad<float, kDivisor>, Grad<double, kDivisor>, Grad<half, kDivisor>, Grad<bfloat16, kDivisor>>(spec);
}

}  // namespace

void register_sparse_segment(tw::Plugin& p) {
  const Reductions& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ReductionTable);
  AddFloat(p, "float", t.of_float.sum);
  AddFloat(p, "half", t.of_half.sum);
  AddFloat(p, "bfloat16", t.of_bfloat16.sum);
  AddFloat(p, "double", kSum<double, double>);
  AddWhole<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
  AddGrad<Divisor::kNone>(p, "SparseSegmentSumGrad @CPU");
  AddGrad<Divisor::kCount>(p, "SparseSegmentMeanGrad @CPU");
  AddGrad<Divisor::kRootOfCount>(p, "SparseSegmentSqrtNGrad @CPU");
}

}  // namespace thalweg::cpu
