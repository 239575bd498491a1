// Shared parts of the builders of this folder. They use only the public C API. A scope keeps the
// first failure, so code here runs straight on, and whoever finishes the scope checks once.
#pragma once
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"
#include "thalweg/variable.h"

namespace thalweg::library {

// Fails the scope with INVALID_ARGUMENT or another code.
void Fail(tw_scope* scope, uint32_t code, const std::string& text);
bool Good(const tw_scope* scope);

// An operation of the scope between its begin and its end; discarded by an exception in between.
class OpenOp {
 public:
  OpenOp(tw_scope* scope, const char* type, const char* name = nullptr) : scope_(scope), op_(tw_scope_begin(scope, type, name)) {}
  OpenOp(OpenOp&& from) noexcept : scope_(from.scope_), op_(from.Take()) {}
  ~OpenOp() { tw_op_destroy(op_); }
  operator tw_op*() const { return op_; }  // for describing it; NULL if the scope has failed

  // Adds the operation. As tw_scope_end and tw_scope_end_operation.
  tw_output End() { return tw_scope_end(scope_, Take()); }
  const tw_operation* EndOperation() { return tw_scope_end_operation(scope_, Take()); }

 private:
  tw_op* Take() { return std::exchange(op_, nullptr); }
  tw_scope* scope_;
  tw_op* op_;
};

struct ReleaseTensor {
  void operator()(tw_tensor* t) const { tw_tensor_release(t); }
};
using OwnedTensor = std::unique_ptr<tw_tensor, ReleaseTensor>;

// Facts that the graph knows about a value.
struct ValueInfo {
  uint32_t dtype = 0;
  tw_shape shape = {nullptr, -1, 0};
  int64_t Dim(int32_t axis) const { return shape.rank > axis ? shape.dims[axis] : -1; }
};
// Describes a value of the graph, or one of a graph around an open body. Fails the scope for other
// numbers and returns no facts.
ValueInfo Describe(tw_scope* scope, const tw_graph* graph, tw_output value);
// Describes a value of the scope's graph.
inline ValueInfo Describe(tw_scope* scope, tw_output value) { return Describe(scope, tw_scope_graph(scope), value); }

// Returns "[2, ?]"; "?" if nothing is known.
std::string ShapeText(const tw_shape& shape);
// Returns true if every value of `shape` has the wanted shape.
bool Fits(const tw_shape& shape, const tw_shape& wanted);

// Facts from the handle of a variable, or of a plugin's resource.
struct VariableInfo {
  std::string operation, name;  // name: in containers and checkpoints
  std::string resource;         // type of resource; empty: a variable. For a resource, dtype and dims are those of its saved form
  bool reference = false;       // the older form, which is not a handle
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
  bool known_rank = false, known_shape = false;  // known_shape: all dims are known
  tw_shape shape() const { return {dims.data(), known_rank ? int32_t(dims.size()) : -1, 0}; }
};
// Describes a variable; for another value, fails the scope and returns false.
bool Inspect(tw_scope* scope, tw_output variable, VariableInfo* out);
// Returns true for half, bfloat16, float and double.
bool IsReal(uint32_t dtype);
// Returns the text of a string attribute; "" if there is none.
std::string StringAttr(const tw_operation* operation, const char* attr);
// Describes the variable of an operation; false if it makes neither a variable's handle nor a
// reference to one.
bool IsVariable(const tw_operation* operation, VariableInfo* out);

// Returns the value of a weight: reads a variable; any other value is returned as it is.
tw_output WeightValue(tw_scope* scope, tw_output weight);
// Constants of int64.
tw_output Long(tw_scope* scope, int64_t value);
tw_output Longs(tw_scope* scope, const std::vector<int64_t>& values);
// Adds an operation of one output with an element-type attribute.
tw_output Typed(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const char* attr, uint32_t dtype);
// Casts `value` to that type.
tw_output CastTo(tw_scope* scope, tw_output value, uint32_t dtype);
// Adds an operation without outputs.
const tw_operation* Update(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs,
                           const std::vector<const tw_operation*>& after = {});
// Adds an assignment of `value` to `variable`, for any shape of the variable.
const tw_operation* Assign(tw_scope* scope, tw_output variable, const VariableInfo& info, tw_output value,
                           const std::vector<const tw_operation*>& after = {});
// Makes a variable that accompanies another one: `variable`/`slot`.
tw_output Beside(tw_scope* scope, const VariableInfo& variable, const char* slot, tw_output initial);
// Makes a variable for an optimizer, with the variable's type and shape, filled with `initial`. If
// the graph has that name already, from an earlier slot of this or another optimizer of its kind,
// the name is `slot`_1, `slot`_2, ... Fails the scope if the shape is not known.
tw_output Slot(tw_scope* scope, const VariableInfo& variable, const char* slot, double initial = 0);
// Returns `base` or, if the graph has that already, base_1, base_2, ...
std::string FreeName(tw_scope* scope, const std::string& base);
// Converts a sparse gradient to a dense one.
tw_output Dense(tw_scope* scope, const tw_gradient& gradient, const VariableInfo& variable);
// Sums repeated rows of a sparse gradient, so that each row occurs once.
tw_gradient UniqueRows(tw_scope* scope, const tw_gradient& gradient);

// Begins an operation of op ResourceApply`optimizer` or, for a sparse gradient,
// ResourceSparseApply`optimizer`, whose inputs are `before`, the gradient (with its rows) and
// `after`. REQUIRES: each row of a sparse gradient occurs once.
OpenOp BeginApply(tw_scope* scope, const std::string& optimizer, const std::vector<tw_output>& before, const tw_gradient& gradient,
                  const std::vector<tw_output>& after = {});

// beta^t for an optimizer that corrects a bias: a variable that starts at beta, and its value. The
// type is at least float, because half would lose 0.999^t. It is double if one of the optimizer's
// variables is double, whose op takes beta in double: a power of beta rounded to float makes the
// first steps wrong in the sixth digit.
struct Power {
  tw_output variable = 0, value = 0;
  double beta = 0;
  uint32_t dtype = 0;
};
Power MakePower(tw_scope* scope, const char* name, double beta, uint32_t dtype);
// Returns the type of an optimizer's powers.
uint32_t PowerType(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n);
// Adds an operation that multiplies the power by beta after `updates` have run.
const tw_operation* Advance(tw_scope* scope, const Power& power, const tw_operation* updates);

// Wraps every exported builder: no exception passes through C. Returns T{} after a failure.
template <class F>
auto Protect(tw_scope* scope, F&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    tw_scope_fail(scope, tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory"));
  } catch (...) {
    tw_scope_fail(scope, tw_status_create(TW_INTERNAL, "a builder threw"));
  }
  return {};
}

// Fails the scope unless variable i, which has a gradient, is of a real type and differs from all
// earlier ones that have a gradient.
bool CheckTrained(tw_scope* scope, const char* function, const tw_output* variables, const tw_gradient* gradients, uint32_t i,
                  const VariableInfo& info);

// Calls update(variable, info, gradient) for each variable that has a gradient and groups the
// results.
template <class F>
const tw_operation* ForEach(tw_scope* scope, const char* optimizer, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                            F&& update) {
  std::vector<const tw_operation*> updates;
  if (n > 0 && (!variables || !gradients)) Fail(scope, TW_INVALID_ARGUMENT, std::string(optimizer) + ": variables or gradients is NULL");
  for (uint32_t i = 0; i < n && Good(scope); ++i) {
    VariableInfo info;
    if (gradients[i].values == 0 || !Inspect(scope, variables[i], &info)) continue;
    if (CheckTrained(scope, optimizer, variables, gradients, i, info)) updates.push_back(update(variables[i], info, gradients[i]));
  }
  if (Good(scope) && updates.empty()) {
    Fail(scope, TW_INVALID_ARGUMENT, std::string(optimizer) + ": the loss depends on none of the " + std::to_string(n) + " variables");
  }
  return Good(scope) ? tw_scope_group(scope, nullptr, updates.data(), uint32_t(updates.size())) : nullptr;
}

}  // namespace thalweg::library
