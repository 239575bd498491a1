// Dropout.
#include "ops/library/layer.h"
#include "thalweg/flow.h"
#include "thalweg/function.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

// Uniform numbers of the shape of x: the next ones of a stream, which each session begins anew.
tw_output StreamedDraws(tw_scope* scope, tw_output x, int64_t seed) {
  OpenOp uniform(scope, "RandomUniform");
  tw_op_add_input(uniform, tw_scope_op1(scope, "Shape", x));
  tw_op_set_type(uniform, "dtype", TW_FLOAT);
  tw_op_set_int(uniform, "seed", seed);
  tw_op_set_int(uniform, "seed2", seed ? 1 : 0);
  return uniform.End();
}

// The same, which depend on the seed and on how often `draws`, a variable, was counted up; counts it up.
tw_output CountedDraws(tw_scope* scope, tw_output x, int64_t seed, tw_output draws) {
  const tw_operation* count = Update(scope, "AssignAddVariableOp", {draws, Long(scope, 1)});
  OpenOp read(scope, "ReadVariableOp");
  tw_op_add_input(read, draws);
  tw_op_set_type(read, "dtype", TW_INT64);
  if (count) tw_op_add_control(read, count);
  const tw_output pair[] = {Long(scope, seed), read.End()};
  OpenOp both(scope, "Pack");
  tw_op_add_inputs(both, pair, 2);
  const tw_output key = tw_scope_op1(scope, "StatelessRandomGetKeyCounter", both.End()), counter = tw_scope_output(scope, key, 1);
  OpenOp uniform(scope, "StatelessRandomUniformV2");
  const tw_output inputs[] = {tw_scope_op1(scope, "Shape", x), key, counter, tw_scope_scalar(scope, TW_INT32, 1)};
  tw_op_add_inputs(uniform, inputs, 4);
  tw_op_set_type(uniform, "dtype", TW_FLOAT);
  return uniform.End();
}

// x with each element 0 with probability `rate`, else divided by 1 - rate. A uniform draw u < 1 keeps the element where u >= rate.
tw_output Drop(tw_scope* scope, tw_output x, uint32_t dtype, double rate, int64_t seed, tw_output draws) {
  const tw_output uniform = draws ? CountedDraws(scope, x, seed, draws) : StreamedDraws(scope, x, seed);
  const tw_output kept = tw_scope_op2(scope, "GreaterEqual", uniform, tw_scope_scalar(scope, TW_FLOAT, rate));
  const tw_output scaled = tw_scope_op2(scope, "Mul", x, tw_scope_scalar(scope, dtype, 1 / (1 - rate)));
  return tw_scope_op3(scope, "SelectV2", kept, scaled, tw_scope_scalar(scope, dtype, 0));
}

}  // namespace

tw_output tw_dropout(tw_scope* scope, tw_output x, double rate, tw_output training, int64_t seed) {
  return Protect(scope, [&]() -> tw_output {
    const ValueInfo info = Describe(scope, x);
    CheckRange(scope, "tw_dropout: rate", rate, 0, 1);
    if (!Good(scope)) return 0;
    if (!IsReal(info.dtype)) {
      FailIn(scope, "tw_dropout", std::string("x is ") + tw_dtype_name(info.dtype) + "; it must be half, bfloat16, float or double");
      return 0;
    }
    const int known = training ? KnownBool(scope, training) : 0;
    if (known == 0 || rate == 0) return x;
    tw_output draws = 0;
    if (seed != 0 && !tw_graph_is_body(tw_scope_graph(scope)))
      draws = tw_variable_create(scope, FreeName(scope, "dropout_draws").c_str(), Long(scope, 0));
    if (known == 1) return Drop(scope, x, info.dtype, rate, seed, draws);
    tw_block* then = tw_block_begin(scope);
    const tw_output dropped = Drop(tw_block_scope(then), x, info.dtype, rate, seed, draws);
    tw_block_give(then, &dropped, 1);
    tw_block* otherwise = tw_block_begin(scope);
    tw_block_give(otherwise, &x, 1);
    tw_output result = 0;
    tw_cond(scope, nullptr, training, then, otherwise, &result, 1);
    return result;
  });
}
