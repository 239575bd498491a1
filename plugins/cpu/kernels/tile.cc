// Tile: a tensor repeated along each of its axes.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Tile(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> multiples, tw::Out<tw::Any> output) {
  const int rank = input.rank();
  if (multiples.size() != uint64_t(rank))
    throw tw::Error{TW_INTERNAL, "multiples has " + std::to_string(multiples.size()) + " entries for input of shape " + DimsText(input.v)};
  if (output.size() == 0) return;  // multiples may then be of any size
  const Ints from = DenseStrides(input.dims(), rank), to = DenseStrides(output.dims(), rank);
  Box box;
  for (int i = 0; i < rank; ++i) {
    const int64_t times = IndexAt(multiples.v, uint64_t(i)), dim = input.dim(i);
    if (times < 0)
      throw tw::Error{TW_INTERNAL, "multiples[" + std::to_string(i) + "] is " + std::to_string(times) + "; it must not be negative"};
    if (times * dim != output.dim(i)) throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v())};
    if (times != 1) box.Add(times, 0, dim * to[i]);
    if (dim != 1) box.Add(dim, from[i], to[i]);
  }
  CopyBox(f.f, box, input.v, 0, output.v(), 0);
}

}  // namespace

void register_tile(tw::Plugin& p) { p.kernel<Tile>("Tile @CPU"); }

}  // namespace thalweg::cpu
