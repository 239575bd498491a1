// Split: a tensor cut along an axis into parts of one size.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const std::optional<int64_t> value = ScalarValue(s, 0, "split_dim");
  WantRankAtLeast(s, 1, 1, "value");
  const int64_t parts = s.i("num_split");
  MaybeDims out = In(s, 1);
  if (out && value) {
    const int64_t axis = Axis(*value, static_cast<int64_t>(out->size()), "split_dim");
    int64_t& size = (*out)[static_cast<size_t>(axis)];
    if (Known(size) && size % parts != 0)
      Fail("axis " + tw::text(axis) + " of 'value', which is " + Text(out) + ", does not divide into " + tw::text(parts) + " equal parts");
    size = s.calc('/', size, parts);
  } else if (out) {
    out = Dims(out->size(), -1);
  }
  for (uint32_t o = 0; o < s.c->n_out; ++o) Set(s, o, out);
}

void Gradient(const tw::Grad& g) {
  const uint32_t n = static_cast<uint32_t>(g.i("num_split"));
  std::vector<tw_edge> parts;
  for (uint32_t o = 0; o < n; ++o) parts.push_back(g.dy(o));
  if (n == 1) {
    g.dx(1, parts[0]);
    return;
  }
  parts.push_back(g.x(0));
  g.dx(1, g.op("ConcatV2", parts));
}

}  // namespace

void register_split(tw::Plugin& p) {
  p.op<Gradient, Rule>(R"(
      Split(split_dim: int32, value: T) -> (output: T * num_split); num_split: int >= 1; T: type;
      doc "cuts a tensor along an axis into parts of one size")");
}

}  // namespace thalweg::ops
