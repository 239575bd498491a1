// SparseTensorDenseMatMul. The stored elements of the sparse matrix are sorted by row of the
// product, unless they are sorted already. Each row of the product is the sum of the dense matrix's
// rows that the elements select, in their original order. For a few columns sorting would take
// longer than the sums, so the elements are added to the product in the order in which they are
// stored.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/plain_product.h"
#include "kernels/register.h"
#include "kernels/sparse_places.h"
#include "kernels/sparse_product.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kFewRows = 1 << 16;  // up to this number there is always a table of all rows
constexpr int64_t kColumns = 256;      // the most columns of the product that one task takes

constexpr size_t kShortRow = 64;  // bytes of a row of the product for which elements are added unsorted

// Calls body(pairs) with the indices in their type.
template <class Body>
auto WithPairs(const tw_view* indices, Body&& body) {
  if (indices->dtype == TW_INT32) return body(reinterpret_cast<const int32_t*>(Bytes(indices)));
  return body(reinterpret_cast<const int64_t*>(Bytes(indices)));
}

// Returns true if the elements are sorted by row of the product, which is number `row` (0 or 1) of
// a pair. Throws INVALID_ARGUMENT for a pair outside `sizes`.
template <class Index>
bool CheckPairs(const tw_frame* f, const tw_view* indices, const Index* pairs, const int64_t sizes[2], int row) {
  std::atomic<bool> all_inside{true}, all_sorted{true};
  ParallelFor(f, indices->dims[0], 4, [&](int64_t begin, int64_t end) {
    bool inside = true, sorted = true;
    for (int64_t e = begin; e < end; ++e)
      for (int i = 0; i < 2; ++i) inside &= (int64_t(pairs[2 * e + i]) >= 0) & (int64_t(pairs[2 * e + i]) < sizes[i]);
    for (int64_t e = std::max<int64_t>(begin, 1); e < end; ++e) sorted &= pairs[2 * e - 2 + row] <= pairs[2 * e + row];
    if (!inside) all_inside = false;
    if (!sorted) all_sorted = false;
  });
  for (uint64_t k = 0; !all_inside && k < indices->count; ++k)
    if (int64_t(pairs[k]) < 0 || int64_t(pairs[k]) >= sizes[k % 2])
      Invalid("a_indices" + PositionText(indices, k) + " = " + std::to_string(pairs[k]) + " is not in [0, " + std::to_string(sizes[k % 2]) +
              "), the size of axis " + std::to_string(k % 2) + " of a_shape " + tw::text(sizes, 2));
  return all_sorted;
}

// The stored elements by row of the product; elements of a row keep their order.
class ByRow {
 public:
  // row: which number of a pair is the row; rows: the rows of the product; sorted: true if the
  // elements are sorted by row.
  ByRow(const tw_frame* f, const tw_view* indices, int row, int64_t rows, bool sorted)
      : to_(size_t(indices->dims[0]), f), at_(size_t(indices->dims[0]), f), order_(f), first_(f), met_(f) {
    WithPairs(indices, [&](const auto* pairs) {
      for (size_t e = 0; e < to_.size(); ++e) {
        to_[e] = pairs[2 * e + size_t(row)];
        at_[e] = pairs[2 * e + size_t(1 - row)];
      }
    });
    if (!sorted) order_.resize(to_.size());
    few_ = rows > kFewRows && rows > 8 * int64_t(to_.size());
    few_ ? FindMet() : CountAll(rows);
    if (!sorted) at_ = Ordered(at_.data());
    tw::TempVector<int64_t>(f).swap(to_);
  }
  // True if only some rows have elements; then only these rows are counted, else all are.
  bool few() const { return few_; }
  int64_t size() const { return int64_t(first_.size()) - 1; }
  int64_t row(int64_t i) const { return few_ ? met_[size_t(i)] : i; }
  // values: the values of the elements, in sorted order.
  template <class S>
  SparseRow<S> Row(int64_t i, const S* values) const {
    const int64_t first = first_[size_t(i)];
    return {first_[size_t(i) + 1] - first, int64_t(at_.size()) - first, at_.data() + first, values + first};
  }
  bool sorted() const { return order_.empty(); }
  // Returns per-element data in sorted order. REQUIRES: !sorted().
  template <class S>
  tw::TempVector<S> Ordered(const S* of) const {
    tw::TempVector<S> ordered(order_.size(), tw::TempAllocator<S>(order_.get_allocator()));
    for (size_t k = 0; k < order_.size(); ++k) ordered[k] = of[order_[k]];
    return ordered;
  }

 private:
  void CountAll(int64_t rows) {
    first_.assign(size_t(rows) + 1, 0);
    for (int64_t to : to_) ++first_[size_t(to)];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());  // the end of each row
    if (sorted()) {
      std::copy_backward(first_.begin(), first_.end() - 1, first_.end());
      first_[0] = 0;
    } else {
      for (size_t e = to_.size(); e-- > 0;) order_[size_t(--first_[size_t(to_[e])])] = int64_t(e);
    }
  }

  void FindMet() {
    const tw::Charge charge(order_.get_allocator().payer(), order_.size() * sizeof(int64_t));  // the memory of a stable sort
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return to_[size_t(a)] < to_[size_t(b)]; });
    for (size_t k = 0; k < to_.size(); ++k) {
      const int64_t row = to_[sorted() ? k : size_t(order_[k])];
      if (!met_.empty() && met_.back() == row) continue;
      met_.push_back(row);
      first_.push_back(int64_t(k));
    }
    first_.push_back(int64_t(to_.size()));
  }

  bool few_ = false;
  tw::TempVector<int64_t> to_, at_, order_;  // order_ is empty if the elements are sorted
  tw::TempVector<int64_t> first_, met_;
};

// The element type of the loops: half and bfloat16 as their bits.
template <class T>
using Stored = std::conditional_t<kIsSmallFloat<T>, uint16_t, T>;
template <class T>
const Stored<T>* Bits(const T* x) {
  return reinterpret_cast<const Stored<T>*>(x);
}

template <class T>
class SparseMatMul {
  using S = Stored<T>;

 public:
  explicit SparseMatMul(const tw::Node& n)
      : table_(TW_CPU_FOR_ISA(DetectIsa(n.host()), SparseProduct)), adjoint_a_(n.b("adjoint_a")), adjoint_b_(n.b("adjoint_b")) {}

  void operator()(tw::Frame f, tw::In<tw::Any> a_indices, tw::In<T> a_values, tw::In<int64_t> a_shape, tw::In<T> b,
                  tw::Out<T> product) const {
    if (a_indices.rank() != 2 || a_indices.dim(1) != 2 || a_values.rank() != 1 || a_values.dim(0) != a_indices.dim(0) || b.rank() != 2)
      throw tw::Error{TW_INTERNAL, "a_indices is " + DimsText(a_indices.v) + ", a_values " + DimsText(a_values.v) + ", b " + DimsText(b.v)};
    if (a_shape.size() != 2) Invalid("a_shape has " + std::to_string(a_shape.size()) + " sizes; it must have 2");
    const int64_t sizes[2] = {a_shape[0], a_shape[1]};
    WantSizes(sizes, 2, "a_shape");
    const int64_t rows = sizes[adjoint_a_ ? 1 : 0], inner = sizes[adjoint_a_ ? 0 : 1], columns = b.dim(adjoint_b_ ? 0 : 1);
    if (inner != b.dim(adjoint_b_ ? 1 : 0))
      Invalid("inner dimensions differ: a_shape is " + tw::text(sizes, 2) + (adjoint_a_ ? ", adjoint" : "") + ", b is " + DimsText(b.v) +
              (adjoint_b_ ? ", adjoint" : ""));
    const int row = adjoint_a_ ? 1 : 0;  // which number of a pair is the row of the product
    const bool sorted = WithPairs(a_indices.v, [&](const auto* pairs) { return CheckPairs(f.f, a_indices.v, pairs, sizes, row); });
    const int64_t dims[] = {rows, columns};
    Allocate(product, dims, 2);
    if (product.size() == 0) return;

    TempArray<char> turned;
    const T* dense = b.data();
    if (adjoint_b_) {
      turned = TempArray<char>(f, b.size() * sizeof(T));
      dense = Turn(f.f, b.v, turned.get());
    }
    const S* values = Bits(a_values.data());
    if constexpr (!kIsSmallFloat<T>) {
      if (size_t(columns) * sizeof(T) <= kShortRow) {
        FillZero(f.f, product.v());
        return WithPairs(a_indices.v, [&](const auto* pairs) {
          AddUp(f.f, pairs, row, sorted, values, a_indices.dim(0), dense, product.data(), columns);
        });
      }
    }
    const ByRow elements(f.f, a_indices.v, row, rows, sorted);
    tw::TempVector<S> ordered(f);
    if (!sorted) values = (ordered = elements.Ordered(values)).data();
    if (elements.few()) FillZero(f.f, product.v());
    const int64_t chunks = (columns + kColumns - 1) / kColumns, each = a_indices.dim(0) / std::max<int64_t>(1, elements.size()) + 1;
    ParallelFor(f.f, elements.size() * chunks, Cost(each, std::clamp<int64_t>(columns, 8, kColumns)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t k = i / chunks, column = i % chunks * kColumns;
        Run(elements.Row(k, values), dense + column, columns, product.data() + elements.row(k) * columns + column,
            std::min(kColumns, columns - column));
      }
    });
  }

 private:
  // Transposes b [n, k] to [k, n] at `to`.
  static const T* Turn(const tw_frame* f, const tw_view* b, char* to) {
    tw_view turned = *b;
    turned.data = to;
    turned.offset = 0;
    Box box;
    box.Add(b->dims[1], 1, b->dims[0]);
    box.Add(b->dims[0], b->dims[1], 1);
    CopyBox(f, box, b, 0, &turned, 0);
    return reinterpret_cast<const T*>(to);
  }

  // Adds the product of each element to y, in stored order. If the elements are sorted by row,
  // threads share them by whole rows.
  template <class Index>
  void AddUp(const tw_frame* f, const Index* pairs, int row, bool sorted, const T* values, int64_t count, const T* b, T* y,
             int64_t columns) const {
    const auto add = [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e)
        AddRow(ConjugateIf(adjoint_a_, values[e]), b + int64_t(pairs[2 * e + 1 - row]) * columns, y + int64_t(pairs[2 * e + row]) * columns,
               columns);
    };
    if (!sorted) return add(0, count);
    const auto next = [&](int64_t e) {  // the beginning of the next row
      while (e > 0 && e < count && pairs[2 * e + row] == pairs[2 * e - 2 + row]) ++e;
      return e;
    };
    ParallelFor(f, count, 8 + columns, [&](int64_t begin, int64_t end) { add(next(begin), next(end)); });
  }
  void AddRow(T value, const T* __restrict from, T* __restrict to, int64_t n) const {
    for (int64_t j = 0; j < n; ++j) {
      const T x = ConjugateIf(adjoint_b_, from[j]);
      if constexpr (kIsFloat<T>)
        to[j] += value * x;
      else
        to[j] = MultiplyAdd(to[j], value, x);
    }
  }

  void Run(const SparseRow<S>& row, const T* b, int64_t stride, T* y, int64_t n) const {
    if constexpr (kIsFloat<T>) {
      Loop()(row, Bits(b), stride, reinterpret_cast<S*>(y), n);
    } else {
      std::fill(y, y + n, T(0));
      for (int64_t e = 0; e < row.count; ++e) AddRow(ConjugateIf(adjoint_a_, row.values[e]), b + row.at[e] * stride, y, n);
    }
  }
  SparseProductRow<S> Loop() const {
    if constexpr (std::is_same_v<T, float>)
      return table_.of_float;
    else if constexpr (std::is_same_v<T, double>)
      return table_.of_double;
    else if constexpr (std::is_same_v<T, half>)
      return table_.of_half;
    else
      return table_.of_bfloat16;
  }

  const SparseProductTable& table_;
  const bool adjoint_a_, adjoint_b_;
};

}  // namespace

void register_sparse_tensor_dense_matmul(tw::Plugin& p) {
  p.kernel<SparseMatMul<float>, SparseMatMul<double>, SparseMatMul<half>, SparseMatMul<bfloat16>, SparseMatMul<int32_t>,
           SparseMatMul<int64_t>, SparseMatMul<complex64>, SparseMatMul<complex128>>("SparseTensorDenseMatMul @CPU");
}

}  // namespace thalweg::cpu
