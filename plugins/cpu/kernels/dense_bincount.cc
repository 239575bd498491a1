// DenseBincount and RaggedBincount. Weights are added in order; weights of float are added in
// double. Larger numbers are ignored, negative ones are an error.
#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Counts the numbers of each row. begin(row): where the row begins; begin(rows): where the last one
// ends.
template <class T, class Begin>
void Count(const tw_frame* f, const tw_view* numbers, const tw_view* weights, bool binary, int64_t rows, int64_t bins, Begin&& begin,
           T* out) {
  if (weights->count != 0 && weights->count != numbers->count)
    Invalid("weights " + DimsText(weights) + " are neither empty nor one for each of the numbers, " + DimsText(numbers));
  for (uint64_t i = 0; i < numbers->count; ++i)
    if (IndexAt(numbers, i) < 0) Invalid("number " + PositionText(numbers, i) + " = " + tw::text(IndexAt(numbers, i)) + " is negative");
  const T* weight = weights->count ? reinterpret_cast<const T*>(Bytes(weights)) : nullptr;
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const int64_t cleared = std::min<int64_t>(bins, int64_t{1} << 40);  // no rows may ask for any number of bins
  ParallelFor(f, rows, Cost(cleared + 1) + Cost(int64_t(numbers->count) / std::max<int64_t>(1, rows), 8), [&](int64_t first, int64_t end) {
    const TempArray<Sum> sums(f, size_t(bins));
    for (int64_t row = first; row < end; ++row) {
      std::fill_n(sums.get(), bins, Sum(0));
      for (int64_t i = begin(row); i < begin(row + 1); ++i) {
        const int64_t bin = IndexAt(numbers, uint64_t(i));
        if (bin >= bins) continue;
        Sum& sum = sums[size_t(bin)];
        sum = binary ? Sum(1) : Plus(sum, weight ? Sum(weight[i]) : Sum(1));
      }
      for (int64_t bin = 0; bin < bins; ++bin) out[row * bins + bin] = T(sums[size_t(bin)]);
    }
  });
}

int64_t Bins(const tw_view* size) {
  const int64_t bins = IndexAt(size, 0);
  if (bins < 0) Invalid("size is " + tw::text(bins) + "; it must not be negative");
  return bins;
}

template <class T>
class Dense {
 public:
  explicit Dense(const tw::Node& n) : binary_(n.b("binary_output")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> size, tw::In<T> weights, tw::Out<T> output) const {
    const int64_t bins = Bins(size.v);
    if (input.rank() < 1 || input.rank() > 2) Invalid("input " + DimsText(input.v) + " must be a vector or a matrix");
    const int64_t rows = input.rank() == 2 ? input.dim(0) : 1, columns = input.dim(-1), dims[] = {rows, bins};
    Allocate(output, input.rank() == 2 ? dims : dims + 1, input.rank());
    Count<T>(f.f, input.v, weights.v, binary_, rows, bins, [columns](int64_t row) { return row * columns; }, output.data());
  }

 private:
  bool binary_;
};

template <class T>
class Ragged {
 public:
  explicit Ragged(const tw::Node& n) : binary_(n.b("binary_output")) {}
  void operator()(tw::Frame f, tw::In<int64_t> splits, tw::In<tw::Any> values, tw::In<tw::Any> size, tw::In<T> weights,
                  tw::Out<T> output) const {
    const int64_t bins = Bins(size.v), rows = int64_t(splits.size()) - 1, dims[] = {rows, bins};
    if (rows < 0) Invalid("splits is empty; it needs at least one entry");
    for (int64_t i = 0; i <= rows; ++i) {
      const int64_t at = splits[uint64_t(i)];
      if (i == 0 ? at != 0 : at < splits[uint64_t(i - 1)])
        Invalid("splits[" + tw::text(i) + "] is " + tw::text(at) + "; splits begin with 0 and never fall");
    }
    if (splits[uint64_t(rows)] != int64_t(values.size()))
      Invalid("splits end with " + tw::text(splits[uint64_t(rows)]) + ", but there are " + tw::text(int64_t(values.size())) + " values");
    Allocate(output, dims, 2);
    Count<T>(f.f, values.v, weights.v, binary_, rows, bins, [&](int64_t row) { return splits[uint64_t(row)]; }, output.data());
  }

 private:
  bool binary_;
};

}  // namespace

void register_dense_bincount(tw::Plugin& p) {
  p.kernel<Dense<int32_t>, Dense<int64_t>, Dense<float>, Dense<double>>("DenseBincount @CPU");
  p.kernel<Ragged<int32_t>, Ragged<int64_t>, Ragged<float>, Ragged<double>>("RaggedBincount @CPU");
}

}  // namespace thalweg::cpu
