// Tile repeats a tensor along its axes.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantVector(s, 1, "multiples");
  const MaybeDims in = In(s, 0);
  const int64_t n = s.known(1) ? s.dim(1, 0) : -1;
  if (in && Known(n) && n != s.rank(0))
    Fail("'multiples' has " + tw::text(n) + " entries but the input is " + Text(in) + "; give one for each axis");
  const int64_t rank = in ? s.rank(0) : n;
  if (!Known(rank)) return;
  Dims multiples, out(static_cast<size_t>(rank), -1);
  if (s.value(1, &multiples)) {
    for (size_t k = 0; k < out.size(); ++k) {
      if (multiples[k] < 0) Fail("'multiples' is " + Text(multiples) + "; no entry may be negative");
      const int64_t size = in ? (*in)[k] : -1;
      if (int64_t product = 0; Known(size) && __builtin_mul_overflow(size, multiples[k], &product))
        Fail("'multiples' is " + Text(multiples) + " for an input of shape " + Text(in) + "; axis " + tw::text(static_cast<int64_t>(k)) +
             " would have more than 2^63-1 elements");
      out[k] = s.calc('*', size, multiples[k]);
    }
  }
  s.out(0, out);
}

// Splits each axis of the gradient into (copy, place) and sums over the copies.
void Gradient(const tw::Grad& g) {
  const MaybeDims in = ShapeIn(g, 0);
  Dims multiples;
  if (AllKnown(in) && g.value(1, &multiples)) {
    Dims split, copies;
    for (size_t k = 0; k < in->size(); ++k) {
      split.push_back(multiples[k]);
      split.push_back((*in)[k]);
      copies.push_back(static_cast<int64_t>(2 * k));
    }
    g.dx(0, g.op("Sum", {g.op("Reshape", {g.dy(), g.ints(split)}), g.ints(copies)}));
    return;
  }
  const tw_edge pairs = g.op("Pack", {CastTo(g, g.x(1), TW_INT32), g.shape(0)}, {{"axis", 1}});
  const tw_edge split = g.op("Reshape", {pairs, Ints(g, {-1})});
  const tw_edge copies = g.op("Range", {Int(g, 0), g.op("Size", {split}), Int(g, 2)});
  g.dx(0, g.op("Sum", {g.op("Reshape", {g.dy(), split}), copies}));
}

}  // namespace

void register_tile(tw::Plugin& p) {
  p.op<Gradient, Rule>("Tile(input: T, multiples: Tmultiples) -> (output: T); T: type; Tmultiples: " OPS_INDEX
                       " = int32; ?axes input multiples output; ?data input; doc \"multiples[k] copies along axis k\"");
}

}  // namespace thalweg::ops
