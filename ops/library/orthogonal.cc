#include "ops/library/orthogonal.h"

#include <algorithm>

#include "thalweg/flow.h"
#include "thalweg/op.h"

namespace thalweg::library {

namespace {

// v minus its parts along the rows of q, of which some may be zeros. q: [n, m]; v: [m, 1].
tw_output Without(tw_scope* scope, tw_output q, tw_output v) {
  const tw_output parts = tw_scope_op2(scope, "MatMul", q, v);
  OpenOp along(scope, "MatMul");
  tw_op_add_input(along, q);
  tw_op_add_input(along, parts);
  tw_op_set_bool(along, "transpose_a", 1);
  return tw_scope_op2(scope, "Sub", v, along.End());
}

}  // namespace

// Gram and Schmidt, row by row; taking the parts away twice keeps the rows orthogonal to the last bits (Giraud et al., 2005). The signs are
// those of normal numbers, so all matrices are equally likely.
tw_output Orthonormal(tw_scope* scope, tw_output normal, uint32_t dtype, int64_t rows, int64_t columns) {
  const int64_t n = std::min(rows, columns), m = std::max(rows, columns);
  const tw_output zeros = tw_scope_op2(scope, "Fill", Longs(scope, {n, m}), tw_scope_scalar(scope, dtype, 0));
  tw_output row = 0, q = 0, last = 0;
  tw_block* each = tw_each_begin(scope, &normal, 1, &zeros, 1, 0, &row, &q);
  tw_scope* inner = tw_block_scope(each);
  if (inner) {
    tw_output v = tw_scope_op2(inner, "Reshape", row, Longs(inner, {m, 1}));
    v = Without(inner, q, Without(inner, q, v));
    const tw_output axes = Longs(inner, {0, 1}), square = tw_scope_op2(inner, "Sum", tw_scope_op1(inner, "Square", v), axes);
    const tw_output unit = tw_scope_op2(inner, "Div", v, tw_scope_op1(inner, "Sqrt", square));
    const tw_output at = tw_scope_op2(inner, "Reshape", tw_each_index(each), Longs(inner, {1, 1}));
    q = tw_scope_op3(inner, "TensorScatterUpdate", q, at, tw_scope_op2(inner, "Reshape", unit, Longs(inner, {1, m})));
  }
  tw_each_end(scope, nullptr, each, &q, nullptr, 0, &last, nullptr);
  const int32_t swapped[] = {1, 0};
  return rows <= columns ? last : tw_scope_op2(scope, "Transpose", last, tw_scope_ints(scope, swapped, 2));
}

}  // namespace thalweg::library
