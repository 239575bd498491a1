// Variables: making a handle, reading, assigning, asking, destroying. A handle carries the variable's type and shape, as far as known.
#include "ops/common/variable.h"

#include "ops/register.h"

namespace thalweg::ops {
namespace {

void HandleRule(const tw::Shape& s) {
  s.out(0, Dims{});
  s.set_handle(0, s.type("dtype"), s.shape("shape"));
}

void ReadRule(const tw::Shape& s) { Set(s, 0, Variable(s, 0, s.type("dtype"))); }

// The gradient of a handle is the gradient of the variable's value.
void ReadGradient(const tw::Grad& g) { g.dx(0, g.dy()); }

void AssignRule(const tw::Shape& s) { Merge(s, Variable(s, 0, s.type("dtype")), In(s, 1), "the shapes of the variable and of 'value'"); }

void Assign(tw::Plugin& p, const std::string& name, const std::string& attrs, const std::string& doc) {
  p.op<nullptr, AssignRule>(name + "(resource: resource, value: dtype) -> (); dtype: type; " + attrs +
                            "stateful; no_gradient \"it has no outputs\"; doc \"" + doc + "\"");
}

}  // namespace

void register_variable(tw::Plugin& p) {
  p.op<nullptr, HandleRule>(R"(
      VarHandleOp() -> (resource: resource[]); container: string = ""; shared_name: string = ""; debug_name: string = ""; dtype: type;
      shape: shape; allowed_devices: list(string) = []; stateful; once; resource resource variable; no_gradient "it has no inputs";
      doc "a handle to the variable of that container and shared_name, or the node's name; makes it, uninitialised, if there is none")");
  p.op(R"(
      VarIsInitializedOp(resource: resource[]) -> (is_initialized: bool[]); stateful; no_gradient "truth values have no derivative";
      doc "whether the variable has a value")");
  p.op<ReadGradient, ReadRule>(R"(
      ReadVariableOp(resource: resource) -> (value: dtype); dtype: type; stateful; doc "the variable's value at the time of the read")");
  Assign(p, "AssignVariableOp", "validate_shape: bool = false; ", "the variable's value becomes 'value'");
  Assign(p, "AssignAddVariableOp", "", "adds 'value' to the variable, which must have a value");
  Assign(p, "AssignSubVariableOp", "", "takes 'value' from the variable, which must have a value");
  p.op(R"(
      DestroyResourceOp(resource: resource[]) -> (); ignore_lookup_error: bool = true; stateful; no_gradient "it has no outputs";
      doc "removes the resource; its name is free at once, its memory after the last use")");
}

}  // namespace thalweg::ops
