// Bitcast: the same bytes under another type. Copies only if the output has memory from the plan
// and cannot take over the input's.
#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Bitcast(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) {
  if (output.rank() < 0 || output.v()->bytes != input.v->bytes)
    throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(output.v())};
  if (output.data() != input.data()) output.forward_part(f.f->in_at[0], 0);
}

}  // namespace

void register_bitcast(tw::Plugin& p) { p.kernel<Bitcast>("Bitcast @CPU; inplace output=input"); }

}  // namespace thalweg::cpu
