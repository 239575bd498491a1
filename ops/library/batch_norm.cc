// Batch normalisation with moving averages.
#include "ops/library/layer.h"
#include "thalweg/flow.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_batch_norm_init(tw_batch_norm* norm) {
  if (norm) *norm = {sizeof(tw_batch_norm), 0, 0, 0, 0, 0, 0.99, 1e-3};
}

namespace {

bool CheckBatchNorm(tw_scope* scope, const char* function, const tw_batch_norm* norm) {
  if (!CheckRecord(scope, function, "tw_batch_norm", norm)) return false;
  CheckRange(scope, "tw_batch_norm: momentum", norm->momentum, 0, 1);
  CheckAbove0(scope, "tw_batch_norm: epsilon", norm->epsilon);
  return Good(scope);
}

// The difference of an average from what it becomes; zeros where the batch is empty and has no statistics.
tw_output Change(tw_scope* scope, tw_output images, tw_output becomes, tw_output average) {
  const tw_output change = tw_scope_op2(scope, "Sub", becomes, average);
  const tw_output any = tw_scope_op2(scope, "Greater", tw_scope_op1(scope, "Size", images), tw_scope_scalar(scope, TW_INT32, 0));
  return tw_scope_op3(scope, "SelectV2", any, change, tw_scope_op1(scope, "ZerosLike", average));
}

// FusedBatchNormV3 of images or volumes. In training its outputs 1 and 2 are the averages with the batch's statistics mixed in.
tw_output Apply(tw_scope* scope, const tw_batch_norm& norm, const tw_output inputs[5], bool volumes, bool training) {
  OpenOp op(scope, "FusedBatchNormV3");
  for (int i = 0; i < 5; ++i) tw_op_add_input(op, inputs[i]);
  tw_op_set_float(op, "epsilon", norm.epsilon);
  tw_op_set_float(op, "exponential_avg_factor", training ? 1 - norm.momentum : 1);
  tw_op_set_bool(op, "is_training", training);
  if (volumes) tw_op_set_string(op, "data_format", "NDHWC", 5);
  return op.End();
}

// Adds to an average, so that several applications of one record in a step all count, and steps of other threads are not undone.
const tw_operation* Add(tw_scope* scope, tw_output variable, const VariableInfo& info, tw_output change) {
  OpenOp op(scope, info.reference ? "AssignAdd" : "AssignAddVariableOp");
  tw_op_add_input(op, variable);
  tw_op_add_input(op, change);
  return op.EndOperation();
}

// The result, and what is added to mean and variance.
void Results(tw_scope* scope, const tw_batch_norm& norm, const tw_output inputs[5], bool volumes, bool training, tw_output results[3]) {
  results[0] = Apply(scope, norm, inputs, volumes, training);
  for (uint32_t i = 1; i < 3; ++i) {
    const tw_output average = inputs[2 + i];
    results[i] =
        training ? Change(scope, inputs[0], tw_scope_output(scope, results[0], i), average) : tw_scope_op1(scope, "ZerosLike", average);
  }
}

tw_block* Branch(tw_scope* scope, const tw_batch_norm& norm, const tw_output inputs[5], bool volumes, bool training) {
  tw_block* block = tw_block_begin(scope);
  tw_output results[3] = {0, 0, 0};
  Results(tw_block_scope(block), norm, inputs, volumes, training, results);
  tw_block_give(block, results, 3);
  return block;
}

}  // namespace

void tw_batch_norm_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_batch_norm* like, int64_t channels,
                          tw_batch_norm* out_norm) {
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_batch_norm_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    const bool begun = BeginRecord(scope, kFunction, "tw_batch_norm", like, tw_batch_norm_init, out_norm);
    if (out_norm) out_norm->scale = out_norm->offset = out_norm->mean = out_norm->variance = 0;
    if (!begun) return 0;
    if (!CheckBatchNorm(scope, kFunction, out_norm) || !CheckSize(scope, kFunction, "channels", channels)) return 0;
    if (o.dtype != TW_FLOAT || o.no_bias) {
      FailIn(scope, kFunction,
             o.no_bias ? "no_bias is set; batch normalisation needs its offset"
                       : std::string("dtype is ") + tw_dtype_name(o.dtype) + "; the weights of batch normalisation are float");
      return 0;
    }
    const tw_initializer ones = Initializer(TW_INITIALIZER_CONSTANT, 1), zeros = Initializer(TW_INITIALIZER_CONSTANT, 0);
    out_norm->scale = CreateWeight(scope, name, "scale", o, KernelInitializer(o, ones), {channels}, 0);
    out_norm->offset = CreateWeight(scope, name, "offset", o, BiasInitializer(o), {channels}, 1);
    out_norm->mean = CreateWeight(scope, name, "mean", o, zeros, {channels}, 2);
    out_norm->variance = CreateWeight(scope, name, "variance", o, ones, {channels}, 3);
    return 0;
  });
}

tw_output tw_batch_norm_apply(tw_scope* scope, const tw_batch_norm* norm, tw_output x, tw_output training,
                              const tw_operation** out_update) {
  if (out_update) *out_update = nullptr;
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_batch_norm_apply";
    if (!CheckBatchNorm(scope, kFunction, norm)) return 0;
    if (training && !out_update) FailIn(scope, kFunction, "out_update is NULL; the averages are only right if it is run with the step");
    const ValueInfo info = CheckInput(scope, kFunction, x, 2, 5);
    if (info.dtype == TW_DOUBLE) FailIn(scope, kFunction, "the input is double; it must be half, bfloat16 or float");
    VariableInfo mean, variance;
    if (!Good(scope) || !Inspect(scope, norm->mean, &mean) || !Inspect(scope, norm->variance, &variance)) return 0;
    if (mean.known_shape) CheckChannels(scope, kFunction, info, mean.dims[0]);
    if (!Good(scope)) return 0;

    const int32_t rank = info.shape.rank;
    const int64_t channels = mean.known_shape ? mean.dims[0] : info.Dim(rank - 1);
    tw_output images = x;
    if (rank == 2) images = ReshapeTail(scope, x, 1, {1, 1, channels});
    if (rank == 3) images = tw_scope_op2(scope, "ExpandDims", x, tw_scope_scalar(scope, TW_INT32, 1));
    // No gradient reaches the averages, so optimizers leave them alone.
    const auto still = [&](tw_output variable) { return tw_scope_op1(scope, "StopGradient", tw_variable_read(scope, variable)); };
    const tw_output inputs[] = {images, WeightValue(scope, norm->scale), WeightValue(scope, norm->offset), still(norm->mean),
                                still(norm->variance)};
    const bool volumes = rank == 5;
    const int known = training ? KnownBool(scope, training) : 0;
    tw_output y;
    if (known == 0) {
      y = Apply(scope, *norm, inputs, volumes, false);
    } else {
      tw_output results[3] = {0, 0, 0};
      if (known == 1) {
        Results(scope, *norm, inputs, volumes, true, results);
      } else {
        tw_block* then = Branch(scope, *norm, inputs, volumes, true);
        tw_block* otherwise = Branch(scope, *norm, inputs, volumes, false);
        tw_cond(scope, nullptr, training, then, otherwise, results, 3);
      }
      y = results[0];
      const tw_operation* updates[] = {Add(scope, norm->mean, mean, results[1]), Add(scope, norm->variance, variance, results[2])};
      if (Good(scope)) *out_update = tw_scope_group(scope, nullptr, updates, 2);
    }
    if (rank < 4) y = ReshapeAs(scope, y, x, rank - 1, {channels});
    return y;
  });
}
