// StringNGrams, ReduceJoin and UnsortedSegmentJoin join texts that stand in one tensor.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void NGramsRule(const tw::Shape& s) {
  WantVector(s, 0, "data");
  WantVector(s, 1, "data_splits");
  for (int64_t width : s.ints("ngram_widths"))
    if (width < 1) Fail("'ngram_widths' is " + Text(s.ints("ngram_widths")) + "; every width must be at least 1");
  s.out(0, Dims{-1});
  s.out(1, Dims{s.known(1) ? s.dim(1, 0) : -1});
}

// Returns the axes that `indices` names, each once.
Dims Axes(const Dims& indices, int64_t rank) {
  Dims axes;
  for (int64_t index : indices) {
    const int64_t axis = Axis(index, rank, "reduction_indices");
    for (int64_t before : axes)
      if (before == axis) Fail("'reduction_indices' is " + Text(indices) + ", which names axis " + tw::text(axis) + " twice");
    axes.push_back(axis);
  }
  return axes;
}

void ReduceRule(const tw::Shape& s) {
  if (!s.known(0)) return;
  if (s.known(1) && s.rank(1) > 1) Fail("'reduction_indices' is " + tw::text(s.in(1)) + "; it must be a scalar or a vector");
  Dims indices, out = *In(s, 0);
  if (!s.value(1, &indices)) {
    if (s.b("keep_dims")) s.out(0, Dims(out.size(), -1));
    return;
  }
  for (int64_t axis : Axes(indices, int64_t(out.size()))) out[size_t(axis)] = s.b("keep_dims") ? 1 : INT64_MIN;
  Dims kept;
  for (int64_t size : out)
    if (size != INT64_MIN) kept.push_back(size);
  s.out(0, kept);
}

void SegmentRule(const tw::Shape& s) {
  const std::optional<int64_t> n = ScalarValue(s, 2, "num_segments");
  if (n && *n < 0) Fail("'num_segments' is " + tw::text(*n) + "; it must not be negative");
  if (!s.known(0) || !s.known(1)) return;
  const Dims in = *In(s, 0), ids = *In(s, 1);
  if (ids.size() > in.size()) Fail("'segment_ids' " + Text(ids) + " has more axes than 'inputs' " + Text(in));
  Merge(s, Sub(in, 0, ids.size()), ids, "the first axes of 'inputs' and the shape of 'segment_ids'");
  s.out(0, Join({n.value_or(-1)}, Sub(in, ids.size(), in.size())));
}

}  // namespace

void register_string_groups(tw::Plugin& p) {
  p.op<nullptr, NGramsRule>(
      "StringNGrams(data: string, data_splits: Tsplits) -> (ngrams: string, ngrams_splits: Tsplits); separator: string; "
      "ngram_widths: list(int) >= 0; left_pad: string; right_pad: string; pad_width: int; preserve_short_sequences: bool; "
      "Tsplits: " OPS_INDEX " = int64; no_gradient \"text has no derivative\"; doc \"runs of neighbouring texts of each row, joined\"");
  p.op<nullptr, ReduceRule>(
      "ReduceJoin(inputs: string, reduction_indices: int32) -> (output: string); keep_dims: bool = false; separator: string = \"\"; "
      "no_gradient \"text has no derivative\"; doc \"the texts along axes, joined\"");
  p.op<nullptr, SegmentRule>(
      "UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: string); separator: string = "
      "\"\"; Tindices: " OPS_INDEX "; Tnumsegments: " OPS_INDEX
      " = int32; no_gradient \"text has no derivative\"; doc \"the texts of each segment, joined\"");
}

}  // namespace thalweg::ops
