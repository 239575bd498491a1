// Multi-head attention.
#include <cmath>

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

void tw_attention_options_init(tw_attention_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof(tw_attention_options);
}

namespace {

constexpr char kApply[] = "tw_attention_apply";

// The queries, keys and values of one application, each [batch, heads, rows, depth].
struct Heads {
  tw_output query, key, value;
};

// x without its rows from `position` to `position` + n, of which `rows` take the place. x: [batch, heads, length, depth].
tw_output Replaced(tw_scope* scope, tw_output x, tw_output rows, tw_output position) {
  const auto narrow = [&](tw_output value) { return tw_scope_op2(scope, "Reshape", value, Longs(scope, {1})); };
  const ValueInfo info = Describe(scope, x);
  const tw_output zero = tw_scope_scalar(scope, TW_INT32, 0), axis = tw_scope_scalar(scope, TW_INT32, 2);
  const tw_output sizes = tw_scope_op1(scope, "Shape", rows);
  const tw_output n = tw_scope_op3(scope, "GatherV2", sizes, axis, zero), end = tw_scope_op2(scope, "Add", position, n);
  const auto slice = [&](tw_output first, tw_output count) {
    const int32_t zeros[] = {0, 0}, all[] = {-1, -1}, none[] = {0}, rest[] = {-1};
    const tw_output begins[] = {tw_scope_ints(scope, zeros, 2), narrow(first), tw_scope_ints(scope, none, 1), zero};
    const tw_output counts[] = {tw_scope_ints(scope, all, 2), narrow(count), tw_scope_ints(scope, rest, 1), zero};
    return tw_scope_op3(scope, "Slice", x, tw_scope_op(scope, "ConcatV2", begins, 4), tw_scope_op(scope, "ConcatV2", counts, 4));
  };
  const tw_output length = tw_scope_op3(scope, "GatherV2", tw_scope_op1(scope, "Shape", x), axis, zero);
  const tw_output parts[] = {slice(zero, position), rows, slice(end, tw_scope_op2(scope, "Sub", length, end)), axis};
  OpenOp known(scope, "EnsureShape");
  tw_op_add_input(known, tw_scope_op(scope, "ConcatV2", parts, 4));
  if (Good(scope)) tw_op_set_shape(known, "shape", info.shape.dims, info.shape.rank);
  return known.End();
}

// 0 where the query of that row, at position + row, sees the key of that column, else -infinity: [1, 1, queries, length].
tw_output Seen(tw_scope* scope, tw_output query, tw_output cache, tw_output position, uint32_t dtype) {
  const tw_output zero = tw_scope_scalar(scope, TW_INT32, 0), axis = tw_scope_scalar(scope, TW_INT32, 2);
  const auto numbers = [&](tw_output of, std::vector<int64_t> dims) {
    const tw_output n = tw_scope_op3(scope, "GatherV2", tw_scope_op1(scope, "Shape", of), axis, zero);
    const tw_output range = tw_scope_op3(scope, "Range", zero, n, tw_scope_scalar(scope, TW_INT32, 1));
    return tw_scope_op2(scope, "Reshape", range, Longs(scope, dims));
  };
  const tw_output rows = tw_scope_op2(scope, "Add", numbers(query, {1, 1, -1, 1}), position);
  const tw_output later = tw_scope_op2(scope, "Greater", numbers(cache, {1, 1, 1, -1}), rows);
  return tw_scope_op3(scope, "SelectV2", later, tw_scope_scalar(scope, dtype, -INFINITY), tw_scope_scalar(scope, dtype, 0));
}

bool CheckOptions(tw_scope* scope, const tw_attention_options& o, const tw_output* out_keys, const tw_output* out_values) {
  const int caches = (o.key_cache != 0) + (o.value_cache != 0) + (o.position != 0);
  if (o.causal > 1) FailIn(scope, kApply, "causal is " + std::to_string(o.causal) + "; it must be 0 or 1");
  if (caches != 0 && caches != 3) FailIn(scope, kApply, "key_cache, value_cache and position belong together: give all or none");
  if (caches == 3 && (!out_keys || !out_values)) FailIn(scope, kApply, "there are caches, and out_key_cache or out_value_cache is NULL");
  if (o.to && (caches || o.rotary)) FailIn(scope, kApply, "`to` is given; caches and rotations are for attention of x to itself");
  if (caches == 3) {
    const ValueInfo position = Describe(scope, o.position), keys = Describe(scope, o.key_cache), values = Describe(scope, o.value_cache);
    if (Good(scope) && position.dtype != TW_INT32)
      FailIn(scope, kApply, std::string("position is ") + tw_dtype_name(position.dtype) + "; it must be an int32 scalar");
    if (Good(scope) && (keys.shape.rank != 4 || values.shape.rank != 4))
      FailIn(scope, kApply,
             "the caches have shapes " + ShapeText(keys.shape) + " and " + ShapeText(values.shape) +
                 "; they must be [batch, heads, length, depth]");
  }
  return Good(scope);
}

// The result of attention, [batch, queries, width].
tw_output Attend(tw_scope* scope, const tw_attention& a, const Heads& h, tw_output bias, bool causal) {
  const uint32_t dtype = Describe(scope, h.query).dtype, added = bias ? Describe(scope, bias).dtype : dtype;
  if (Good(scope) && added != dtype) {
    FailIn(scope, kApply,
           std::string("bias is ") + tw_dtype_name(added) + " and the input is " + tw_dtype_name(dtype) +
               "; bias is added to the scores: cast it, and of a mask of bools make 0 and -infinity first");
  }
  if (!Good(scope)) return 0;
  OpenOp op(scope, "ScaledDotProductAttention");
  tw_op_add_input(op, h.query);
  tw_op_add_input(op, h.key);
  tw_op_add_input(op, h.value);
  tw_op_add_inputs(op, &bias, bias ? 1 : 0);
  tw_op_set_bool(op, "is_causal", causal);
  if (dtype == TW_DOUBLE) tw_op_set_type(op, "U", TW_DOUBLE);
  const tw_output mixed = SwapHeads(scope, op.End());
  const ValueInfo heads = Describe(scope, mixed);
  if (!Good(scope)) return 0;
  const tw_output joined = ReshapeTail(scope, mixed, 2, {heads.Dim(2) * heads.Dim(3)});
  const tw_dense output = Dense(a.output_kernel, a.output_bias);
  return tw_dense_apply(scope, &output, joined);
}

}  // namespace

tw_output tw_attention_apply_with(tw_scope* scope, const tw_attention* attention, tw_output x, const tw_attention_options* options,
                                  tw_output* out_key_cache, tw_output* out_value_cache) {
  if (out_key_cache) *out_key_cache = 0;
  if (out_value_cache) *out_value_cache = 0;
  return Protect(scope, [&]() -> tw_output {
    if (!CheckRecord(scope, kApply, "tw_attention", attention)) return 0;
    const tw_attention_options o = ReadOptions(scope, "tw_attention_options", options, tw_attention_options_init);
    if (!CheckOptions(scope, o, out_key_cache, out_value_cache) || !CheckSize(scope, kApply, "heads", attention->heads)) return 0;
    CheckInput(scope, kApply, x, 3, 3);
    if (o.to) CheckInput(scope, kApply, o.to, 3, 3);
    const tw_attention& a = *attention;
    const tw_output source = o.to ? o.to : x;
    Heads h = {Project(scope, Dense(a.query_kernel, a.query_bias), x, a.heads),
               Project(scope, Dense(a.key_kernel, a.key_bias), source, a.heads),
               Project(scope, Dense(a.value_kernel, a.value_bias), source, a.heads)};
    if (o.rotary && CheckRecord(scope, kApply, "tw_rotary", o.rotary)) {
      tw_rotary rotary = *o.rotary;
      if (o.position && rotary.first) FailIn(scope, kApply, "a rotation with a cache starts at `position`; leave `first` of tw_rotary 0");
      if (o.position) rotary.first = o.position;
      h.query = tw_rotary_apply(scope, &rotary, h.query);
      h.key = tw_rotary_apply(scope, &rotary, h.key);
    }
    if (!o.key_cache) return Attend(scope, a, h, o.bias, o.causal);
    h.key = Replaced(scope, o.key_cache, h.key, o.position);
    h.value = Replaced(scope, o.value_cache, h.value, o.position);
    tw_output bias = Seen(scope, h.query, h.key, o.position, Describe(scope, h.query).dtype);
    if (o.bias) bias = tw_scope_op2(scope, "Add", bias, o.bias);
    const tw_output y = Attend(scope, a, h, bias, false);
    if (!Good(scope)) return 0;
    *out_key_cache = h.key;
    *out_value_cache = h.value;
    return y;
  });
}

tw_output tw_attention_apply(tw_scope* scope, const tw_attention* attention, tw_output x, tw_output to, tw_output bias, uint32_t causal) {
  tw_attention_options options;
  tw_attention_options_init(&options);
  options.to = to;
  options.bias = bias;
  options.causal = causal;
  return tw_attention_apply_with(scope, attention, x, &options, nullptr, nullptr);
}
