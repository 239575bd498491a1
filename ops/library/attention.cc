// Multi-head attention.
#include "ops/library/layer.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

tw_dense Dense(tw_output kernel, tw_output bias) { return {sizeof(tw_dense), 0, kernel, bias}; }

// Swaps axes 1 and 2 of four: [batch, rows, heads, depth] and [batch, heads, rows, depth].
tw_output SwapHeads(tw_scope* scope, tw_output x) {
  const int32_t order[] = {0, 2, 1, 3};
  return tw_scope_op2(scope, "Transpose", x, tw_scope_ints(scope, order, 4));
}

// x through a dense layer, as [batch, heads, rows, depth].
tw_output Project(tw_scope* scope, const tw_dense& dense, tw_output x, int64_t heads) {
  const tw_output y = tw_dense_apply(scope, &dense, x);
  const int64_t width = Describe(scope, y).Dim(2);
  if (!Good(scope)) return 0;
  if (width % heads != 0) {
    FailIn(scope, "tw_attention_apply", "heads is " + std::to_string(heads) + ", which does not divide the width " + std::to_string(width));
    return 0;
  }
  return SwapHeads(scope, ReshapeTail(scope, y, 2, {heads, width / heads}));
}

}  // namespace

void tw_attention_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t width, int64_t heads,
                         tw_attention* out_attention) {
  if (out_attention) *out_attention = {sizeof(tw_attention), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  Protect(scope, [&]() -> int {
    static const char kFunction[] = "tw_attention_create";
    const tw_layer_options o = ReadLayerOptions(scope, kFunction, name, options);
    if (!out_attention) FailIn(scope, kFunction, "out_attention is NULL");
    if (!CheckSize(scope, kFunction, "width", width) || !CheckSize(scope, kFunction, "heads", heads)) return 0;
    if (width % heads != 0) {
      FailIn(scope, kFunction, "heads is " + std::to_string(heads) + ", which does not divide the width " + std::to_string(width));
      return 0;
    }
    tw_attention& made = *out_attention;
    struct Part {
      const char* name;
      tw_output *kernel, *bias;
    };
    const Part parts[] = {{"query", &made.query_kernel, &made.query_bias},
                          {"key", &made.key_kernel, &made.key_bias},
                          {"value", &made.value_kernel, &made.value_bias},
                          {"output", &made.output_kernel, &made.output_bias}};
    tw_layer_options each = o;
    for (const Part& part : parts) {
      tw_dense dense;
      tw_dense_create(scope, PartName(name, part.name).c_str(), &each, width, width, &dense);
      *part.kernel = dense.kernel;
      *part.bias = dense.bias;
      if (o.seed != 0) each.seed += 2;  // a dense layer uses two seeds
    }
    out_attention->heads = heads;
    return 0;
  });
}

tw_output tw_attention_apply(tw_scope* scope, const tw_attention* attention, tw_output x, tw_output to, tw_output bias, uint32_t causal) {
  return Protect(scope, [&]() -> tw_output {
    static const char kFunction[] = "tw_attention_apply";
    if (!CheckRecord(scope, kFunction, "tw_attention", attention)) return 0;
    if (causal > 1) FailIn(scope, kFunction, "causal is " + std::to_string(causal) + "; it must be 0 or 1");
    if (!CheckSize(scope, kFunction, "heads", attention->heads)) return 0;
    CheckInput(scope, kFunction, x, 3, 3);
    if (to) CheckInput(scope, kFunction, to, 3, 3);
    const tw_attention& a = *attention;
    const tw_output source = to ? to : x;
    const tw_output query = Project(scope, Dense(a.query_kernel, a.query_bias), x, a.heads);
    const tw_output key = Project(scope, Dense(a.key_kernel, a.key_bias), source, a.heads);
    const tw_output value = Project(scope, Dense(a.value_kernel, a.value_bias), source, a.heads);
    const uint32_t dtype = Describe(scope, query).dtype, added = bias ? Describe(scope, bias).dtype : dtype;
    if (Good(scope) && added != dtype) {
      FailIn(scope, kFunction,
             std::string("bias is ") + tw_dtype_name(added) + " and the input is " + tw_dtype_name(dtype) +
                 "; bias is added to the scores: cast it, and of a mask of bools make 0 and -infinity first");
    }
    if (!Good(scope)) return 0;
    OpenOp op(scope, "ScaledDotProductAttention");
    tw_op_add_input(op, query);
    tw_op_add_input(op, key);
    tw_op_add_input(op, value);
    tw_op_add_inputs(op, &bias, bias ? 1 : 0);
    tw_op_set_bool(op, "is_causal", causal);
    if (dtype == TW_DOUBLE) tw_op_set_type(op, "U", TW_DOUBLE);
    const tw_output mixed = SwapHeads(scope, op.End());
    const ValueInfo heads = Describe(scope, mixed);
    if (!Good(scope)) return 0;
    const tw_output joined = ReshapeTail(scope, mixed, 2, {heads.Dim(2) * heads.Dim(3)});
    const tw_dense output = Dense(a.output_kernel, a.output_bias);
    return tw_dense_apply(scope, &output, joined);
  });
}
