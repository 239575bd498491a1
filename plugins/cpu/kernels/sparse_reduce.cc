// SparseReduceSum, SparseReduceMax and their forms with a sparse result. The dense forms add each
// element to its cell; the sparse forms sort the elements by cell. Either way the elements of a cell
// are combined in the order in which they are stored, so repeated and unsorted places are all right.
#include <numeric>

#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/sparse_input.h"

namespace thalweg::cpu {
namespace {

// The axes of a sparse tensor that stay, and the sizes of the result.
struct SparseReduction {
  Ints stays;           // the numbers of the axes that stay
  bool kept[kMaxRank];  // for each axis whether it stays
  Ints dims;

  SparseReduction(const SparseInput& in, const tw_view* axes, bool keep_dims) {
    const Ints reduced = ReadInts(axes, "reduction_axes");
    std::fill_n(kept, in.rank(), reduced.n > 0);  // no axes: all are reduced
    for (int i = 0; i < reduced.n; ++i) kept[Axis(reduced[i], in.rank(), "reduction_axes")] = false;
    for (int i = 0; i < in.rank(); ++i) {
      if (kept[i]) stays.push(i);
      if (kept[i] || keep_dims) dims.push(kept[i] ? in.size(i) : 1);
    }
  }
  int Compare(const int64_t* a, const int64_t* b) const {
    for (int i = 0; i < stays.n; ++i)
      if (a[stays[i]] != b[stays[i]]) return a[stays[i]] < b[stays[i]] ? -1 : 1;
    return 0;
  }
};

SparseInput ReducedInput(tw::In<int64_t> indices, const tw_view* values, tw::In<int64_t> shape) {
  return SparseInput(indices, values, shape, {"input_indices", "input_values", "input_shape"});
}

// Allocates the dense result and returns the cell of each element.
tw::TempVector<int64_t> DenseCells(tw::Frame f, const SparseInput& in, const SparseReduction& over, const tw::Out<tw::Any>& output) {
  int64_t elements = 1;
  bool empty = false;
  for (int i = 0; i < over.dims.n; ++i) {
    empty |= over.dims[i] == 0;
    if (!empty && __builtin_mul_overflow(elements, over.dims[i], &elements))
      Invalid("the dense result " + tw::text(over.dims.at, over.dims.n) + " has more than 2^63-1 elements; use " +
              "SparseReduceSumSparse or SparseReduceMaxSparse");
  }
  Allocate(output, over.dims.at, over.dims.n);
  tw::TempVector<int64_t> cells(size_t(in.count()), 0, f);
  for (int64_t k = 0; k < in.count(); ++k) {
    int64_t cell = 0;
    for (int i = 0; i < over.stays.n; ++i) cell = cell * in.size(int(over.stays[i])) + in.place(k)[over.stays[i]];
    cells[size_t(k)] = cell;
  }
  return cells;
}

// The elements of a sparse tensor by cell; those of one cell keep their order.
struct SparseCells {
  tw::TempVector<int64_t> order, begins;  // begins: of each cell in `order`, and the end

  SparseCells(tw::Frame f, const SparseInput& in, const SparseReduction& over) : order(size_t(in.count()), 0, f), begins(f) {
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int64_t a, int64_t b) { return over.Compare(in.place(a), in.place(b)) < 0; };
    if (!std::is_sorted(order.begin(), order.end(), before)) {
      const tw::Charge charge(f, order.size() * sizeof(int64_t));  // the memory of a stable sort
      std::stable_sort(order.begin(), order.end(), before);
    }
    for (size_t k = 0; k < order.size(); ++k)
      if (k == 0 || before(order[k - 1], order[k])) begins.push_back(int64_t(k));
    begins.push_back(int64_t(order.size()));
  }
  int64_t size() const { return int64_t(begins.size()) - 1; }

  // Allocates the result and writes all but its values.
  void Write(const SparseInput& in, const SparseReduction& over, tw::Out<int64_t> indices, tw::Out<tw::Any> values,
             tw::Out<int64_t> shape) const {
    const int64_t n = size(), rank = over.dims.n;
    const int64_t pairs[] = {n, rank};
    Allocate(indices, pairs, 2);
    Allocate(values, &n, 1);
    Allocate(shape, &rank, 1);
    std::copy_n(over.dims.at, rank, shape.data());
    int64_t* to = indices.data();
    for (int64_t cell = 0; cell < n; ++cell) {
      const int64_t* place = in.place(order[size_t(begins[size_t(cell)])]);
      for (int i = 0; i < in.rank(); ++i)
        if (over.kept[i] || rank == in.rank()) *to++ = over.kept[i] ? place[i] : 0;
    }
  }
};

// Sums of 16-bit types are kept in float.
struct SparseSum {
  template <class T>
  static Wide<T> Combine(Wide<T> x, Wide<T> y) {
    return Plus(x, y);
  }
};
// If one of the elements is NaN, so is the result.
struct SparseMax {
  template <class T>
  static Wide<T> Combine(Wide<T> x, Wide<T> y) {
    return x != x || x > y ? x : y;
  }
};

template <class How, class T>
class SparseReduce {
 public:
  explicit SparseReduce(const tw::Node& n) : keep_dims_(n.b("keep_dims")) {}
  void operator()(tw::Frame f, tw::In<int64_t> indices, tw::In<T> values, tw::In<int64_t> shape, tw::In<int32_t> axes,
                  tw::Out<T> output) const {
    const SparseInput in = ReducedInput(indices, values.v, shape);
    const tw::TempVector<int64_t> cells = DenseCells(f, in, SparseReduction(in, axes.v, keep_dims_), {output.f, output.o});
    tw::TempVector<Wide<T>> wide(kIsSmallFloat<T> ? output.size() : 0, Wide<T>(0), f);
    Wide<T>* sums = wide.data();
    if constexpr (!kIsSmallFloat<T>) {
      sums = output.data();
      std::fill_n(sums, output.size(), T(0));
    }
    tw::TempVector<char> met(output.size(), 0, f);
    for (size_t k = 0; k < cells.size(); ++k) {
      const auto cell = size_t(cells[k]);
      sums[cell] = met[cell] ? How::template Combine<T>(sums[cell], Wide<T>(values[k])) : Wide<T>(values[k]);
      met[cell] = 1;
    }
    for (size_t cell = 0; cell < wide.size(); ++cell) output[cell] = T(wide[cell]);
  }

 private:
  const bool keep_dims_;
};

template <class How, class T>
class SparseReduceSparse {
 public:
  explicit SparseReduceSparse(const tw::Node& n) : keep_dims_(n.b("keep_dims")) {}
  void operator()(tw::Frame f, tw::In<int64_t> indices, tw::In<T> values, tw::In<int64_t> shape, tw::In<int32_t> axes,
                  tw::Out<int64_t> out_indices, tw::Out<T> out_values, tw::Out<int64_t> out_shape) const {
    const SparseInput in = ReducedInput(indices, values.v, shape);
    const SparseReduction over(in, axes.v, keep_dims_);
    const SparseCells cells(f, in, over);
    cells.Write(in, over, out_indices, {out_values.f, out_values.o}, out_shape);
    for (int64_t cell = 0; cell < cells.size(); ++cell) {
      const int64_t first = cells.begins[size_t(cell)], end = cells.begins[size_t(cell) + 1];
      auto sum = Wide<T>(values[uint64_t(cells.order[size_t(first)])]);
      for (int64_t k = first + 1; k < end; ++k) sum = How::template Combine<T>(sum, Wide<T>(values[uint64_t(cells.order[size_t(k)])]));
      out_values[uint64_t(cell)] = T(sum);
    }
  }

 private:
  const bool keep_dims_;
};

template <class How, class... T>
void AddSparseReduce(tw::Plugin& p, const char* dense, const char* sparse) {
  p.kernel<SparseReduce<How, T>...>(dense);
  p.kernel<SparseReduceSparse<How, T>...>(sparse);
}

}  // namespace

void register_sparse_reduce(tw::Plugin& p) {
  AddSparseReduce<SparseSum, float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
                  complex64, complex128>(p, "SparseReduceSum @CPU", "SparseReduceSumSparse @CPU");
  AddSparseReduce<SparseMax, float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      p, "SparseReduceMax @CPU", "SparseReduceMaxSparse @CPU");
}

}  // namespace thalweg::cpu
