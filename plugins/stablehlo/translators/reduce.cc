// Reductions over axes: sums and the like by our ops, other bodies by halving the axis again and again.
#include <algorithm>
#include <iterator>

#include "body.h"
#include "common.h"
#include "shape.h"

namespace thalweg::stablehlo {
namespace {

const char* ReductionOf(Combiner combiner) {
  switch (combiner) {
    case Combiner::kAdd: return "Sum";
    case Combiner::kMultiply: return "Prod";
    case Combiner::kMaximum: return "Max";
    case Combiner::kMinimum: return "Min";
    case Combiner::kAnd: return "All";
    case Combiner::kOr: return "Any";
    default: return nullptr;
  }
}

Value Cut(Translation& t, const Value& v, int64_t begin, int64_t size) {
  std::vector<int64_t> begins(static_cast<size_t>(v.rank()), 0), sizes(begins.size(), -1);
  begins[0] = begin;
  sizes[0] = size;
  return t.op("Slice", {v, t.ints(begins), t.ints(sizes)});
}

// Combines the first half of axis 0 with the second one until one element is left. The order of elements is kept, so the body may be
// one that prefers its first argument.
std::vector<Value> Halved(Translation& t, const Fold& fold, std::vector<Value> values, int64_t length) {
  while (length > 1) {
    const int64_t half = length / 2;
    // Neighbours are combined: even places with odd ones.
    std::vector<Value> even, odd, rest;
    for (const Value& v : values) {
      std::vector<int64_t> begin(static_cast<size_t>(v.rank()), 0), end(begin), strides(begin.size(), 1);
      strides[0] = 2;
      const int64_t others = ((int64_t{1} << v.rank()) - 1) & ~int64_t{1};
      end[0] = 2 * half;
      even.push_back(
          t.op("StridedSlice", {v, t.ints(begin), t.ints(end), t.ints(strides)}, {{"begin_mask", others}, {"end_mask", others}}));
      begin[0] = 1;
      odd.push_back(t.op("StridedSlice", {v, t.ints(begin), t.ints(end), t.ints(strides)}, {{"begin_mask", others}, {"end_mask", others}}));
      if (length % 2) rest.push_back(Cut(t, v, length - 1, 1));
    }
    values = fold(even, odd);
    if (length % 2) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = t.concat({values[i], rest[i]}, 0);
    }
    length = half + length % 2;
  }
  return values;
}

void Reduce(Translation& t, Op& op) {
  const size_t n = op.inputs() / 2;
  if (n == 0 || op.inputs() != 2 * n) op.fail("it must have as many operands as initial values");
  const std::vector<Value> in = op.some(0, n), first = op.some(n, n);
  const std::vector<int64_t> axes = op.ints("dimensions");
  const int rank = RankOf(op, in[0]);
  for (const int64_t axis : axes) AxisOf(op, axis, rank);
  const Fold fold(t, op, op.body());
  const char* reduction = n == 1 ? ReductionOf(fold.combiner()) : nullptr;
  if (reduction && IsComplex(in[0]) && fold.combiner() != Combiner::kAdd && fold.combiner() != Combiner::kMultiply) reduction = nullptr;
  if (reduction) {
    const Value reduced = axes.empty() ? in[0] : t.op(reduction, {in[0], t.ints(axes)});
    return op.out(Neutral(fold.combiner(), first[0]) ? reduced : fold({first[0]}, {reduced})[0]);
  }
  // The axes in front, merged into one.
  const std::vector<int64_t> kept = Others(axes, rank);
  std::vector<int64_t> perm = axes;
  std::sort(perm.begin(), perm.end());
  perm.insert(perm.end(), kept.begin(), kept.end());
  const std::vector<Value> sizes = SizesOf(t, in[0]);
  std::vector<Value> merged = {Known(t, 1)}, left;
  for (const int64_t axis : axes) merged[0] = Times(t, merged[0], sizes[static_cast<size_t>(axis)]);
  for (const int64_t axis : kept) {
    merged.push_back(sizes[static_cast<size_t>(axis)]);
    left.push_back(sizes[static_cast<size_t>(axis)]);
  }
  const int64_t length = NumberOf(merged[0]);
  if (length < 0) op.unsupported("the size of a reduced axis is unknown, and the body is none of the usual ones; export it with that size");
  std::vector<Value> initial;
  for (const Value& v : first) initial.push_back(BroadcastTo(t, v, left));
  if (length > 0) {
    std::vector<Value> values;
    for (const Value& v : in) values.push_back(ReshapeTo(t, t.transpose(v, perm), merged));
    values = Halved(t, fold, values, length);
    for (Value& v : values) v = ReshapeTo(t, v, left);
    initial = fold(initial, values);
  }
  for (size_t i = 0; i < n; ++i) op.out(i, initial[i]);
}

void Map(Translation& t, Op& op) {
  if (!Elementwise(t, op.body())) op.unsupported("its body has other ops than element-wise ones");
  Value mapped = Vectorised(t, op, op.body(), op.all()).at(0);
  if (mapped.rank() == 0) mapped = BroadcastTo(t, mapped, SizesOf(t, op.in(0)));
  op.out(mapped);
}

constexpr Entry kReduce[] = {
    {"stablehlo.map", &Map},
    {"stablehlo.reduce", &Reduce},
};

}  // namespace

Family reduce_translators() { return {std::begin(kReduce), std::end(kReduce)}; }

}  // namespace thalweg::stablehlo
