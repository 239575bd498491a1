// Softmax and LogSoftmax along the last axis. The largest element of a row is subtracted first, so
// nothing overflows.
#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"
#include "kernels/row_sums.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kElementCost = 16;  // an exponential and three passes, in units of ParallelFor

// Computes rows [begin, end) of y from x, `columns` wide.
void SoftmaxRows(const RowTables& t, const float* x, float* y, int64_t begin, int64_t end, int64_t columns, bool log) {
  const int64_t together = std::max<int64_t>(1, kRowBlock / columns);  // rows that stay in the first-level cache through all passes
  for (int64_t r = begin; r < end; r += together) {
    const int64_t rows = std::min(together, end - r), n = rows * columns;
    const float* from = x + r * columns;
    float* to = y + r * columns;
    t.vector->shift_rows(from, to, rows, columns);
    if (log) {
      float sums[kRowBlock];
      LogSumExpRows(t, to, sums, rows, columns);
      t.vector->subtract_column(to, sums, to, rows, columns);
    } else {
      t.elementwise->unary_float.exp.loop(to, to, n);
      t.vector->normalise_rows(to, to, rows, columns);
    }
  }
}

template <class T>
void SoftmaxRows(const RowTables&, const T* x, T* y, int64_t begin, int64_t end, int64_t columns, bool log) {
  for (int64_t r = begin; r < end; ++r) {
    const T* from = x + r * columns;
    T* to = y + r * columns;
    Wide<T> most = Wide<T>(from[0]), sum = 0;
    for (int64_t c = 1; c < columns; ++c) most = std::max(most, Wide<T>(from[c]));
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(Wide<T>(from[c]) - most);
    const Wide<T> log_sum = std::log(sum);
    for (int64_t c = 0; c < columns; ++c) {
      const Wide<T> shifted = Wide<T>(from[c]) - most;
      to[c] = T(log ? shifted - log_sum : std::exp(shifted) / sum);
    }
  }
}

template <class T, bool kLog>
class Softmax {
 public:
  explicit Softmax(const tw::Node& n) : tables_(RowTablesFor(n.host())) {}

  void operator()(tw::Frame frame, tw::In<T> logits, tw::Out<T> softmax) const {
    if (logits.rank() < 1) Invalid("logits must have rank 1 at least, but is a scalar");
    if (logits.size() == 0) return;
    const int64_t columns = logits.dim(-1), rows = int64_t(logits.size()) / columns;
    ParallelFor(frame.f, rows, Cost(columns, kElementCost),
                [&](int64_t begin, int64_t end) { SoftmaxRows(tables_, logits.data(), softmax.data(), begin, end, columns, kLog); });
  }

 private:
  RowTables tables_;
};

}  // namespace

void register_softmax(tw::Plugin& p) {
  p.kernel<Softmax<float, false>, Softmax<double, false>, Softmax<half, false>, Softmax<bfloat16, false>>(
      "Softmax @CPU; inplace softmax=logits");
  p.kernel<Softmax<float, true>, Softmax<double, true>, Softmax<half, true>, Softmax<bfloat16, true>>(
      "LogSoftmax @CPU; inplace logsoftmax=logits");
}

}  // namespace thalweg::cpu
