// BroadcastTo: repeats a tensor along axes of size 1 and along axes that it lacks.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void BroadcastTo(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> shape, tw::Out<tw::Any> output) {
  const int rank = output.rank(), missing = rank - input.rank();
  // If no input size is 1, the plan may have derived the output shape from the input alone, so
  // `shape` is checked here.
  const Ints wanted = ReadInts(shape.v, "shape");
  for (int i = 0; i < wanted.n; ++i)
    if (wanted[i] < 0) Invalid("shape[" + std::to_string(i) + "] is " + std::to_string(wanted[i]) + "; sizes must not be negative");
  if (wanted.n != rank || !std::equal(wanted.at, wanted.at + rank, output.dims()))
    Invalid("the input is " + DimsText(input.v) + ", which cannot be repeated to " + tw::text(wanted.at, wanted.n));
  const Ints from = DenseStrides(input.dims(), input.rank()), to = DenseStrides(output.dims(), rank);
  Box box;
  for (int i = 0; i < rank; ++i) {
    const int64_t own = i < missing ? 1 : input.dim(i - missing);
    if (missing < 0 || (own != 1 && own != output.dim(i)))
      Invalid("input of shape " + DimsText(input.v) + " does not broadcast to " + DimsText(output.v()));
    box.Add(output.dim(i), own == 1 ? 0 : from[i - missing], to[i]);
  }
  CopyBox(f.f, box, input.v, 0, output.v(), 0);
}

}  // namespace

void register_broadcast_to(tw::Plugin& p) { p.kernel<BroadcastTo>("BroadcastTo @CPU"); }

}  // namespace thalweg::cpu
