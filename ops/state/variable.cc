// Variables: ops that create a handle or a reference, and ops that read, assign, query and destroy.
// A handle carries the variable's type and shape, as far as known.
#include "ops/common/variable.h"

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void HandleRule(const tw::Shape& s) {
  s.out(0, Dims{});
  s.set_handle(0, s.type("dtype"), s.shape("shape"));
}

void ReadRule(const tw::Shape& s) { Set(s, 0, Variable(s, 0, s.type("dtype"))); }

// The gradient of a handle is the gradient of the variable's value. Rows stay rows, so that an optimizer touches only those of the variable
// that were picked, whether the variable was gathered from or its value.
void ReadGradient(const tw::Grad& g) { PassBack(g, 0, 0); }

MaybeDims Assigned(const tw::Shape& s) {
  return Merge(s, Variable(s, 0, s.type_in(1)), In(s, 1), "the shapes of the variable and of 'value'");
}
void AssignRule(const tw::Shape& s) { Assigned(s); }

void Assign(tw::Plugin& p, const std::string& name, const std::string& attrs, const std::string& doc) {
  p.op<nullptr, AssignRule>(name + "(resource: resource, value: dtype) -> (); dtype: type; " + attrs +
                            "stateful; no_gradient \"it has no outputs\"; ?data value; doc \"" + doc + "\"");
}

// In `Variable`, the older of the two ops, an empty shape means that the shape is unknown.
template <bool kScalars>
void ReferenceRule(const tw::Shape& s) {
  const MaybeDims dims = ToDims(s.shape("shape"));
  if (kScalars || (dims && !dims->empty())) Set(s, 0, dims);
}

void UpdateReferenceRule(const tw::Shape& s) { Set(s, 0, Assigned(s)); }
// With validate_shape false, this op alone may change a variable's shape from its declaration.
void AssignReferenceRule(const tw::Shape& s) { Set(s, 0, s.b("validate_shape") ? Assigned(s) : In(s, 1)); }

void AddReferences(tw::Plugin& p) {
  constexpr const char* kMade =
      "() -> (ref: ref(dtype)); shape: shape; dtype: type; container: string = \"\"; shared_name: string = \"\"; "
      "stateful; runs_as VarHandleOp; no_gradient \"it has no inputs\"; doc \"";
  constexpr const char* kChanged =
      "(ref: ref(T), value: T) -> (output_ref: ref(T)); T: " OPS_NUMBERS "; use_locking: bool = false; " OPS_HANDS_ON;
  p.op<nullptr, ReferenceRule<true>>(std::string("VariableV2") + kMade + "a reference to the variable of that container and name\"");
  p.op<nullptr, ReferenceRule<false>>(std::string("Variable") + kMade + "VariableV2, but [] says that the shape is not known\"");
  p.op<nullptr, AssignReferenceRule>(
      "Assign(ref: ref(T), value: T) -> (output_ref: ref(T)); T: type; validate_shape: bool = true; use_locking: bool = true; " OPS_HANDS_ON
      "runs_as AssignVariableOp; doc \"the variable's value becomes 'value'\"");
  p.op<nullptr, UpdateReferenceRule>(std::string("AssignAdd") + kChanged +
                                     "runs_as AssignAddVariableOp; doc \"adds 'value' to the variable\"");
  p.op<nullptr, UpdateReferenceRule>(std::string("AssignSub") + kChanged +
                                     "runs_as AssignSubVariableOp; doc \"takes 'value' from the variable\"");
  p.op(R"(
      IsVariableInitialized(ref: ref(dtype)) -> (is_initialized: bool[]); dtype: type; stateful; runs_as VarIsInitializedOp;
      no_gradient "truth values have no derivative"; doc "whether the variable has a value")");
}

// Ops on several variables at once.

int64_t CountOf(const tw::Shape& s) { return s.i("N"); }

void ReadAllRule(const tw::Shape& s) {
  const int64_t n = CountOf(s);
  const tw_attr& types = s.at("dtypes");
  if (int64_t(types.count) != n) {
    throw tw::Error{TW_INVALID_ARGUMENT, "dtypes names " + tw::text(int64_t(types.count)) + " types for " + tw::text(n) + " variables"};
  }
  for (uint32_t i = 0; i < uint32_t(n); ++i) Set(s, i, Variable(s, i, static_cast<const uint32_t*>(types.data)[i]));
  s.out(uint32_t(n), Dims{n});
}
void ReadAllGradient(const tw::Grad& g) {
  for (uint32_t i = 0; i < uint32_t(g.i("N")); ++i) PassBack(g, i, i);
}

void AssignAllRule(const tw::Shape& s) {
  const uint32_t n = uint32_t(CountOf(s));
  if (s.c->n_in != 2 * n + 1) {
    throw tw::Error{TW_INVALID_ARGUMENT, tw::text(int64_t(n)) + " variables have " + tw::text(int64_t(s.c->n_in) - n - 1) + " values"};
  }
  s.want_rank(n, 1, "versions");
  for (uint32_t i = 0; i < n; ++i) {
    Merge(s, Variable(s, i, s.type_in(n + 1 + i)), In(s, n + 1 + i), "the shapes of a variable and of its value");
  }
  s.out(0, Dims{});
}

void AddSeveral(tw::Plugin& p) {
  p.op<ReadAllGradient, ReadAllRule>(R"(
      ReadVariables(resources: resource * N) -> (values: dtypes, versions: int64); N: int >= 1; dtypes: list(type) >= 1; stateful;
      doc "the values of several variables at one time, and how often each was updated")");
  p.op<nullptr, AssignAllRule>(R"(
      AssignVariables(resources: resource * N, versions: int64, values: dtypes) -> (assigned: bool[]); N: int >= 1;
      dtypes: list(type) >= 1; stateful; no_gradient "a truth has no derivative";
      doc "all of the variables get new values at one time, or none, if one of them was updated since its version was read")");
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
      ReadVariableOp(resource: resource) -> (value: dtype); dtype: type; stateful; role read_variable;
      doc "the variable's value at the time of the read")");
  Assign(p, "AssignVariableOp", "validate_shape: bool = false; ", "the variable's value becomes 'value'");
  Assign(p, "AssignAddVariableOp", "", "adds 'value' to the variable, which must have a value");
  Assign(p, "AssignSubVariableOp", "", "takes 'value' from the variable, which must have a value");
  p.op(R"(
      DestroyResourceOp(resource: resource[]) -> (); ignore_lookup_error: bool = true; stateful; no_gradient "it has no outputs";
      doc "removes the resource; its name is free at once, its memory after the last use")");
  AddReferences(p);
  AddSeveral(p);
}

}  // namespace thalweg::ops
