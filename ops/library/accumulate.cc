// Accumulation of gradients over sub-batches.
#include "thalweg/accumulate.h"

#include <cstdint>

#include "ops/library/build.h"
#include "thalweg/tensor.h"

using namespace thalweg::library;

namespace {

// The sum of a gradient, in a conditional accumulator of the runtime.
struct Sum {
  tw_scope* scope;
  uint32_t dtype;
  tw_output handle;

  Sum(tw_scope* s, const std::string& name, const tw_gradient& g) : scope(s) {
    const ValueInfo values = Describe(scope, g.values);
    dtype = values.dtype;
    if (Good(scope) && !IsReal(dtype))
      Fail(scope, TW_INVALID_ARGUMENT, "tw_accumulate_gradients: a gradient is no half, bfloat16, float or double");
    OpenOp op(scope, g.rows ? "ResourceSparseConditionalAccumulator" : "ResourceConditionalAccumulator", name.c_str());
    tw_op_set_type(op, "dtype", dtype);
    tw_op_set_shape(op, "shape", values.shape.dims, g.rows ? -1 : values.shape.rank);
    tw_op_set_string(op, "reduction_type", "SUM", 3);
    handle = op.End();
  }

  const tw_operation* Add(const tw_gradient& g) const {
    const tw_output never = Long(scope, INT64_MAX);  // a stamp that is never too old
    OpenOp op(scope, g.rows ? "ResourceSparseAccumulatorApplyGradient" : "ResourceAccumulatorApplyGradient");
    tw_op_add_input(op, handle);
    tw_op_add_input(op, never);
    if (g.rows) {
      tw_op_add_input(op, CastTo(scope, g.rows, TW_INT64));
      tw_op_add_input(op, g.values);
      tw_op_add_input(op, Longs(scope, {}));
      tw_op_set_bool(op, "has_known_shape", 0);
    } else {
      tw_op_add_input(op, g.values);
    }
    return op.EndOperation();
  }

  // Returns the mean of `count` gradients and empties the accumulator.
  tw_gradient Take(const tw_gradient& g, uint32_t count) const {
    OpenOp op(scope, g.rows ? "ResourceSparseAccumulatorTakeGradient" : "ResourceAccumulatorTakeGradient");
    tw_op_add_input(op, handle);
    tw_op_add_input(op, tw_scope_scalar(scope, TW_INT32, double(count)));
    tw_op_set_type(op, "dtype", dtype);
    const tw_operation* taken = op.EndOperation();
    if (!Good(scope)) return {};
    const tw_output sum = tw_operation_output(taken, g.rows ? 1 : 0);
    const tw_output mean = tw_scope_op2(scope, "Mul", sum, tw_scope_scalar(scope, dtype, 1.0 / double(count)));
    return {mean, g.rows ? tw_operation_output(taken, 0) : 0};
  }
};

}  // namespace

const tw_operation* tw_accumulate_gradients(tw_scope* scope, const char* name, tw_gradient* gradients, uint32_t n, uint32_t sub_batches) {
  return Protect(scope, [&]() -> const tw_operation* {
    if (sub_batches == 0) Fail(scope, TW_INVALID_ARGUMENT, "tw_accumulate_gradients: sub_batches is 0; it must be at least 1");
    if (n > 0 && !gradients) Fail(scope, TW_INVALID_ARGUMENT, "tw_accumulate_gradients: gradients is NULL");
    if (!Good(scope)) return nullptr;
    const std::string base = FreeName(scope, name ? name : "accumulated");
    std::vector<const tw_operation*> adds;
    for (uint32_t i = 0; i < n && Good(scope); ++i) {
      if (gradients[i].values == 0) continue;
      const Sum sum(scope, base + "/" + std::to_string(i), gradients[i]);
      if (!Good(scope)) break;
      adds.push_back(sum.Add(gradients[i]));
      const tw_gradient mean = sum.Take(gradients[i], sub_batches);
      if (Good(scope)) gradients[i] = mean;
    }
    if (Good(scope) && adds.empty()) Fail(scope, TW_INVALID_ARGUMENT, "tw_accumulate_gradients: there are no gradients");
    return Good(scope) ? tw_scope_group(scope, base.c_str(), adds.data(), uint32_t(adds.size())) : nullptr;
  });
}
