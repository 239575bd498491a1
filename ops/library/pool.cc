// Pooling over one or two axes, and over all positions.
#include <numeric>
#include <string>

#include "ops/library/convolution.h"

using namespace thalweg::library;

void tw_pool_init(tw_pool* pool) {
  if (pool) *pool = {sizeof(tw_pool), 0, TW_POOL_MAX, 2, 2, 2, 0, 0, TW_PADDING_VALID, 0};
}

tw_output tw_pool_apply(tw_scope* scope, const tw_pool* pool, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_pool_apply";
    if (!CheckRecord(scope, kFunction, "tw_pool", pool)) return 0;
    if (pool->kind > TW_POOL_MEAN) FailIn(scope, kFunction, "kind is " + std::to_string(pool->kind) + "; it must be a TW_POOL_*");
    if (pool->rank < 1 || pool->rank > 2) FailIn(scope, kFunction, "rank is " + std::to_string(pool->rank) + "; it must be 1 or 2");
    if (pool->padding > TW_PADDING_SAME)
      FailIn(scope, kFunction, "padding is " + std::to_string(pool->padding) + "; it must be TW_PADDING_VALID or TW_PADDING_SAME");
    if (!Good(scope)) return 0;
    const auto rank = int32_t(pool->rank);
    const int64_t window[] = {pool->window_1, pool->window_2}, strides[] = {pool->stride_1, pool->stride_2};
    std::vector<int64_t> sizes(4, 1), steps(4, 1);
    for (int32_t i = 0; i < rank; ++i) {
      const size_t at = size_t(i + 3 - rank);  // one axis is one row of an image
      sizes[at] = window[i];
      steps[at] = strides[i] ? strides[i] : window[i];
      CheckSize(scope, kFunction, "a size of the window", window[i]);
      CheckSize(scope, kFunction, "a stride", steps[at]);
    }
    CheckInput(scope, kFunction, x, rank + 2, rank + 2);
    if (!Good(scope)) return 0;
    OpenOp op(scope, pool->kind == TW_POOL_MAX ? "MaxPool" : "AvgPool");
    tw_op_add_input(op, rank == 1 ? Expand(scope, x, 1) : x);
    tw_op_set_ints(op, "ksize", sizes.data(), 4);
    tw_op_set_ints(op, "strides", steps.data(), 4);
    const std::string padding = pool->padding == TW_PADDING_SAME ? "SAME" : "VALID";
    tw_op_set_string(op, "padding", padding.c_str(), padding.size());
    const tw_output y = op.End();
    return rank == 1 ? Squeeze(scope, y, 1) : y;
  });
}

tw_output tw_pool_global(tw_scope* scope, uint32_t kind, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_pool_global";
    if (kind > TW_POOL_MEAN) FailIn(scope, kFunction, "kind is " + std::to_string(kind) + "; it must be a TW_POOL_*");
    const ValueInfo info = CheckInput(scope, kFunction, x, 3, INT32_MAX);
    if (!Good(scope)) return 0;
    std::vector<int32_t> axes(size_t(info.shape.rank) - 2);
    std::iota(axes.begin(), axes.end(), 1);
    return tw_scope_op2(scope, kind == TW_POOL_MAX ? "Max" : "Mean", x, tw_scope_ints(scope, axes.data(), uint32_t(axes.size())));
  });
}
