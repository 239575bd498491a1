// The graph's part of L-BFGS: loss and gradient as vectors of doubles, and an operation that sets
// the variables from one. lbfgs_run.cc has the rest.
#include "thalweg/lbfgs.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "ops/library/build.h"
#include "ops/library/lbfgs_parts.h"
#include "ops/library/options.h"

using namespace thalweg::library;

void tw_lbfgs_options_init(tw_lbfgs_options* options) {
  if (options) *options = {sizeof(tw_lbfgs_options), 0, 10, 25, 1e-6, 1e-12, 1e-4, 0.9};
}

void tw_lbfgs_destroy(tw_lbfgs* lbfgs) { delete lbfgs; }

void tw_lbfgs_reset(tw_lbfgs* lbfgs) {
  if (lbfgs) lbfgs->history.clear();
}

namespace {

tw_status* CheckOptions(const tw_lbfgs_options& o) {
  if (o.history < 1 || o.max_evaluations < 1) {
    return Refuse("history is " + std::to_string(o.history) + ", max_evaluations " + std::to_string(o.max_evaluations) +
                  "; both must be at least 1");
  }
  if (!(o.gradient_tolerance >= 0 && o.change_tolerance >= 0)) {
    return Refuse("gradient_tolerance is " + Text(o.gradient_tolerance) + ", change_tolerance " + Text(o.change_tolerance) +
                  "; neither may be below 0");
  }
  if (!(0 < o.decrease && o.decrease < o.curvature && o.curvature < 1)) {
    return Refuse("decrease is " + Text(o.decrease) + ", curvature " + Text(o.curvature) + "; it must be 0 < decrease < curvature < 1");
  }
  return nullptr;
}

// Concatenates all elements of several values as a vector of doubles.
tw_output Flat(tw_scope* scope, const std::vector<tw_output>& values) {
  std::vector<tw_output> parts;
  for (const tw_output value : values) {
    parts.push_back(tw_scope_op2(scope, "Reshape", CastTo(scope, value, TW_DOUBLE), Longs(scope, {-1})));
  }
  if (parts.size() == 1) return parts[0];
  parts.push_back(tw_scope_scalar(scope, TW_INT32, 0));
  return tw_scope_op(scope, "ConcatV2", parts.data(), uint32_t(parts.size()));
}

// Adds an assignment of `variable` from the elements of the target from `first` on.
const tw_operation* SetFrom(tw_scope* scope, tw_output target, int64_t first, tw_output variable, const VariableInfo& info, int64_t count) {
  const tw_output part = tw_scope_op3(scope, "Slice", target, Longs(scope, {first}), Longs(scope, {count}));
  const tw_output shaped = tw_scope_op2(scope, "Reshape", part, Longs(scope, info.dims));
  return Update(scope, "AssignVariableOp", {variable, CastTo(scope, shaped, info.dtype)});
}

// Builds the graph's part for the variables that the loss depends on.
void Build(tw_scope* scope, tw_output loss, const tw_output* variables, uint32_t n, tw_lbfgs* out) {
  std::vector<tw_gradient> found(n);
  tw_scope_gradients(scope, loss, variables, n, found.data());
  const int64_t any = -1;
  out->target = tw_scope_placeholder(scope, FreeName(scope, "position").c_str(), TW_DOUBLE, &any, 1);
  std::vector<tw_output> values, gradients;
  std::vector<const tw_operation*> set;
  for (uint32_t i = 0; i < n && Good(scope); ++i) {
    VariableInfo info;
    if (!Inspect(scope, variables[i], &info) || found[i].values == 0) continue;
    if (!CheckTrained(scope, "tw_lbfgs", variables, found.data(), i, info)) return;
    if (!info.known_shape) return Fail(scope, TW_INVALID_ARGUMENT, "tw_lbfgs: variable '" + info.name + "' must be of a known shape");
    int64_t count = 1;
    for (const int64_t dim : info.dims) count *= dim;
    values.push_back(tw_variable_read(scope, variables[i]));
    gradients.push_back(Dense(scope, found[i], info));
    set.push_back(SetFrom(scope, out->target, out->size, variables[i], info, count));
    out->size += count;
  }
  if (!Good(scope)) return;
  if (values.empty())
    return Fail(scope, TW_INVALID_ARGUMENT, "tw_lbfgs: the loss depends on none of the " + std::to_string(n) + " variables");
  out->loss = CastTo(scope, loss, TW_DOUBLE);
  out->gradient = Flat(scope, gradients);
  out->position = Flat(scope, values);
  out->set = tw_scope_group(scope, nullptr, set.data(), uint32_t(set.size()));
}

}  // namespace

static tw_status* Create(tw_graph* graph, tw_output loss, const tw_output* variables, uint32_t n, const tw_lbfgs_options* options,
                         tw_lbfgs** out_lbfgs) {
  if (options && (options->size < sizeof(tw_lbfgs_options) || options->flags != 0)) {
    return Refuse("fill the options with tw_lbfgs_options_init first (their size is " + std::to_string(options->size) + ", their flags " +
                  std::to_string(options->flags) + ")");
  }
  auto made = std::make_unique<tw_lbfgs>();
  tw_lbfgs_options_init(&made->options);
  if (options) std::memcpy(&made->options, options, sizeof(tw_lbfgs_options));
  if (tw_status* refused = CheckOptions(made->options)) return refused;
  uint32_t dtype = 0;
  tw_shape shape = {nullptr, -1, 0};
  if (tw_status* missing = tw_graph_describe(graph, loss, &dtype, &shape)) return missing;
  if (shape.rank > 0 || !IsReal(dtype)) return Refuse("the loss must be a real scalar; take the sum or the mean of it");
  made->rounding = std::ldexp(1, dtype == TW_DOUBLE ? -49 : dtype == TW_FLOAT ? -20 : dtype == TW_HALF ? -8 : -5);
  tw_scope* scope = tw_scope_create(graph, "LBFGS");
  Protect(scope, [&] {
    Build(scope, loss, variables, n, made.get());
    return 0;
  });
  if (tw_status* failed = tw_scope_finish(scope)) return failed;
  *out_lbfgs = made.release();
  return nullptr;
}

tw_status* tw_lbfgs_create(tw_graph* graph, tw_output loss, const tw_output* variables, uint32_t n, const tw_lbfgs_options* options,
                           tw_lbfgs** out_lbfgs) {
  if (!graph || !out_lbfgs || (n > 0 && !variables)) {
    return tw_status_create(TW_INVALID_ARGUMENT, "tw_lbfgs: graph, variables or out_lbfgs is NULL");
  }
  try {
    return Create(graph, loss, variables, n, options, out_lbfgs);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for L-BFGS");
  }
}
