// Rotary position embeddings.
#include <cmath>

#include "ops/library/layer.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_rotary_init(tw_rotary* rotary) {
  if (rotary) *rotary = {sizeof(tw_rotary), 0, 10000, 0, 0, 0};
}

namespace {

// The elements first, first + step, .. of the last axis of x, up to `end`.
tw_output Part(tw_scope* scope, tw_output x, int32_t rank, int64_t first, int64_t end, int64_t step) {
  std::vector<int64_t> begins(size_t(rank), 0), ends(begins), steps(size_t(rank), 1);
  begins.back() = first;
  ends.back() = end;
  steps.back() = step;
  const int64_t all = (int64_t{1} << (rank - 1)) - 1;  // of the other axes
  OpenOp op(scope, "StridedSlice");
  tw_op_add_input(op, x);
  for (const auto* list : {&begins, &ends, &steps}) tw_op_add_input(op, Longs(scope, *list));
  tw_op_set_int(op, "begin_mask", all);
  tw_op_set_int(op, "end_mask", all);
  return op.End();
}

// The size of axis -2 of x as an int64 scalar.
tw_output Positions(tw_scope* scope, tw_output x, const ValueInfo& info) {
  const int32_t axis = info.shape.rank - 2;
  if (info.Dim(axis) >= 0) return Long(scope, info.Dim(axis));
  const tw_output sizes = Typed(scope, "Shape", {x}, "out_type", TW_INT64);
  return tw_scope_op3(scope, "GatherV2", sizes, Long(scope, axis), tw_scope_scalar(scope, TW_INT32, 0));
}

// The angles [positions, depth / 2], in double.
tw_output Angles(tw_scope* scope, const tw_rotary& r, tw_output x, const ValueInfo& info, int64_t depth) {
  std::vector<double> speeds(size_t(depth / 2));
  for (size_t k = 0; k < speeds.size(); ++k) speeds[k] = std::pow(r.base, -2.0 * double(k) / double(depth));
  const int64_t dims[] = {1, int64_t(speeds.size())};
  tw_tensor* raw = nullptr;
  tw_scope_fail(scope, tw_tensor_create_copy(TW_DOUBLE, dims, 2, speeds.data(), speeds.size() * sizeof(double), &raw));
  const OwnedTensor tensor(raw);
  if (!Good(scope)) return 0;
  tw_output at = tw_scope_op3(scope, "Range", Long(scope, 0), Positions(scope, x, info), Long(scope, 1));
  if (r.first) at = tw_scope_op2(scope, "Add", at, CastTo(scope, r.first, TW_INT64));
  at = tw_scope_op2(scope, "Reshape", CastTo(scope, at, TW_DOUBLE), Longs(scope, {-1, 1}));
  return tw_scope_op2(scope, "Mul", at, tw_scope_constant(scope, raw));
}

}  // namespace

tw_output tw_rotary_apply(tw_scope* scope, const tw_rotary* rotary, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_rotary_apply";
    const tw_rotary r = ReadOptions(scope, "tw_rotary", rotary, tw_rotary_init);
    CheckAbove0(scope, "tw_rotary: base", r.base);
    if (r.interleaved > 1) FailIn(scope, kFunction, "interleaved is " + std::to_string(r.interleaved) + "; it must be 0 or 1");
    const ValueInfo info = CheckInput(scope, kFunction, x, 2, 62);
    if (!Good(scope)) return 0;
    const int32_t rank = info.shape.rank;
    const int64_t depth = info.Dim(rank - 1), half = depth / 2;
    if (depth < 2 || depth % 2 != 0) {
      FailIn(scope, kFunction, "the input has shape " + ShapeText(info.shape) + "; its last size must be known and even");
      return 0;
    }
    const tw_output angles = Angles(scope, r, x, info, depth);
    const tw_output sine = CastTo(scope, tw_scope_op1(scope, "Sin", angles), info.dtype);
    const tw_output cosine = CastTo(scope, tw_scope_op1(scope, "Cos", angles), info.dtype);
    const tw_output a = r.interleaved ? Part(scope, x, rank, 0, depth, 2) : Part(scope, x, rank, 0, half, 1);
    const tw_output b = r.interleaved ? Part(scope, x, rank, 1, depth, 2) : Part(scope, x, rank, half, depth, 1);
    const auto times = [&](tw_output u, tw_output v) { return tw_scope_op2(scope, "Mul", u, v); };
    const tw_output first = tw_scope_op2(scope, "Sub", times(a, cosine), times(b, sine));
    const tw_output second = tw_scope_op2(scope, "Add", times(a, sine), times(b, cosine));
    if (!r.interleaved) {
      const tw_output parts[] = {first, second, tw_scope_scalar(scope, TW_INT32, rank - 1)};
      return tw_scope_op(scope, "ConcatV2", parts, 3);
    }
    const tw_output pairs[] = {first, second};
    OpenOp pack(scope, "Pack");
    tw_op_add_inputs(pack, pairs, 2);
    tw_op_set_int(pack, "axis", rank);
    return ReshapeAs(scope, pack.End(), x, rank - 1, {depth});
  });
}
