// Helpers that convolutions and transposed convolutions share.
#pragma once
#include <array>
#include <string>

#include "ops/library/layer.h"
#include "thalweg/op.h"

namespace thalweg::library {

inline std::array<int64_t, 3> Strides(const tw_convolution& c) { return {c.stride_1, c.stride_2, c.stride_3}; }
inline std::array<int64_t, 3> Dilations(const tw_convolution& c) { return {c.dilation_1, c.dilation_2, c.dilation_3}; }

// Fails the scope unless the record describes a convolution.
inline bool CheckGeometry(tw_scope* scope, const char* function, const tw_convolution* c) {
  if (!CheckRecord(scope, function, "tw_convolution", c)) return false;
  if (c->rank < 1 || c->rank > 3) FailIn(scope, function, "rank is " + std::to_string(c->rank) + "; it must be 1, 2 or 3");
  if (c->padding > TW_PADDING_CAUSAL) FailIn(scope, function, "padding is " + std::to_string(c->padding) + "; it must be a TW_PADDING_*");
  if (c->padding == TW_PADDING_CAUSAL && c->rank != 1)
    FailIn(scope, function, "causal padding needs rank 1, which is " + std::to_string(c->rank));
  for (uint32_t i = 0; Good(scope) && i < c->rank; ++i) {
    CheckSize(scope, function, "a stride", Strides(*c)[i]);
    CheckSize(scope, function, "a dilation", Dilations(*c)[i]);
  }
  if (Good(scope) && c->groups < 0) FailIn(scope, function, "groups is " + std::to_string(c->groups) + "; it must be 0 or more");
  return Good(scope);
}

inline tw_output Expand(tw_scope* scope, tw_output x, int32_t axis) {
  return tw_scope_op2(scope, "ExpandDims", x, tw_scope_scalar(scope, TW_INT32, axis));
}

inline tw_output Squeeze(tw_scope* scope, tw_output x, int64_t axis) {
  OpenOp op(scope, "Squeeze");
  tw_op_add_input(op, x);
  tw_op_set_ints(op, "squeeze_dims", &axis, 1);
  return op.End();
}

}  // namespace thalweg::library
