// Pad: zeros (or empty strings) around a tensor.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Pad(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> paddings, tw::Out<tw::Any> output) {
  const int rank = input.rank();
  if (paddings.size() != 2 * uint64_t(rank)) Invalid("paddings is " + DimsText(paddings.v) + " for input of shape " + DimsText(input.v));
  const Ints from = DenseStrides(input.dims(), rank), to = DenseStrides(output.dims(), rank);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = IndexAt(paddings.v, 2 * uint64_t(i)), after = IndexAt(paddings.v, 2 * uint64_t(i) + 1);
    if (before < 0 || after < 0) {
      Invalid("paddings[" + std::to_string(i) + "] is [" + std::to_string(before) + ", " + std::to_string(after) +
              "]; neither may be negative");
    }
    if (before + input.dim(i) + after != output.dim(i)) throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v())};
    at += before * to[i];
    box.Add(input.dim(i), from[i], to[i]);
  }
  if (input.size() != output.size()) FillZero(f.f, output.v());
  CopyBox(f.f, box, input.v, 0, output.v(), at);
}

}  // namespace

void register_pad(tw::Plugin& p) { p.kernel<Pad>("Pad @CPU"); }

}  // namespace thalweg::cpu
