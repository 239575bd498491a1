// Pad and PadV2 add a border of one value to a tensor; MirrorPad adds one that mirrors the tensor.
// MirrorPadGrad adds the border back to the elements that it mirrors.
#include <algorithm>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The rows of 'paddings', if known: the number of elements before and after axis k.
struct Paddings {
  int64_t rank = -1;  // of the input and the output; -1: unknown
  bool known = false;
  Dims values;
  int64_t before(size_t k) const { return values[2 * k]; }
  int64_t after(size_t k) const { return values[2 * k + 1]; }
};

Paddings ReadPaddings(const tw::Shape& s) {
  WantRank(s, 1, 2, "paddings");
  const MaybeDims in = In(s, 0);
  const int64_t rows = s.known(1) ? s.dim(1, 0) : -1;
  if (s.known(1) && Known(s.dim(1, 1)) && s.dim(1, 1) != 2)
    Fail("'paddings' must have two columns, before and after, but has shape " + tw::text(s.in(1)));
  if (in && Known(rows) && rows != s.rank(0))
    Fail("'paddings' has " + tw::text(rows) + " rows but the input is " + Text(in) + "; give one for each axis");
  Paddings p;
  p.rank = in ? s.rank(0) : rows;
  p.known = Known(p.rank) && s.value(1, &p.values);
  for (size_t k = 0; p.known && k < p.values.size() / 2; ++k)
    if (p.before(k) < 0 || p.after(k) < 0)
      Fail("'paddings' is [" + tw::text(p.before(k)) + ", " + tw::text(p.after(k)) + "] on axis " + std::to_string(k) +
           "; no entry may be negative");
  return p;
}

void Rule(const tw::Shape& s) {
  const Paddings p = ReadPaddings(s);
  const MaybeDims in = In(s, 0);
  if (!Known(p.rank)) return;
  Dims out(static_cast<size_t>(p.rank), -1);
  for (size_t k = 0; p.known && k < out.size(); ++k) out[k] = s.calc('+', in ? (*in)[k] : -1, s.calc('+', p.before(k), p.after(k)));
  s.out(0, out);
}

void ValueRule(const tw::Shape& s) {
  WantScalar(s, 2, "constant_values");
  Rule(s);
}

// Checks that a border mirrors each element at most once. REFLECT skips the element at the edge.
void WantMirrored(const tw::Shape& s, const Paddings& p, size_t k, int64_t inside) {
  const bool reflect = s.s("mode") == "REFLECT";
  const int64_t limit = reflect ? inside - 1 : inside, widest = std::max(p.before(k), p.after(k));
  if (widest == 0 || !Known(inside) || widest <= limit) return;
  Fail("'paddings' is [" + tw::text(p.before(k)) + ", " + tw::text(p.after(k)) + "] on axis " + std::to_string(k) + " of size " +
       tw::text(inside) + "; in mode " + std::string(s.s("mode")) + " an entry is at most " + tw::text(std::max<int64_t>(limit, 0)));
}

void MirrorRule(const tw::Shape& s) {
  const Paddings p = ReadPaddings(s);
  const MaybeDims in = In(s, 0);
  for (size_t k = 0; p.known && in && k < in->size(); ++k) WantMirrored(s, p, k, (*in)[k]);
  Rule(s);
}

void FoldRule(const tw::Shape& s) {
  const Paddings p = ReadPaddings(s);
  const MaybeDims in = In(s, 0);
  if (!Known(p.rank)) return;
  Dims out(static_cast<size_t>(p.rank), -1);
  for (size_t k = 0; p.known && in && k < out.size(); ++k) {
    const int64_t border = s.calc('+', p.before(k), p.after(k));
    if (Known((*in)[k]) && border > (*in)[k])
      Fail("'paddings' is [" + tw::text(p.before(k)) + ", " + tw::text(p.after(k)) + "] on axis " + std::to_string(k) +
           ", more than the input, which is " + Text(in));
    out[k] = s.calc('-', (*in)[k], border);
    WantMirrored(s, p, k, out[k]);
  }
  s.out(0, out);
}

// The gradient of the input is dy without the padding.
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

// The gradient of the value is the sum of dy over the padding. The same padding of a tensor of
// false, with true, marks it.
void ValueGradient(const tw::Grad& g) {
  Gradient(g);
  const tw_edge inside = g.op("Fill", {g.shape(0), g.scalar(0, TW_BOOL)});
  g.dx(2, SumWhere(g, g.op("PadV2", {inside, g.x(1), g.scalar(1, TW_BOOL)}), g.dy()));
}

// MirrorPad and MirrorPadGrad are the gradients of each other.
void MirrorGradient(const tw::Grad& g) { g.dx(0, g.op("MirrorPadGrad", {g.dy(), g.x(1)}, {{"mode", g.s("mode")}})); }
void FoldGradient(const tw::Grad& g) { g.dx(0, g.op("MirrorPad", {g.dy(), g.x(1)}, {{"mode", g.s("mode")}})); }

}  // namespace

void register_pad(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "Pad(input: T, paddings: Tpaddings) -> (output: T); T: type; Tpaddings: " OPS_INDEX
      " = int32; ?axes input paddings output; ?data input; doc \"paddings[k, 0] zeros before and paddings[k, 1] after axis k\"");
  p.op<ValueGradient, ValueRule>(
      "PadV2(input: T, paddings: Tpaddings, constant_values: T) -> (output: T); T: type; Tpaddings: " OPS_INDEX
      " = int32; ?axes input paddings output; ?data input constant_values; doc \"Pad with a value of choice in place of zeros\"");
  p.op<MirrorGradient, MirrorRule>(
      "MirrorPad(input: T, paddings: Tpaddings) -> (output: T); T: type; Tpaddings: " OPS_INDEX
      " = int32; mode: {\"REFLECT\", \"SYMMETRIC\"}; ?axes input paddings output; "
      "?data input; doc \"Pad with what the edges mirror; REFLECT does not repeat the elements at the edges, SYMMETRIC does\"");
  p.op<FoldGradient, FoldRule>("MirrorPadGrad(input: T, paddings: Tpaddings) -> (output: T); T: type; Tpaddings: " OPS_INDEX
                               " = int32; mode: {\"REFLECT\", \"SYMMETRIC\"}; ?axes input paddings output; "
                               "doc \"without the border that MirrorPad made, which is added onto the elements that it mirrors\"");
}

}  // namespace thalweg::ops
