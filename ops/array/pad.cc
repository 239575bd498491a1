// Pad: zeros round a tensor.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRank(s, 1, 2, "paddings");
  const MaybeDims in = In(s, 0);
  const int64_t rows = s.known(1) ? s.dim(1, 0) : -1;
  if (s.known(1) && Known(s.dim(1, 1)) && s.dim(1, 1) != 2)
    Fail("'paddings' must have two columns, before and after, but has shape " + tw::text(s.in(1)));
  if (in && Known(rows) && rows != s.rank(0))
    Fail("'paddings' has " + tw::text(rows) + " rows but the input is " + Text(in) + "; give one for each axis");
  const int64_t rank = in ? s.rank(0) : rows;
  if (!Known(rank)) return;
  Dims paddings, out(static_cast<size_t>(rank), -1);
  if (s.value(1, &paddings)) {
    for (size_t k = 0; k < out.size(); ++k) {
      const int64_t before = paddings[2 * k], after = paddings[2 * k + 1];
      if (before < 0 || after < 0)
        Fail("'paddings' is [" + tw::text(before) + ", " + tw::text(after) + "] on axis " + std::to_string(k) +
             "; no entry may be negative");
      out[k] = s.calc('+', in ? (*in)[k] : -1, s.calc('+', before, after));
    }
  }
  s.out(0, out);
}

// The middle of the gradient: without the padding.
void Gradient(const tw::Grad& g) {
  Dims paddings;
  if (g.value(1, &paddings)) {
    Dims before;
    for (size_t k = 0; k < paddings.size(); k += 2) before.push_back(paddings[k]);
    g.dx(0, g.op("Slice", {g.dy(), g.ints(before), g.shape(0)}));
    return;
  }
  const tw_edge column = g.op("StridedSlice", {g.x(1), Ints(g, {0, 0}), Ints(g, {0, 1}), Ints(g, {1, 1})},
                              {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  g.dx(0, g.op("Slice", {g.dy(), CastTo(g, column, TW_INT32), g.shape(0)}));
}

}  // namespace

void register_pad(tw::Plugin& p) {
  p.op<Gradient, Rule>("Pad(input: T, paddings: Tpaddings) -> (output: T); T: type; Tpaddings: " OPS_INDEX
                       " = int32; doc \"paddings[k, 0] zeros before and paddings[k, 1] after axis k\"");
}

}  // namespace thalweg::ops
