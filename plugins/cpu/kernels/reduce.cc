// Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm over chosen axes, and L2Loss over all. Axes
// that are reduced together are joined first. The remaining axes end either in a reduced axis (each
// result takes in rows) or in a kept axis (rows are taken in side by side). Long reductions are cut
// into blocks that are merged in order. The size of the blocks depends only on shapes, so the bits
// do not depend on the number of threads.
#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/norm.h"
#include "kernels/reduce_loops.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kMinRows = 256;            // the least rows of a column reduction that one set of accumulators takes in
constexpr int64_t kColumns = kWidenedBlock;  // accumulators side by side: mostly 8 KiB, in the first-level cache together with the rows
constexpr int64_t kAccBytes = sizeof(SquareSum);  // the size of the largest accumulator
static_assert(kAccBytes <= kMostAccBytes);

// Joined axes, outermost first. The last axis is kept separately as `inner`.
struct Axes {
  int rank = 0;
  int64_t dims[kMaxRank], steps[kMaxRank];
  int64_t count = 1;
  void Add(int64_t dim, int64_t step) {
    dims[rank] = dim;
    steps[rank++] = step;
    count *= dim;
  }
  int64_t Offset(int64_t i) const {
    int64_t at = 0;
    for (int a = rank - 1; a > 0; i /= dims[a--]) at += i % dims[a] * steps[a];
    return rank > 0 ? at + i * steps[0] : 0;
  }
};
struct Layout {
  Axes kept, reduced;  // without the innermost
  int64_t inner = 1;
  bool inner_reduced = false;

  Layout(const tw_view* x, const bool* reduce) {
    Axes all;
    bool flags[kMaxRank];
    const Ints dense = DenseStrides(x->dims, x->rank);
    for (int i = 0; i < x->rank; ++i) {
      if (x->dims[i] == 1) continue;
      if (all.rank > 0 && flags[all.rank - 1] == reduce[i]) {
        all.dims[all.rank - 1] *= x->dims[i];
        all.steps[all.rank - 1] = dense[i];
        continue;
      }
      flags[all.rank] = reduce[i];
      all.Add(x->dims[i], dense[i]);
    }
    if (all.rank == 0) return;
    for (int i = 0; i + 1 < all.rank; ++i) (flags[i] ? reduced : kept).Add(all.dims[i], all.steps[i]);
    inner = all.dims[all.rank - 1];
    inner_reduced = flags[all.rank - 1];
  }
};

class Reducer {
 public:
  Reducer(const tw_frame* f, const ReduceKernel& k, const tw_view* x, const tw_view* y, const Layout& layout)
      : f_(f), k_(k), l_(layout), x_(Bytes(x)), y_(Bytes(y)), taken_(layout.reduced.count * (layout.inner_reduced ? layout.inner : 1)) {}

  // Reduces if each result takes in rows.
  void Rows() {
    const int64_t results = l_.kept.count, blocks = (taken_ + kRowBlock - 1) / kRowBlock;
    if (blocks == 1) {
      ParallelFor(f_, results, taken_ + 8, [&](int64_t begin, int64_t end) {
        alignas(64) char acc[kColumns * kAccBytes];
        for (; begin < end; begin += kColumns) {
          const int64_t n = std::min(kColumns, end - begin);
          k_.start(acc, n);
          for (int64_t i = 0; i < n; ++i) TakeBlock(l_.kept.Offset(begin + i), 0, taken_, acc + i * k_.acc_bytes);
          Finish(acc, begin, n);
        }
      });
      return;
    }
    char* partial = static_cast<char*>(f_->scratch);
    ParallelFor(f_, results * blocks, kRowBlock, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        char* acc = partial + t * k_.acc_bytes;
        k_.start(acc, 1);
        const int64_t from = t % blocks * kRowBlock;
        TakeBlock(l_.kept.Offset(t / blocks), from, std::min(taken_, from + kRowBlock), acc);
      }
    });
    MergeBlocks(blocks, results, 1);
  }

  // Reduces if rows are taken in side by side.
  void Columns() {
    const int64_t block = std::max(kMinRows, kRowBlock * 2 / l_.inner), blocks = (taken_ + block - 1) / block;
    const int64_t chunks = (l_.inner + kColumns - 1) / kColumns;
    char* partial = static_cast<char*>(f_->scratch);
    const int64_t cost = std::min(block, taken_) * std::min(l_.inner, kColumns);
    ParallelFor(f_, l_.kept.count * blocks * chunks, cost, [&](int64_t begin, int64_t end) {
      alignas(64) char acc[kColumns * kAccBytes];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t column = t % chunks * kColumns, n = std::min(kColumns, l_.inner - column), part = t / chunks;
        const int64_t row = part % blocks * block;
        k_.start(acc, n);
        TakeRows(l_.kept.Offset(part / blocks) + column, row, std::min(taken_, row + block), n, acc);
        if (blocks == 1)
          Finish(acc, part * l_.inner + column, n);
        else
          std::copy(acc, acc + n * k_.acc_bytes, partial + (part * l_.inner + column) * k_.acc_bytes);
      }
    });
    if (blocks > 1) MergeBlocks(blocks, l_.kept.count, l_.inner);
  }

  // Writes the result of no elements to every result.
  void Nothing(int64_t results) {
    alignas(64) char acc[kColumns * kAccBytes];
    k_.start(acc, std::min(results, kColumns));
    for (int64_t i = 0; i < results; i += kColumns) Finish(acc, i, std::min(kColumns, results - i));
  }

  void SetTaken(int64_t count) { taken_ = count; }

 private:
  // Adds to *acc elements [begin, end) of those that are reduced to one result; `at` is the first
  // of all.
  void TakeBlock(int64_t at, int64_t begin, int64_t end, char* acc) {
    if (l_.reduced.rank == 0) return TakeRow(x_ + (at + begin) * k_.x_bytes, end - begin, acc);
    while (begin < end) {
      const int64_t row = begin / l_.inner, column = begin % l_.inner, n = std::min(end - begin, l_.inner - column);
      TakeRow(x_ + (at + l_.reduced.Offset(row) + column) * k_.x_bytes, n, acc);
      begin += n;
    }
  }
  void TakeRow(const char* x, int64_t n, char* acc) {
    if (!k_.load) return k_.take_row(x, n, acc);
    alignas(64) float wide[kColumns];
    for (int64_t i = 0; i < n; i += kColumns) {
      const int64_t m = std::min(kColumns, n - i);
      k_.load(reinterpret_cast<const uint16_t*>(x) + i, wide, m);
      k_.take_row(wide, m, acc);
    }
  }
  // Adds rows [begin, end) to acc[0] .. acc[n - 1]; `at` is the first element of all.
  void TakeRows(int64_t at, int64_t begin, int64_t end, int64_t n, char* acc) {
    const Axes& r = l_.reduced;
    const int64_t run = r.rank > 0 ? r.dims[r.rank - 1] : 1, stride = r.rank > 0 ? r.steps[r.rank - 1] : 0;
    while (begin < end) {
      const int64_t rows = std::min(end - begin, run - begin % run);
      const char* x = x_ + (at + r.Offset(begin)) * k_.x_bytes;
      begin += rows;
      if (!k_.load) {
        k_.take_rows(x, n, stride, rows, acc);
        continue;
      }
      alignas(64) float wide[kColumns];
      for (int64_t i = 0; i < rows; ++i) {
        k_.load(reinterpret_cast<const uint16_t*>(x) + i * stride, wide, n);
        k_.take_rows(wide, n, 0, 1, acc);
      }
    }
  }
  // The scratch holds `blocks` rows of `width` accumulators for each outer result.
  void MergeBlocks(int64_t blocks, int64_t outer, int64_t width) {
    const char* partial = static_cast<const char*>(f_->scratch);
    const int64_t chunks = (width + kColumns - 1) / kColumns;
    ParallelFor(f_, outer * chunks, blocks * std::min(width, kColumns), [&](int64_t begin, int64_t end) {
      alignas(64) char acc[kColumns * kAccBytes];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t column = t % chunks * kColumns, n = std::min(kColumns, width - column), o = t / chunks;
        k_.start(acc, n);
        for (int64_t b = 0; b < blocks; ++b) k_.merge(partial + ((o * blocks + b) * width + column) * k_.acc_bytes, n, acc);
        Finish(acc, o * width + column, n);
      }
    });
  }
  void Finish(const char* acc, int64_t at, int64_t n) {
    if (!k_.store) return k_.finish(acc, n, taken_, y_ + at * k_.y_bytes);
    alignas(64) float wide[kColumns];
    k_.finish(acc, n, taken_, wide);
    k_.store(wide, reinterpret_cast<uint16_t*>(y_) + at, n);
  }

  const tw_frame* f_;
  const ReduceKernel& k_;
  const Layout& l_;
  const char* x_;
  char* y_;
  int64_t taken_;  // the number of elements reduced to one result
};

void Run(const tw_frame* f, const ReduceKernel& k, const bool* reduce) {
  const tw_view *x = f->in[0], *y = f->out[0];
  if (y->count == 0) return;
  const Layout layout(x, reduce);
  Reducer r(f, k, x, y, layout);
  if (x->count == 0) {
    r.SetTaken(0);
    r.Nothing(int64_t(y->count));
  } else if (layout.inner_reduced) {
    r.Rows();
  } else {
    r.Columns();
  }
}

// Sizes the scratch for the accumulators of blocks. The reduced axes are not known yet. But more
// than one block means more than kRowBlock elements in all, and a block then takes in at least
// kMinRows / 2 elements per accumulator on average.
tw_status* PrepareReduce(const tw_node* n, void* kernel, uint64_t* out_scratch) {
  const int64_t count = Product(n->shapes[0].dims, 0, n->shapes[0].rank);
  *out_scratch = count > kRowBlock ? (uint64_t(count) / (kMinRows / 2) + 1) * static_cast<const ReduceKernel*>(kernel)->acc_bytes : 0;
  return nullptr;
}

void RunReduce(const tw_frame* f, const ReduceKernel& k) {
  const tw_view *x = f->in[0], *axes = f->in[1];
  bool reduce[kMaxRank] = {};
  for (uint64_t i = 0; i < axes->count; ++i) {
    const int axis = Axis(IndexAt(axes, i), x->rank, "reduction axis");
    if (reduce[axis]) Invalid("reduction axis " + std::to_string(axis) + " is named twice");
    reduce[axis] = true;
  }
  Run(f, k, reduce);
}

void RunL2Loss(const tw_frame* f, const ReduceKernel& k) {
  bool reduce[kMaxRank];
  std::fill(reduce, reduce + kMaxRank, true);
  Run(f, k, reduce);
}

// ---- Tables ----

template <class T, class Acc, class Loops>
inline constexpr ReduceKernel kPlain = MakeReduce<T, Acc, Loops>();
template <class T, class Acc, class Loops>
inline constexpr ReduceKernel kMean = MakeReduce<T, Acc, Loops>(FinishMean<T, Acc>);

template <class T>
inline constexpr ReduceKernel kNorm = MakeReduce<T, NormSum<T>, ReduceLoops<T, NormSum<T>, Norm<T>>>(FinishNorm<T>);

// The type in which means are summed: 64 bits for integers.
template <class T>
using Total = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

struct Every {
  static constexpr uint8_t kStart = 1;
  static uint8_t Step(uint8_t a, uint8_t x) { return a & x; }
  static uint8_t Merge(uint8_t a, uint8_t b) { return a & b; }
};
struct Some {
  static constexpr uint8_t kStart = 0;
  static uint8_t Step(uint8_t a, uint8_t x) { return a | x; }
  static uint8_t Merge(uint8_t a, uint8_t b) { return a | b; }
};

std::string Spec(const std::string& op, const char* type) { return op + "(" + type + ", _ -> " + type + ") @CPU"; }

void AddReduce(tw::Plugin& p, const std::string& spec, const ReduceKernel& k) { AddKernel<RunReduce>(p, spec, k, PrepareReduce); }

template <class T>
void AddType(tw::Plugin& p) {
  using W = typename WrapType<T>::type;
  using M = Total<T>;
  AddReduce(p, Spec("Sum", tw::dtype<T>), kPlain<T, W, ReduceLoops<T, W, Summing<W>>>);
  AddReduce(p, Spec("Mean", tw::dtype<T>), kMean<T, M, ReduceLoops<T, M, Summing<M>>>);
  AddReduce(p, Spec("Prod", tw::dtype<T>), kPlain<T, W, ReduceLoops<T, W, Multiplying<W>>>);
  AddReduce(p, Spec("Max", tw::dtype<T>), kPlain<T, T, ReduceLoops<T, T, Largest<T>>>);
  AddReduce(p, Spec("Min", tw::dtype<T>), kPlain<T, T, ReduceLoops<T, T, Smallest<T>>>);
  AddReduce(p, Spec("EuclideanNorm", tw::dtype<T>), kNorm<T>);
}

// Complex numbers have no order, so these are the reductions without Max and Min.
template <class T>
void AddComplex(tw::Plugin& p) {
  AddReduce(p, Spec("Sum", tw::dtype<T>), kPlain<T, T, ReduceLoops<T, T, Summing<T>>>);
  AddReduce(p, Spec("Mean", tw::dtype<T>), kMean<T, T, ReduceLoops<T, T, Summing<T>>>);
  AddReduce(p, Spec("Prod", tw::dtype<T>), kPlain<T, T, ReduceLoops<T, T, Multiplying<T>>>);
  AddReduce(p, Spec("EuclideanNorm", tw::dtype<T>), kNorm<T>);
}

void AddSmallFloat(tw::Plugin& p, const char* type, const ReduceKernels& k) {
  AddReduce(p, Spec("Sum", type), k.sum);
  AddReduce(p, Spec("Mean", type), k.mean);
  AddReduce(p, Spec("Prod", type), k.prod);
  AddReduce(p, Spec("Max", type), k.max);
  AddReduce(p, Spec("Min", type), k.min);
  AddReduce(p, Spec("EuclideanNorm", type), k.norm);
  AddKernel<RunL2Loss>(p, std::string("L2Loss(") + type + " -> " + type + ") @CPU", k.half_square_sum, PrepareReduce);
}

}  // namespace

void register_reduce(tw::Plugin& p) {
  const Reductions& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ReductionTable);
  AddSmallFloat(p, "float", t.of_float);
  AddSmallFloat(p, "half", t.of_half);
  AddSmallFloat(p, "bfloat16", t.of_bfloat16);
  AddType<double>(p);
  AddType<int8_t>(p);
  AddType<int16_t>(p);
  AddType<int32_t>(p);
  AddType<int64_t>(p);
  AddType<uint8_t>(p);
  AddType<uint16_t>(p);
  AddType<uint32_t>(p);
  AddType<uint64_t>(p);
  AddComplex<complex64>(p);
  AddComplex<complex128>(p);
  using Squares = ReduceLoops<double, double, SummingSquares<double>>;
  static constexpr ReduceKernel kL2Loss = MakeReduce<double, double, Squares>(FinishHalf<double, double>);
  AddKernel<RunL2Loss>(p, "L2Loss(double -> double) @CPU", kL2Loss, PrepareReduce);
  static constexpr ReduceKernel kAll = MakeReduce<uint8_t, uint8_t, ReduceLoops<uint8_t, uint8_t, Every>>();
  static constexpr ReduceKernel kAny = MakeReduce<uint8_t, uint8_t, ReduceLoops<uint8_t, uint8_t, Some>>();
  AddReduce(p, Spec("All", "bool"), kAll);
  AddReduce(p, Spec("Any", "bool"), kAny);
}

}  // namespace thalweg::cpu
