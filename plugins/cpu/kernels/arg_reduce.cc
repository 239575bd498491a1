// ArgMax and ArgMin: the position of the extreme along an axis. The first of equal elements wins.
// The first NaN wins over all numbers, as in NumPy.
#include <algorithm>
#include <limits>

#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kColumns = 256;  // lines processed side by side if the axis is not the last one

struct Lines {
  int64_t n, inner;  // the elements of a line, and their stride
};

struct ArgKernel {
  // Sets best[j] to the position of the extreme of line j, the elements x[i * inner + j], i < n.
  void (*find)(const char* x, Lines lines, int64_t columns, int64_t* best);
  uint32_t bytes;
};

template <class T, bool kMax>
bool Beats(T a, T b) {
  const Wide<T> x(a), y(b);
  return (kMax ? y < x : x < y) || (x != x && y == y);
}

template <class T, bool kMax>
void Find(const char* x, Lines lines, int64_t columns, int64_t* best) {
  auto* first = reinterpret_cast<const T*>(x);
  if (columns == 1) {
    best[0] = 0;
    for (int64_t i = 1; i < lines.n; ++i)
      if (Beats<T, kMax>(first[i * lines.inner], first[best[0] * lines.inner])) best[0] = i;
    return;
  }
  std::fill(best, best + columns, 0);
  T value[kColumns];
  std::copy(first, first + columns, value);
  for (int64_t i = 1; i < lines.n; ++i) {
    const T* row = first + i * lines.inner;
    for (int64_t j = 0; j < columns; ++j) {
      if (!Beats<T, kMax>(row[j], value[j])) continue;
      value[j] = row[j];
      best[j] = i;
    }
  }
}

template <class T, bool kMax>
constexpr ArgKernel kArg{Find<T, kMax>, sizeof(T)};

template <class I>
void Write(const tw_view* to, int64_t at, const int64_t* from, int64_t n) {
  std::copy(from, from + n, reinterpret_cast<I*>(Bytes(to)) + at);
}
void WriteIndices(const tw_view* to, int64_t at, const int64_t* from, int64_t n) {
  switch (to->dtype) {
    case TW_INT64: return Write<int64_t>(to, at, from, n);
    case TW_INT32: return Write<int32_t>(to, at, from, n);
    case TW_INT16: return Write<int16_t>(to, at, from, n);
    case TW_UINT16: return Write<uint16_t>(to, at, from, n);
    default: throw tw::Error{TW_UNIMPLEMENTED, "output_type " + TypeText(to->dtype) + " is not offered; ask for int64"};
  }
}

int64_t LargestIndex(uint32_t dtype) {
  switch (dtype) {
    case TW_INT16: return std::numeric_limits<int16_t>::max();
    case TW_UINT16: return std::numeric_limits<uint16_t>::max();
    case TW_INT32: return std::numeric_limits<int32_t>::max();
    default: return std::numeric_limits<int64_t>::max();
  }
}

void RunArg(const tw_frame* f, const ArgKernel& k) {
  const tw_view *x = f->in[0], *y = f->out[0];
  const int axis = Axis(IndexAt(f->in[1], 0), x->rank, "dimension");
  const Lines lines{x->dims[axis], Product(x->dims, axis + 1, x->rank)};
  if (y->count == 0) return;
  if (lines.n == 0) Invalid("axis " + std::to_string(axis) + " of " + DimsText(x) + " has no elements to choose from");
  if (lines.n - 1 > LargestIndex(y->dtype))
    Invalid("axis " + std::to_string(axis) + " of " + DimsText(x) + " is too long for the output_type; ask for int64");
  WriteIndices(y, 0, nullptr, 0);  // throws for an index type that it cannot write, before the pool starts work
  const int64_t chunks = (lines.inner + kColumns - 1) / kColumns, outer = Product(x->dims, 0, axis);
  ParallelFor(f, outer * chunks, Cost(2, lines.n, std::min(lines.inner, kColumns)), [&](int64_t begin, int64_t end) {
    int64_t best[kColumns];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t o = t / chunks, column = t % chunks * kColumns, n = std::min(kColumns, lines.inner - column);
      k.find(Bytes(x) + (o * lines.n * lines.inner + column) * k.bytes, lines, n, best);
      WriteIndices(y, o * lines.inner + column, best, n);
    }
  });
}

template <class... T>
void AddTypes(tw::Plugin& p) {
  (AddKernel<RunArg>(p, std::string("ArgMax(") + tw::dtype<T> + ", _ -> _) @CPU", kArg<T, true>), ...);
  (AddKernel<RunArg>(p, std::string("ArgMin(") + tw::dtype<T> + ", _ -> _) @CPU", kArg<T, false>), ...);
}

}  // namespace

void register_arg_reduce(tw::Plugin& p) {
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool>(p);
}

}  // namespace thalweg::cpu
