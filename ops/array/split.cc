// Split and SplitV cut a tensor along an axis into parts of equal size or of given sizes.
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

// One of the sizes may be -1: it takes the part of `have` that the others leave.
Dims PartSizes(const tw::Shape& s, Dims sizes, int64_t have) {
  const std::string text = Text(sizes);
  int64_t sum = 0;
  size_t rest = sizes.size();
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] < -1) Fail("'size_splits' is " + text + "; sizes must be -1 (what is left) or not negative");
    if (sizes[k] == -1 && rest < sizes.size()) Fail("'size_splits' is " + text + "; only one size may be -1");
    if (sizes[k] == -1)
      rest = k;
    else
      sum = s.calc('+', sum, sizes[k]);
  }
  const bool fits = !Known(have) || (rest < sizes.size() ? sum <= have : sum == have);
  if (!fits) Fail("'size_splits' is " + text + ", a sum of " + tw::text(sum) + ", but the axis has size " + tw::text(have));
  if (rest < sizes.size()) sizes[rest] = s.calc('-', have, sum);
  return sizes;
}

void SizedRule(const tw::Shape& s) {
  const std::optional<int64_t> value = ScalarValue(s, 2, "split_dim");
  const int64_t parts = s.i("num_split");
  WantRankAtLeast(s, 0, 1, "value");
  WantVector(s, 1, "size_splits");
  if (s.known(1) && Known(s.dim(1, 0)) && s.dim(1, 0) != parts)
    Fail("'size_splits' has " + tw::text(s.dim(1, 0)) + " entries for " + tw::text(parts) + " parts; give one for each");
  const MaybeDims in = In(s, 0);
  const bool placed = in && value;
  const size_t axis = placed ? static_cast<size_t>(Axis(*value, s.rank(0), "split_dim")) : 0;
  Dims sizes(s.c->n_out, -1), given;
  if (s.value(1, &given)) sizes = PartSizes(s, given, placed ? (*in)[axis] : -1);
  for (uint32_t o = 0; o < s.c->n_out; ++o) {
    MaybeDims out = in;
    if (placed)
      (*out)[axis] = sizes[o];
    else if (out)
      out = Dims(out->size(), -1);
    Set(s, o, out);
  }
}

// The gradient of the input is the concatenation of the parts' gradients.
void JoinParts(const tw::Grad& g, uint32_t value, uint32_t axis) {
  const uint32_t n = static_cast<uint32_t>(g.i("num_split"));
  std::vector<tw_edge> parts;
  for (uint32_t o = 0; o < n; ++o) parts.push_back(g.dy(o));
  if (n == 1) {
    g.dx(value, parts[0]);
    return;
  }
  parts.push_back(g.x(axis));
  g.dx(value, g.op("ConcatV2", parts));
}
void Gradient(const tw::Grad& g) { JoinParts(g, 1, 0); }
void SizedGradient(const tw::Grad& g) { JoinParts(g, 0, 2); }

}  // namespace

void register_split(tw::Plugin& p) {
  p.op<Gradient, Rule>(R"(
      Split(split_dim: int32, value: T) -> (output: T * num_split); num_split: int >= 1; T: type; ?axes value output; ?axis_numbers split_dim;
      ?data value; doc "cuts a tensor along an axis into parts of one size")");
  p.op<SizedGradient, SizedRule>(R"(
      SplitV(value: T, size_splits: Tlen, split_dim: int32) -> (output: T * num_split); num_split: int >= 1; T: type;
      Tlen: {int8, int32, int64} = int64; ?axes value output; ?axis_numbers split_dim; ?data value;
      doc "cuts a tensor along an axis into parts of these sizes; one size may be -1: what is left")");
}

}  // namespace thalweg::ops
