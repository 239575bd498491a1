// Pack stacks tensors of one shape along a new axis; Unpack does the reverse.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void PackRule(const tw::Shape& s) {
  MaybeDims out;
  for (uint32_t i = 0; i < s.c->n_in; ++i)
    out = Merge(s, out, In(s, i), "'values' must have one shape: those before input " + tw::text(i) + ", and its own,");
  if (!out) return;
  out->insert(out->begin() + Axis(s.i("axis"), static_cast<int64_t>(out->size()) + 1, "axis"), s.c->n_in);
  s.out(0, *out);
}

void UnpackRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "value");
  const MaybeDims in = In(s, 0);
  if (!in) return;
  const int64_t axis = Axis(s.i("axis"), s.rank(0), "axis"), size = (*in)[static_cast<size_t>(axis)];
  if (Known(size) && size != s.i("num"))
    Fail("axis " + tw::text(axis) + " of 'value', which is " + Text(in) + ", has size " + tw::text(size) + " but 'num' is " +
         tw::text(s.i("num")));
  Dims out = *in;
  out.erase(out.begin() + axis);
  for (uint32_t o = 0; o < s.c->n_out; ++o) s.out(o, out);
}

void PackGradient(const tw::Grad& g) {
  const tw_edge parts = g.op("Unpack", {g.dy()}, {{"num", static_cast<int64_t>(g.inputs())}, {"axis", g.i("axis")}});
  for (uint32_t i = 0; i < g.inputs(); ++i) g.dx(i, g.out(parts, i));
}

void UnpackGradient(const tw::Grad& g) {
  std::vector<tw_edge> parts;
  for (uint32_t o = 0; o < static_cast<uint32_t>(g.i("num")); ++o) parts.push_back(g.dy(o));
  g.dx(0, g.op("Pack", parts, {{"axis", g.i("axis")}}));
}

}  // namespace

void register_pack(tw::Plugin& p) {
  p.op<PackGradient, PackRule>(
      R"(Pack(values: T * N) -> (output: T); N: int >= 1; T: type; axis: int = 0; ?data values;
      doc "tensors of one shape under a new axis")");
  p.op<UnpackGradient, UnpackRule>(
      R"(Unpack(value: T) -> (output: T * num); num: int >= 0; T: type; axis: int = 0; ?data value;
      doc "the parts along an axis, without it")");
}

}  // namespace thalweg::ops
