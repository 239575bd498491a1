// Conditional accumulators sum the gradients of several workers until there are as many as a step
// requires.
#include "ops/register.h"

namespace thalweg::ops {
namespace {

#define OPS_ACCUMULATOR "stateful; resource handle org.thalweg.accumulator; "
#define OPS_ACCUMULATED "{half, bfloat16, float, double}"

void HandleRule(const tw::Shape& s) {
  s.out(0, std::vector<int64_t>{});
  s.set_handle(0, s.type("dtype"), s.shape("shape"));
}

// Returns the shape that the handle carries, if known; checks its element type.
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

// A reference carries neither type nor shape of the accumulator, so these rules check only ranks.
void ReferenceRule(const tw::Shape& s) { s.out(0, std::vector<int64_t>{}); }
void ApplyByReferenceRule(const tw::Shape& s) { s.want_rank(1, 0, "local_step"); }
void TakeByReferenceRule(const tw::Shape& s) { s.want_rank(1, 0, "num_required"); }

void ApplySparseRule(const tw::Shape& s) {
  s.want_rank(1, 0, "local_step");
  s.want_rank(2, 1, "gradient_indices");
  s.want_rank(4, 1, "gradient_shape");
}

const std::string kMade = "dtype: " OPS_ACCUMULATED
                          R"(; shape: shape; container: string = ""; shared_name: string = ""; reduction_type: {"MEAN", "SUM"} = "MEAN"; )";
const std::string kNoInputs = R"(no_gradient "it has no inputs"; doc ")", kNoOutputs = R"(no_gradient "it has no outputs"; doc ")";
const std::string kTaken = R"(no_gradient "what others added is not an input"; doc ")",
                  kCount = R"(no_gradient "a count has no derivative"; doc ")";

// Adds the ops with references, as in graphs from before resource handles.
void AddReferences(tw::Plugin& p) {
  p.op<nullptr, ReferenceRule>("ConditionalAccumulator() -> (handle: ref(string)); " + kMade +
                               "stateful; runs_as ResourceConditionalAccumulator; " + kNoInputs +
                               "ResourceConditionalAccumulator by reference\"");
  const std::string type = "dtype: " OPS_ACCUMULATED "; stateful; runs_as Resource";
  const auto add = [&](const std::string& name, const std::string& what, const std::string& why) {
    p.op(name + "(handle: ref(string)" + what + "stateful; runs_as Resource" + name + "; " + why + "Resource" + name + " by reference\"");
  };
  p.op<nullptr, ApplyByReferenceRule>("AccumulatorApplyGradient(handle: ref(string), local_step: int64, gradient: dtype) -> (); " + type +
                                      "AccumulatorApplyGradient; " + kNoOutputs + "ResourceAccumulatorApplyGradient by reference\"");
  p.op<nullptr, TakeByReferenceRule>("AccumulatorTakeGradient(handle: ref(string), num_required: int32) -> (average: dtype); " + type +
                                     "AccumulatorTakeGradient; " + kTaken + "ResourceAccumulatorTakeGradient by reference\"");
  add("AccumulatorNumAccumulated", ") -> (num_accumulated: int32[]); ", kCount);
  add("AccumulatorSetGlobalStep", ", new_global_step: int64[]) -> (); ", kNoOutputs);
}

// TensorFlow has the sparse ops with references only. These run as ops with handles.
void AddSparse(tw::Plugin& p) {
  const std::string made = kNoInputs + "an accumulator of gradients that are rows of a tensor",
                    apply = kNoOutputs + "adds a gradient of rows, unless its step is older than the accumulator's";
  const std::string take = kTaken + "waits until enough gradients of rows are there, and takes them";
  p.op<nullptr, ReferenceRule>("ResourceSparseConditionalAccumulator() -> (handle: resource[]); " + kMade + "once; " OPS_ACCUMULATOR +
                               made + " (by handle)\"");
  p.op<nullptr, ReferenceRule>("SparseConditionalAccumulator() -> (handle: ref(string)); " + kMade +
                               "stateful; runs_as ResourceSparseConditionalAccumulator; " + made + "\"");
  const std::string gradient =
      ", local_step: int64, gradient_indices: int64, gradient_values: dtype, gradient_shape: int64) -> (); dtype: " OPS_ACCUMULATED
      "; has_known_shape: bool; ";
  p.op<nullptr, ApplySparseRule>("ResourceSparseAccumulatorApplyGradient(handle: resource" + gradient + OPS_ACCUMULATOR + apply +
                                 " (by handle)\"");
  p.op<nullptr, ApplySparseRule>("SparseAccumulatorApplyGradient(handle: ref(string)" + gradient +
                                 "stateful; runs_as ResourceSparseAccumulatorApplyGradient; " + apply + "\"");
  const std::string taken = ", num_required: int32) -> (indices: int64[n], values: dtype, shape: int64[r]); dtype: " OPS_ACCUMULATED "; ";
  p.op<nullptr, TakeByReferenceRule>("ResourceSparseAccumulatorTakeGradient(handle: resource" + taken + OPS_ACCUMULATOR + take +
                                     " (by handle)\"");
  p.op<nullptr, TakeByReferenceRule>("SparseAccumulatorTakeGradient(handle: ref(string)" + taken +
                                     "stateful; runs_as ResourceSparseAccumulatorTakeGradient; " + take + "\"");
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
  AddReferences(p);
  AddSparse(p);
}

}  // namespace thalweg::ops
