// ArgMax and ArgMin return the index of the extreme along an axis; ties go to the first.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define ARG_TYPES                                                                                                                      \
  "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, qint8, qint16, qint32, quint8, quint16, " \
  "bool}"

void Rule(const tw::Shape& s) {
  const std::optional<int64_t> value = ScalarValue(s, 1, "dimension");
  WantRankAtLeast(s, 0, 1, "input");
  const MaybeDims in = In(s, 0);
  if (!in) return;
  if (!value) {
    s.out(0, Dims(in->size() - 1, -1));
    return;
  }
  Dims out = *in;
  const int64_t axis = Axis(*value, static_cast<int64_t>(in->size()), "dimension");
  if (out[static_cast<size_t>(axis)] == 0)
    Fail("axis " + tw::text(axis) + " of 'input', which is " + Text(in) + ", has no elements to choose from");
  out.erase(out.begin() + axis);
  s.out(0, out);
}

}  // namespace

void register_arg_reduce(tw::Plugin& p) {
  p.op<nullptr, Rule>("ArgMax(input: T, dimension: Tidx) -> (output: output_type); T: " ARG_TYPES "; Tidx: " OPS_INDEX_SHORT
                      " = int32; "
                      "output_type: {int16, uint16, int32, int64} = int64; no_gradient \"an index has no derivative\"; "
                      "?data input; doc \"position of the largest element along an axis, the first of equals\"");
  p.op<nullptr, Rule>("ArgMin(input: T, dimension: Tidx) -> (output: output_type); T: " ARG_TYPES "; Tidx: " OPS_INDEX
                      " = int32; "
                      "output_type: {int32, int64} = int64; no_gradient \"an index has no derivative\"; "
                      "?data input; doc \"position of the smallest element along an axis, the first of equals\"");
}

}  // namespace thalweg::ops
