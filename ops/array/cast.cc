// Cast converts numbers to another element type.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

bool Differentiable(uint32_t type) {
  return type == TW_HALF || type == TW_BFLOAT16 || type == TW_FLOAT || type == TW_DOUBLE || type == TW_COMPLEX64 || type == TW_COMPLEX128;
}

// Integers get no gradient.
void Gradient(const tw::Grad& g) {
  if (Differentiable(g.type_in(0)) && Differentiable(g.type_out(0))) g.dx(0, CastTo(g, g.dy(), g.type_in(0)));
}

}  // namespace

void register_cast(tw::Plugin& p) {
  p.op<Gradient>(R"(
      Cast(x: SrcT[*s]) -> (y: DstT[*s]); SrcT: type; DstT: type; Truncate: bool = false; role cast; converts x; ?elementwise;
      ?data x; doc "the same numbers in another type; to whole numbers towards 0; Truncate cuts mantissas instead of rounding them")");
}

}  // namespace thalweg::ops
