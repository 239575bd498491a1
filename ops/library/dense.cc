// Dense layers, embeddings.
#include "ops/library/layer.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_dense_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t inputs, int64_t units,
                     tw_dense* out_dense) {
  if (out_dense) *out_dense = {sizeof(tw_dense), 0, 0, 0};
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_dense_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    if (!out_dense) FailIn(scope, kFunction, "out_dense is NULL");
    if (!CheckSize(scope, kFunction, "inputs", inputs) || !CheckSize(scope, kFunction, "units", units)) return 0;
    const tw_initializer glorot = Initializer(TW_INITIALIZER_GLOROT_UNIFORM, 1);
    out_dense->kernel = CreateWeight(scope, name, "kernel", o, KernelInitializer(o, glorot), {inputs, units}, 0);
    if (!o.no_bias) out_dense->bias = CreateWeight(scope, name, "bias", o, BiasInitializer(o), {units}, 1);
    return 0;
  });
}

tw_output tw_dense_apply(tw_scope* scope, const tw_dense* dense, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_dense_apply";
    if (!CheckRecord(scope, kFunction, "tw_dense", dense)) return 0;
    const ValueInfo info = CheckInput(scope, kFunction, x, 1, INT32_MAX);
    const tw_output kernel = WeightValue(scope, dense->kernel);
    const ValueInfo weights = Describe(scope, kernel);
    CheckType(scope, kFunction, info, "kernel", weights);
    CheckChannels(scope, kFunction, info, weights.Dim(0));
    if (Good(scope) && (weights.shape.rank != 2 || weights.Dim(0) < 0 || weights.Dim(1) < 0))
      FailIn(scope, kFunction, "the kernel has shape " + ShapeText(weights.shape) + "; it must be [inputs, units], both known");
    if (!Good(scope)) return 0;
    const int32_t rank = info.shape.rank;
    const tw_output rows = rank == 2 ? x : ReshapeTail(scope, x, 0, {-1, weights.Dim(0)});
    const tw_output product = AddBias(scope, tw_scope_op2(scope, "MatMul", rows, kernel), dense->bias);
    return rank == 2 ? product : ReshapeAs(scope, product, x, rank - 1, {weights.Dim(1)});
  });
}

tw_output tw_embedding_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t rows, int64_t width) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_embedding_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    if (!CheckSize(scope, kFunction, "rows", rows) || !CheckSize(scope, kFunction, "width", width)) return 0;
    return CreateWeight(scope, name, "table", o, KernelInitializer(o, Initializer(TW_INITIALIZER_UNIFORM, 0.05)), {rows, width}, 0);
  });
}

tw_output tw_embedding_apply(tw_scope* scope, tw_output table, tw_output ids) {
  return Protect(scope, [&]() -> tw_output {
    const ValueInfo numbers = Describe(scope, ids);
    if (!Good(scope)) return 0;
    if (numbers.dtype != TW_INT32 && numbers.dtype != TW_INT64) {
      FailIn(scope, "tw_embedding_apply", std::string("ids are ") + tw_dtype_name(numbers.dtype) + "; they must be int32 or int64");
      return 0;
    }
    if (Describe(scope, table).dtype != TW_RESOURCE)
      return tw_scope_op3(scope, "GatherV2", table, ids, tw_scope_scalar(scope, TW_INT32, 0));
    VariableInfo info;
    if (!Inspect(scope, table, &info)) return 0;
    return Typed(scope, "ResourceGather", {table, ids}, "dtype", info.dtype);
  });
}
