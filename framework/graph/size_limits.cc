#include "framework/graph/size_limits.h"

#include <algorithm>
#include <string>

#include "framework/base/checked.h"
#include "framework/graph/shape_inference.h"

namespace thalweg {
namespace {

bool IsSingle(const ArgSpec& arg) { return arg.number_attr.empty() && arg.list_attr.empty(); }

int32_t ReadArgument(const std::vector<ArgSpec>& args, std::string_view what, Scanner* in) {
  const size_t column = in->column();
  const std::string_view name = in->ExpectWord(StrCat("the name of an ", what));
  const auto it = std::find_if(args.begin(), args.end(), [&](const ArgSpec& a) { return a.name == name; });
  if (!in->ok()) return 0;
  if (it == args.end()) in->Fail(column, StrCat("'", name, "' is no ", what, " of the op"));
  if (it != args.end() && !IsSingle(*it)) in->Fail(column, StrCat("'", name, "' is a list of values; limits are for single ones"));
  return in->ok() ? int32_t(it - args.begin()) : 0;
}

int32_t ReadAxis(Scanner* in) {
  const size_t column = in->column();
  const int64_t axis = in->ExpectInt("the number of an axis");
  if (in->ok() && (axis < 0 || axis >= kMaxRank)) in->Fail(column, StrCat(axis, " is no axis; they count from 0"));
  return in->ok() ? int32_t(axis) : 0;
}

// Runs the shape rule with the limits in place of the sizes.
void GrowWith(const Node& node, const std::vector<Shape>& in, const std::vector<Tensor>& values, std::vector<Shape>* limits) {
  // A rule that broadcasts takes a known size for an unknown one beside it. That holds for sizes, but
  // not for limits: a size of at most 5 may be 1, and the other one 7.
  const bool known = std::all_of(in.begin(), in.end(), [](const Shape& s) { return s.known(); });
  if (node.op().axes.elementwise && node.op().def.shape && in.size() > 1 && !known) return;
  std::vector<tw_shape> shapes;
  for (const Shape& s : in) shapes.push_back(s.c());
  ShapeAnswer answer;
  // A rule that refuses these sizes says nothing about smaller ones.
  if (!InferShapes(node, shapes, values, std::vector<const HandleInfo*>(in.size(), nullptr), &answer).ok()) return;
  for (size_t o = 0; o < limits->size(); ++o) {
    Shape& to = (*limits)[o];
    if (to.has_rank() && answer.shapes[o].rank() == to.rank()) to = to.FilledFrom(answer.shapes[o]);
  }
}

// Returns -1 if the limit is not known.
int64_t LimitBy(const SizeLimit& l, const Shape& in, const Tensor& value) {
  switch (l.kind) {
    case SizeLimit::kElements: {
      const auto n = CountElements(in.dims().data(), in.rank());
      return in.known() && n.ok() ? *n : -1;
    }
    case SizeLimit::kAxis: return l.input_axis < in.rank() ? in.dim(l.input_axis) : -1;
    case SizeLimit::kValue: break;
  }
  if (!value || value.count() != 1) return -1;
  const bool is_long = value.dtype() == TW_INT64;
  if (!is_long && value.dtype() != TW_INT32) return -1;
  return std::max<int64_t>(is_long ? value.as<int64_t>()[0] : value.as<int32_t>()[0], 0);
}

}  // namespace

SizeLimit ReadSizeLimit(const OpSchema& op, Scanner* in) {
  SizeLimit l;
  l.output = ReadArgument(op.outputs, "output", in);
  l.axis = ReadAxis(in);
  const size_t column = in->column();
  const std::string_view word = in->ExpectWord("'elements', 'axis' or 'value'");
  if (in->ok() && word != "elements" && word != "axis" && word != "value") {
    in->Fail(column, StrCat("'", word, "' is neither 'elements' nor 'axis' nor 'value'"));
  }
  l.kind = word == "elements" ? SizeLimit::kElements : word == "axis" ? SizeLimit::kAxis : SizeLimit::kValue;
  l.input = ReadArgument(op.inputs, "input", in);
  if (l.kind == SizeLimit::kAxis) l.input_axis = ReadAxis(in);
  return l;
}

SizeHints SizeHintsOf(const OpSchema& op) {
  SizeHints h;
  h.grows = op.axes.elementwise;
  Scanner in(op.text, "op schema");
  for (in.SkipClause(); in.Take(";"); in.SkipClause()) {
    if (!in.Take("?")) continue;
    if (in.TakeKeyword("grows")) h.grows = true;
    if (in.TakeKeyword("limits")) h.limits.push_back(ReadSizeLimit(op, &in));
  }
  return h;
}

std::vector<Shape> LimitOutputs(const Node& node, const std::vector<Shape>& shapes, const std::vector<Shape>& in,
                                const std::vector<Tensor>& values) {
  std::vector<Shape> limits = shapes;
  const OpSchema& op = node.op();
  if (std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.known(); }) || op.rule) return limits;
  const SizeHints hints = SizeHintsOf(op);
  // The dims of a schema are equalities, which hold for limits, too.
  if (hints.grows || !op.def.shape) GrowWith(node, in, values, &limits);
  for (const SizeLimit& l : hints.limits) {
    const size_t o = node.out_at()[size_t(l.output)], i = node.in_at()[size_t(l.input)];
    Shape& to = limits[o];
    if (l.axis >= to.rank() || shapes[o].dim(l.axis) >= 0) continue;
    const int64_t most = LimitBy(l, in[i], values[i]);
    if (most < 0) continue;
    std::vector<int64_t> dims(to.dims().begin(), to.dims().end());
    int64_t& dim = dims[size_t(l.axis)];
    dim = dim < 0 ? most : std::min(dim, most);
    to = Shape(dims);
  }
  return limits;
}

}  // namespace thalweg
