// Roll: shifts elements along axes, around their ends. A row is the innermost shifted axis with the
// axes after it. It is copied in two runs from the row that the other shifts select.
#include "kernels/common/slices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Returns the shift of each axis, in [0, its size).
Ints Shifts(const tw::In<tw::Any>& input, const tw::In<tw::Any>& shift, const tw::In<tw::Any>& axis) {
  Ints total;
  total.n = input.rank();
  std::fill_n(total.at, total.n, int64_t{0});
  for (uint64_t i = 0; i < axis.size(); ++i) {
    const int k = Axis(IndexAt(axis.v, i), input.rank());
    const int64_t size = std::max<int64_t>(input.dim(k), 1), by = IndexAt(shift.v, i) % size;
    total[k] = (total[k] + by + size) % size;
  }
  return total;
}

// Returns the number of the row that moves to row k.
int64_t SourceRow(int64_t k, const int64_t* dims, const Ints& shifts, int axes) {
  int64_t source = 0, step = 1;
  for (int i = axes; i-- > 0; step *= dims[i]) {
    const int64_t at = k % dims[i] - shifts[i];
    k /= dims[i];
    source += (at < 0 ? at + dims[i] : at) * step;
  }
  return source;
}

void Roll(tw::Frame frame, tw::In<tw::Any> input, tw::In<tw::Any> shift, tw::In<tw::Any> axis, tw::Out<tw::Any> output) {
  if (input.rank() < 1 || shift.rank() > 1 || axis.rank() > 1 || shift.size() != axis.size())
    Invalid("input " + DimsText(input.v) + " must have axes, shift " + DimsText(shift.v) + " and axis " + DimsText(axis.v) +
            " be scalars or vectors of one length");
  CheckMovable(input.v->dtype);
  const Ints shifts = Shifts(input, shift, axis);
  if (input.size() == 0) return;
  int last = input.rank() - 1;
  while (last > 0 && shifts[last] == 0) --last;
  const int64_t inner = Product(input.dims(), last + 1, input.rank()), row = input.dim(last) * inner, rows = int64_t(input.size()) / row;
  const int64_t ahead = shifts[last] * inner;  // the new position of the row's first element
  const int64_t bytes = ElementBytes(input.v->dtype);
  if (bytes == 0) {
    for (int64_t k = 0; k < rows; ++k) {
      const int64_t from = SourceRow(k, input.dims(), shifts, last) * row;
      CopyRun(frame.f, input.v, from, output.v(), k * row + ahead, row - ahead);
      CopyRun(frame.f, input.v, from + row - ahead, output.v(), k * row, ahead);
    }
    return;
  }
  const char* a = Bytes(input.v);
  char* b = Bytes(output.v());
  ParallelFor(frame.f, rows, Cost(row * bytes / 4 + 16), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const char* from = a + SourceRow(k, input.dims(), shifts, last) * row * bytes;
      std::memcpy(b + (k * row + ahead) * bytes, from, size_t((row - ahead) * bytes));
      std::memcpy(b + k * row * bytes, from + (row - ahead) * bytes, size_t(ahead * bytes));
    }
  });
}

}  // namespace

void register_roll(tw::Plugin& p) { p.kernel<Roll>("Roll @CPU"); }

}  // namespace thalweg::cpu
