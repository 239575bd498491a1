// What the builders of this folder share. Everything goes through the public C API: a scope that keeps the first failure, so that code
// here reads straight down and is checked once, by whoever finishes the scope.
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

// Reports INVALID_ARGUMENT or another failure of ours to the scope.
void Fail(tw_scope* scope, uint32_t code, const std::string& text);
bool Good(const tw_scope* scope);

// An operation of the scope from its begin to its end; given up where an exception comes between.
class OpenOp {
 public:
  OpenOp(tw_scope* scope, const char* type, const char* name = nullptr) : scope_(scope), op_(tw_scope_begin(scope, type, name)) {}
  OpenOp(OpenOp&& from) noexcept : scope_(from.scope_), op_(from.Take()) {}
  ~OpenOp() { tw_op_destroy(op_); }
  operator tw_op*() const { return op_; }  // to describe it; NULL once the scope has failed

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

// What the graph knows of a value.
struct ValueInfo {
  uint32_t dtype = 0;
  tw_shape shape = {nullptr, -1, 0};
  int64_t Dim(int32_t axis) const { return shape.rank > axis ? shape.dims[axis] : -1; }
};
// Of a value of the graph, or of one from around an open body. Fails the scope for other numbers; nothing is known of them then.
ValueInfo Describe(tw_scope* scope, const tw_graph* graph, tw_output value);
// Of a value of the scope's graph.
inline ValueInfo Describe(tw_scope* scope, tw_output value) { return Describe(scope, tw_scope_graph(scope), value); }

// "[2, ?]"; "?" where nothing is known.
std::string ShapeText(const tw_shape& shape);
// Whether every value of that shape has the wanted one.
bool Fits(const tw_shape& shape, const tw_shape& wanted);

// What the handle of a variable, or of a plugin's resource, tells about it.
struct VariableInfo {
  std::string operation, name;  // name: in containers and checkpoints
  std::string resource;         // the type of resource; empty: a variable. dtype and dims are then what is saved
  bool reference = false;       // not a handle: the older form
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
  bool known_rank = false, known_shape = false;  // known_shape: every dim, too
  tw_shape shape() const { return {dims.data(), known_rank ? int32_t(dims.size()) : -1, 0}; }
};
// False, with the scope failed, for a value that is no variable.
bool Inspect(tw_scope* scope, tw_output variable, VariableInfo* out);
// Half, bfloat16, float or double.
bool IsReal(uint32_t dtype);
// The text of a string attribute; "" where there is none.
std::string StringAttr(const tw_operation* operation, const char* attr);
// The same about an operation; false if it is not one that makes a variable's handle, or a reference to one.
bool IsVariable(const tw_operation* operation, VariableInfo* out);

// Constants of int64.
tw_output Long(tw_scope* scope, int64_t value);
tw_output Longs(tw_scope* scope, const std::vector<int64_t>& values);
// An operation of one output with an element-type attribute.
tw_output Typed(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const char* attr, uint32_t dtype);
// `value` as a value of that type.
tw_output CastTo(tw_scope* scope, tw_output value, uint32_t dtype);
// An operation without outputs.
const tw_operation* Update(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs,
                           const std::vector<const tw_operation*>& after = {});
// `variable` becomes `value`, whatever shape it had.
const tw_operation* Assign(tw_scope* scope, tw_output variable, const VariableInfo& info, tw_output value,
                           const std::vector<const tw_operation*>& after = {});
// A variable beside another that is kept for it: `variable`/`slot`.
tw_output Beside(tw_scope* scope, const VariableInfo& variable, const char* slot, tw_output initial);
// One that an optimizer keeps: of the variable's type and shape, full of `initial` at first. Where the graph has that name already, by a
// first slot of the optimizer or by another one of its kind, `slot`_1, `slot`_2, ... Fails the scope where the shape is not known.
tw_output Slot(tw_scope* scope, const VariableInfo& variable, const char* slot, double initial = 0);
// `base` or, where the graph has that already, base_1, base_2, ...
std::string FreeName(tw_scope* scope, const std::string& base);
// A sparse gradient as a dense one.
tw_output Dense(tw_scope* scope, const tw_gradient& gradient, const VariableInfo& variable);
// A sparse gradient whose repeated rows are added up, so that each row stands once.
tw_gradient UniqueRows(tw_scope* scope, const tw_gradient& gradient);

// Begins an operation of op ResourceApply`optimizer` or, for a sparse gradient, ResourceSparseApply`optimizer`, whose inputs are `before`,
// the gradient (with its rows) and `after`. REQUIRES of a sparse gradient: each row stands once.
OpenOp BeginApply(tw_scope* scope, const std::string& optimizer, const std::vector<tw_output>& before, const tw_gradient& gradient,
                  const std::vector<tw_output>& after = {});

// beta^t for an optimizer that corrects a bias: a variable that starts at beta, and its value. Never narrower than float: half would lose
// 0.999^t. Double where one of the optimizer's variables is, whose op takes beta in double: a power of beta rounded to float makes its
// first steps wrong in the sixth digit.
struct Power {
  tw_output variable = 0, value = 0;
  double beta = 0;
  uint32_t dtype = 0;
};
Power MakePower(tw_scope* scope, const char* name, double beta, uint32_t dtype);
// The type of an optimizer's powers.
uint32_t PowerType(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n);
// Multiplies it by beta once `updates` are done.
const tw_operation* Advance(tw_scope* scope, const Power& power, const tw_operation* updates);

// The door of every exported builder: nothing is thrown through C. Answers T{} after a failure.
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

// Fails the scope unless variable i, which has a gradient, is of a real type and none of those before that have one.
bool CheckTrained(tw_scope* scope, const char* function, const tw_output* variables, const tw_gradient* gradients, uint32_t i,
                  const VariableInfo& info);

// Calls update(variable, info, gradient) for each variable that has a gradient and groups what that answers.
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
