// Conditional accumulators: gradients of several workers, added up until there are as many as one step wants.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_ACCUMULATOR "stateful; resource handle org.thalweg.accumulator; "
#define OPS_ACCUMULATED "{half, bfloat16, float, double}"

void HandleRule(const tw::Shape& s) {
  s.out(0, std::vector<int64_t>{});
  s.set_handle(0, s.type("dtype"), s.shape("shape"));
}

// What the handle was made for, if that is known here.
tw_shape Accumulated(const tw::Shape& s) {
  uint32_t type = 0;
  tw_shape shape;
  s.handle(0, &type, &shape);
  if (type != 0 && type != s.type("dtype")) {
    throw tw::Error{TW_INVALID_ARGUMENT, "the accumulator is of " + tw::dtype_text(type) + ", not " + tw::dtype_text(s.type("dtype"))};
  }
  return shape;
}

void ApplyRule(const tw::Shape& s) {
  s.want_rank(1, 0, "local_step");
  const tw_shape shape = Accumulated(s);
  if (shape.rank >= 0) s.want_rank(2, shape.rank, "gradient");
}

void TakeRule(const tw::Shape& s) {
  s.want_rank(1, 0, "num_required");
  s.out(0, Accumulated(s));
}

}  // namespace

void register_accumulator(tw::Plugin& p) {
  p.op<nullptr, HandleRule>(
      "ResourceConditionalAccumulator() -> (handle: resource[]); dtype: " OPS_ACCUMULATED
      R"(; shape: shape; container: string = ""; shared_name: string = ""; reduction_type: {"MEAN", "SUM"} = "MEAN"; once; )" OPS_ACCUMULATOR
      R"(no_gradient "it has no inputs"; doc "an accumulator of gradients of one type and shape")");
  p.op<nullptr, ApplyRule>(
      "ResourceAccumulatorApplyGradient(handle: resource, local_step: int64, gradient: dtype) -> (); dtype: " OPS_ACCUMULATED
      "; " OPS_ACCUMULATOR R"(no_gradient "it has no outputs"; doc "adds a gradient, unless its step is older than the accumulator's")");
  p.op("ResourceAccumulatorNumAccumulated(handle: resource) -> (num_accumulated: int32[]); " OPS_ACCUMULATOR
       R"(no_gradient "a count has no derivative"; doc "how many gradients were added since the last were taken")");
  p.op("ResourceAccumulatorSetGlobalStep(handle: resource, new_global_step: int64[]) -> (); " OPS_ACCUMULATOR
       R"(no_gradient "it has no outputs"; doc "the accumulator's step: gradients of older ones are dropped")");
  p.op<nullptr, TakeRule>(
      "ResourceAccumulatorTakeGradient(handle: resource, num_required: int32) -> (average: dtype); dtype: " OPS_ACCUMULATED
      "; " OPS_ACCUMULATOR
      R"(no_gradient "what others added is not an input"; doc "waits until enough gradients are there, and takes them")");
}

}  // namespace thalweg::ops
