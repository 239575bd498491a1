// Reshape, ExpandDims and Squeeze give the same elements other axes.
#include <algorithm>

#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Elements {
  int64_t known = 1;  // product of the known sizes
  int unknown = 0;    // number of unknown sizes
};

Elements Count(const tw::Shape& s, const Dims& dims) {
  Elements n;
  Dims known;
  for (int64_t size : dims) {
    if (Known(size))
      known.push_back(size);
    else
      ++n.unknown;
  }
  n.known = Product(s, known);
  return n;
}

// Replaces a -1 in `to` by the size that the input implies, if known. REQUIRES: `to` has at most
// one -1.
void FillIn(const tw::Shape& s, const MaybeDims& from, Dims* to) {
  const auto hole = std::find(to->begin(), to->end(), -1);
  const Elements have = from ? Count(s, *from) : Elements{1, 1}, want = Count(s, *to);
  const bool infer = hole != to->end();
  if (have.unknown) {
    if (!infer && have.known != 0 && want.known % have.known != 0)
      Fail("'tensor' is " + Text(from) + ", a multiple of " + tw::text(have.known) + " elements, but the shape " + Text(*to) + " takes " +
           tw::text(want.known));
    return;
  }
  if (infer && want.known == 0) Fail("'shape' is " + Text(*to) + ", in which the size of the -1 cannot be told beside a 0; give all sizes");
  if (infer ? have.known % want.known != 0 : have.known != want.known)
    Fail("'tensor' is " + Text(from) + " with " + tw::text(have.known) + " elements, but the shape " + Text(*to) + " takes " +
         (infer ? "a multiple of " : "") + tw::text(want.known));
  if (infer) *hole = have.known / want.known;
}

void ReshapeRule(const tw::Shape& s) {
  WantVector(s, 1, "shape");
  Dims to;
  if (!s.value(1, &to)) {
    if (!s.known(1) || !Known(s.dim(1, 0))) return;
    to.assign(static_cast<size_t>(s.dim(1, 0)), -1);
    if (!to.empty()) return s.out(0, to);  // an empty vector is the whole shape, that of a scalar
  }
  for (int64_t size : to)
    if (size < -1) Fail("'shape' is " + Text(to) + "; sizes must be -1 (what is left) or not negative");
  if (std::count(to.begin(), to.end(), -1) > 1) Fail("'shape' is " + Text(to) + "; only one size may be -1");
  FillIn(s, In(s, 0), &to);
  s.out(0, to);
}

void ExpandDimsRule(const tw::Shape& s) {
  Dims value;
  if (s.known(1) && s.rank(1) > 1) WantScalar(s, 1, "dim");
  const bool known = s.value(1, &value);
  if (known && value.size() != 1) Fail("'dim' must be one axis but has shape " + tw::text(s.in(1)));
  if (!s.known(0)) return;
  Dims out = *In(s, 0);
  if (!known) {
    s.out(0, Dims(out.size() + 1, -1));
    return;
  }
  out.insert(out.begin() + Axis(value[0], s.rank(0) + 1, "dim"), 1);
  s.out(0, out);
}

void SqueezeRule(const tw::Shape& s) {
  const MaybeDims in = In(s, 0);
  if (!in) return;
  const Dims axes = s.ints("squeeze_dims");
  std::vector<bool> drop(in->size(), false);
  for (int64_t axis : axes) drop[static_cast<size_t>(Axis(axis, s.rank(0), "squeeze_dims"))] = true;
  Dims out;
  for (size_t k = 0; k < in->size(); ++k) {
    const int64_t size = (*in)[k];
    if (axes.empty() && !Known(size)) return;  // the size may or may not be 1
    if (axes.empty() ? size == 1 : drop[k]) {
      if (Known(size) && size != 1)
        Fail("axis " + std::to_string(k) + " of 'input', which is " + Text(in) + ", has size " + tw::text(size) +
             "; only axes of size 1 can go");
      continue;
    }
    out.push_back(size);
  }
  s.out(0, out);
}

// The gradient of all three ops: dy in the shape of the input.
void Gradient(const tw::Grad& g) { g.dx(0, g.op("Reshape", {g.dy(), g.shape(0)})); }

}  // namespace

void register_reshape(tw::Plugin& p) {
  p.op<Gradient, ReshapeRule>("Reshape(tensor: T, shape: Tshape) -> (output: T); T: type; Tshape: " OPS_INDEX
                              " = int32; role reshape; renames tensor; ?data tensor; ?grows; doc \"the same elements under new axes; one "
                              "size may be -1: what is left\"");
  p.op<Gradient, ExpandDimsRule>("ExpandDims(input: T, dim: Tdim) -> (output: T); T: type; Tdim: " OPS_INDEX
                                 " = int32; renames input; ?data input; doc \"a new axis of size 1, counted in the result\"");
  p.op<Gradient, SqueezeRule>(
      R"(Squeeze(input: T) -> (output: T); T: type; squeeze_dims: list(int) = []; renames input; ?data input; ?grows;
      doc "without axes of size 1: those named, or all")");
}

}  // namespace thalweg::ops
