// BroadcastTo repeats a tensor to a larger shape. BroadcastArgs computes the shape to which two
// shapes broadcast. BroadcastGradientArgs computes the axes over which to sum to undo a broadcast.
#include <algorithm>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void ToRule(const tw::Shape& s) {
  const MaybeDims in = In(s, 0);
  const MaybeDims wanted = ShapeValue(s, 1, "shape");
  MaybeDims to = wanted;
  bool fits = !in || !to || in->size() <= to->size();
  for (size_t k = 0; fits && in && to && k < in->size(); ++k) {
    const int64_t have = (*in)[k];
    int64_t& want = (*to)[k + to->size() - in->size()];
    fits = have == 1 || !Known(have) || !Known(want) || have == want;
    if (Known(have) && have != 1) want = have;
  }
  Set(s, 0, to);
  if (!fits)
    Fail("the input is " + Text(in) + ", which cannot be repeated to " + Text(wanted) +
         "; sizes must be equal or 1, counted from the last axis");
}

void ToGradient(const tw::Grad& g) { g.dx(0, SumTo(g, g.dy(), 0, ShapeOut(g, 0))); }

void ArgsRule(const tw::Shape& s) {
  WantVector(s, 0, "s0");
  WantVector(s, 1, "s1");
  // Only the kernel knows the number of axes to sum over.
  Dims s0, s1;
  if (s.value(0, &s0) && s.value(1, &s1)) Broadcast(s0, s1);
}

void ShapeRule(const tw::Shape& s) {
  WantVector(s, 0, "s0");
  WantVector(s, 1, "s1");
  Dims s0, s1;
  if (s.value(0, &s0) && s.value(1, &s1) && !Broadcastable(s0, s1))
    Fail("'s0' is " + Text(s0) + " and 's1' is " + Text(s1) + ", shapes that do not broadcast");
  const bool known = s.known(0) && s.known(1) && Known(s.dim(0, 0)) && Known(s.dim(1, 0));
  s.out(0, Dims{known ? std::max(s.dim(0, 0), s.dim(1, 0)) : -1});
}

}  // namespace

void register_broadcast(tw::Plugin& p) {
  p.op<ToGradient, ToRule>("BroadcastTo(input: T, shape: Tidx) -> (output: T); T: type; Tidx: " OPS_INDEX
                           " = int32; ?data input; doc \"a tensor repeated along axes of size 1 and new leading axes\"");
  p.op<nullptr, ShapeRule>("BroadcastArgs(s0: T, s1: T) -> (r0: T); T: " OPS_INDEX
                           " = int32; no_gradient \"whole numbers\"; doc \"the shape to which tensors of two shapes broadcast\"");
  p.op<nullptr, ArgsRule>("BroadcastGradientArgs(s0: T, s1: T) -> (r0: T[_], r1: T[_]); T: " OPS_INDEX
                          " = int32; no_gradient \"whole numbers\"; doc \"the axes over which to sum to undo a broadcast of two shapes\"");
}

}  // namespace thalweg::ops
