#include "ops/library/build.h"

#include <algorithm>
#include <new>

#include "thalweg/function.h"
#include "thalweg/op.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

namespace thalweg::library {

void Fail(tw_scope* scope, uint32_t code, const std::string& text) { tw_scope_fail(scope, tw_status_create(code, text.c_str())); }

bool Good(const tw_scope* scope) { return tw_scope_code(scope) == TW_OK; }

ValueInfo Describe(tw_scope* scope, const tw_graph* graph, tw_output value) {
  ValueInfo info;
  if (Good(scope) && graph) tw_scope_fail(scope, tw_graph_describe(graph, value, &info.dtype, &info.shape));
  return Good(scope) ? info : ValueInfo();
}

std::string ShapeText(const tw_shape& shape) {
  if (shape.rank < 0) return "?";
  std::string text = "[";
  for (int32_t i = 0; i < shape.rank; ++i) {
    text += i ? ", " : "";
    text += shape.dims[i] < 0 ? "?" : std::to_string(shape.dims[i]);
  }
  return text + "]";
}

bool Fits(const tw_shape& shape, const tw_shape& wanted) {
  if (wanted.rank < 0) return true;
  bool fits = shape.rank == wanted.rank;
  for (int32_t i = 0; fits && i < wanted.rank; ++i) fits = wanted.dims[i] < 0 || wanted.dims[i] == shape.dims[i];
  return fits;
}

namespace {

// Returns `base` or, if the graph has an operation of that name, base_1, base_2, ...
std::string Free(const tw_graph* graph, const std::string& base) {
  std::string name = base;
  for (int i = 1;; ++i) {
    if (!tw_graph_has(graph, name.c_str())) return name;
    name = base + "_" + std::to_string(i);
  }
}

}  // namespace

std::string StringAttr(const tw_operation* operation, const char* attr) {
  uint32_t kind = 0;
  const void* value = nullptr;
  tw_status* missing = tw_operation_attr(operation, attr, &kind, nullptr, nullptr, &value);
  tw_status_release(missing);
  if (missing || kind != TW_ATTR_STRING) return "";
  const auto* text = static_cast<const tw_string*>(value);
  return text->size > 0 ? std::string(text->data, text->size) : "";
}

bool IsVariable(const tw_operation* operation, VariableInfo* out) {
  const std::string type = tw_operation_type(operation);
  out->reference = type == "VariableV2" || type == "Variable";
  if (type != "VarHandleOp" && !out->reference) return false;
  const void *dtype = nullptr, *shape = nullptr;
  tw_status* missing = tw_operation_attr(operation, "dtype", nullptr, nullptr, nullptr, &dtype);
  if (!missing) missing = tw_operation_attr(operation, "shape", nullptr, nullptr, nullptr, &shape);
  // A failure without memory does not mean that the attribute is missing.
  const bool out_of_memory = tw_status_code(missing) == TW_RESOURCE_EXHAUSTED;
  tw_status_release(missing);
  if (out_of_memory) throw std::bad_alloc();
  if (missing) return false;
  out->operation = tw_operation_name(operation);
  out->name = StringAttr(operation, "shared_name");
  if (out->name.empty()) out->name = out->operation;
  out->dtype = *static_cast<const uint32_t*>(dtype);
  const auto* dims = static_cast<const tw_shape*>(shape);
  const bool open = type == "Variable" && dims->rank == 0;  // a shape [] of this op means an unknown shape
  out->known_rank = out->known_shape = dims->rank >= 0 && !open;
  if (dims->rank > 0) out->dims.assign(dims->dims, dims->dims + dims->rank);
  for (const int64_t dim : out->dims) out->known_shape = out->known_shape && dim >= 0;
  return true;
}

// Returns true if the handle stands in a block for a variable of the graph around; describes that
// variable.
static bool IsCaptured(const tw_graph* graph, tw_output handle, const tw_operation* operation, VariableInfo* out) {
  uint32_t type = 0;
  tw_shape shape = {nullptr, -1, 0};
  tw_status_release(tw_graph_describe(graph, handle, &type, nullptr));
  if (type != TW_RESOURCE || !tw_graph_is_body(graph)) return false;
  tw_status_release(tw_graph_describe_contents(graph, handle, &out->dtype, &shape));
  out->operation = out->name = tw_operation_name(operation);
  out->known_rank = out->known_shape = shape.rank >= 0;
  if (shape.rank > 0) out->dims.assign(shape.dims, shape.dims + shape.rank);
  for (const int64_t dim : out->dims) out->known_shape = out->known_shape && dim >= 0;
  return out->dtype != 0;
}

bool Inspect(tw_scope* scope, tw_output variable, VariableInfo* out) {
  tw_graph* graph = tw_scope_graph(scope);
  if (!graph) return false;
  const tw_operation* operation = nullptr;
  tw_scope_fail(scope, tw_graph_producer(graph, variable, &operation, nullptr));
  if (!operation || IsVariable(operation, out)) return operation != nullptr;
  if (Good(scope) && IsCaptured(graph, variable, operation, out)) return true;
  Fail(scope, TW_INVALID_ARGUMENT,
       std::string("'") + tw_operation_name(operation) + "' is no variable; give the handle that tw_variable_create answered");
  return false;
}

bool IsReal(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16; }

namespace {

// Adds a constant; make(out) makes the tensor and returns a status.
template <class F>
tw_output Constant(tw_scope* scope, F&& make) {
  tw_tensor* t = nullptr;
  tw_scope_fail(scope, make(&t));
  const tw_output constant = Good(scope) ? tw_scope_constant(scope, t) : 0;
  tw_tensor_release(t);
  return constant;
}

}  // namespace

tw_output WeightValue(tw_scope* scope, tw_output weight) {
  return Describe(scope, weight).dtype == TW_RESOURCE ? tw_variable_read(scope, weight) : weight;
}

tw_output Long(tw_scope* scope, int64_t value) {
  return Constant(scope, [&](tw_tensor** out) { return tw_tensor_create_int64(value, out); });
}

tw_output Longs(tw_scope* scope, const std::vector<int64_t>& values) {
  const auto n = int64_t(values.size());
  return Constant(
      scope, [&](tw_tensor** out) { return tw_tensor_create_copy(TW_INT64, &n, 1, values.data(), values.size() * sizeof(int64_t), out); });
}

tw_output Typed(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const char* attr, uint32_t dtype) {
  OpenOp op(scope, type);
  tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
  tw_op_set_type(op, attr, dtype);
  return op.End();
}

tw_output CastTo(tw_scope* scope, tw_output value, uint32_t dtype) {
  const uint32_t is = Describe(scope, value).dtype;
  return is == dtype || !Good(scope) ? value : Typed(scope, "Cast", {value}, "DstT", dtype);
}

const tw_operation* Update(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs,
                           const std::vector<const tw_operation*>& after) {
  OpenOp op(scope, type);
  tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
  for (const tw_operation* before : after) tw_op_add_control(op, before);
  return op.EndOperation();
}

namespace {

// While it lives, the scope adds operations on the device that the variable names, if it names one,
// so that slots are on the variable's device.
class WhereItIs {
 public:
  WhereItIs(tw_scope* scope, const VariableInfo& variable) : scope_(scope), before_(tw_scope_device(scope)) {
    const tw_graph* graph = tw_scope_graph(scope);
    const tw_operation* operation = nullptr;
    if (!graph || !tw_graph_has(graph, variable.operation.c_str())) return;
    tw_scope_fail(scope, tw_graph_find(graph, variable.operation.c_str(), &operation));
    if (*tw_operation_device(operation)) tw_scope_set_device(scope, tw_operation_device(operation));
  }
  ~WhereItIs() { tw_scope_set_device(scope_, before_.c_str()); }
  WhereItIs(const WhereItIs&) = delete;
  WhereItIs& operator=(const WhereItIs&) = delete;

 private:
  tw_scope* const scope_;
  const std::string before_;
};

}  // namespace

tw_output Beside(tw_scope* scope, const VariableInfo& variable, const char* slot, tw_output initial) {
  const WhereItIs there(scope, variable);
  // The name follows the variable's name; the scope's prefix must not be added again.
  const std::string prefix = tw_scope_prefix(scope), name = variable.operation + "/" + slot;
  if (name.compare(0, prefix.size(), prefix) == 0) return tw_variable_create(scope, name.substr(prefix.size()).c_str(), initial);
  tw_scope* top = tw_scope_create(tw_scope_graph(scope), nullptr);
  tw_scope_set_place(top, tw_scope_place(scope));
  tw_scope_set_device(top, tw_scope_device(scope));
  const tw_output made = tw_variable_create(top, name.c_str(), initial);
  tw_scope_fail(scope, tw_scope_finish(top));
  return Good(scope) ? made : 0;
}

tw_output Slot(tw_scope* scope, const VariableInfo& variable, const char* slot, double initial) {
  if (!variable.known_shape) {
    Fail(
        scope, TW_INVALID_ARGUMENT,
        "variable '" + variable.name + "' has no known shape, so that no slot can be made for it; give it an initial value of a known one");
    return 0;
  }
  const tw_graph* graph = tw_scope_graph(scope);
  if (!graph) return 0;
  const WhereItIs there(scope, variable);
  const std::string beside = variable.operation + "/", free = Free(graph, beside + slot).substr(beside.size());
  const tw_output filled = tw_scope_op2(scope, "Fill", Longs(scope, variable.dims), tw_scope_scalar(scope, variable.dtype, initial));
  return Beside(scope, variable, free.c_str(), filled);
}

std::string FreeName(tw_scope* scope, const std::string& base) {
  const std::string prefix = tw_scope_prefix(scope);
  const tw_graph* graph = tw_scope_graph(scope);
  return graph ? Free(graph, prefix + base).substr(prefix.size()) : base;
}

const tw_operation* Assign(tw_scope* scope, tw_output variable, const VariableInfo& info, tw_output value,
                           const std::vector<const tw_operation*>& after) {
  OpenOp op(scope, info.reference ? "Assign" : "AssignVariableOp");
  tw_op_add_input(op, variable);
  tw_op_add_input(op, value);
  if (info.reference) tw_op_set_bool(op, "validate_shape", 0);
  for (const tw_operation* before : after) tw_op_add_control(op, before);
  return op.EndOperation();
}

namespace {

// Returns the number of rows of a variable as a scalar of the type of `rows`; fails the scope if it
// is not known.
tw_output RowCount(tw_scope* scope, const VariableInfo& variable) {
  if (variable.dims.empty() || variable.dims[0] < 0) {
    Fail(scope, TW_INVALID_ARGUMENT, "variable '" + variable.name + "' has a sparse gradient but no known number of rows");
    return 0;
  }
  return tw_scope_scalar(scope, TW_INT64, double(variable.dims[0]));
}

}  // namespace

tw_output Dense(tw_scope* scope, const tw_gradient& gradient, const VariableInfo& variable) {
  if (gradient.rows == 0) return gradient.values;
  const tw_output count = RowCount(scope, variable), zero = tw_scope_scalar(scope, TW_INT64, 0), one = tw_scope_scalar(scope, TW_INT64, 1);
  // The sum drops rows below 0 silently; a lookup of each row refuses them.
  const tw_output all = tw_scope_op3(scope, "Range", zero, count, one);
  const tw_output rows = tw_scope_op3(scope, "GatherV2", all, gradient.rows, tw_scope_scalar(scope, TW_INT32, 0));
  return tw_scope_op3(scope, "UnsortedSegmentSum", gradient.values, rows, count);
}

tw_gradient UniqueRows(tw_scope* scope, const tw_gradient& gradient) {
  if (gradient.rows == 0) return gradient;
  OpenOp op(scope, "Unique");
  tw_op_add_input(op, gradient.rows);
  const tw_operation* unique = op.EndOperation();
  if (!unique) return gradient;  // the scope has failed
  const tw_output rows = tw_operation_output(unique, 0), place = tw_operation_output(unique, 1);
  const tw_output count = Typed(scope, "Size", {rows}, "out_type", TW_INT64);
  return {tw_scope_op3(scope, "UnsortedSegmentSum", gradient.values, place, count), rows};
}

OpenOp BeginApply(tw_scope* scope, const std::string& optimizer, const std::vector<tw_output>& before, const tw_gradient& gradient,
                  const std::vector<tw_output>& after) {
  OpenOp op(scope, ((gradient.rows ? "ResourceSparseApply" : "ResourceApply") + optimizer).c_str());
  tw_op_add_inputs(op, before.data(), uint32_t(before.size()));
  tw_op_add_input(op, gradient.values);
  if (gradient.rows) tw_op_add_input(op, gradient.rows);
  tw_op_add_inputs(op, after.data(), uint32_t(after.size()));
  return op;
}

bool CheckTrained(tw_scope* scope, const char* function, const tw_output* variables, const tw_gradient* gradients, uint32_t i,
                  const VariableInfo& info) {
  const std::string variable = std::string(function) + ": variable '" + info.name + "' ";
  if (info.reference) {
    Fail(scope, TW_INVALID_ARGUMENT,
         variable + "is a reference (" + info.operation + "); what is trained here must be made by VarHandleOp");
  }
  if (!IsReal(info.dtype)) {
    Fail(scope, TW_INVALID_ARGUMENT,
         variable + "holds " + tw_dtype_name(info.dtype) + "; what is trained must hold half, bfloat16, float or double");
  }
  for (uint32_t k = 0; k < i; ++k) {
    if (variables[k] == variables[i] && gradients[k].values != 0)
      Fail(scope, TW_INVALID_ARGUMENT, variable + "is listed twice; list it once, with all of its gradient");
  }
  return Good(scope);
}

uint32_t PowerType(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n) {
  for (uint32_t i = 0; variables && gradients && i < n && Good(scope); ++i) {
    VariableInfo info;
    if (gradients[i].values != 0 && Inspect(scope, variables[i], &info) && info.dtype == TW_DOUBLE) return TW_DOUBLE;
  }
  return TW_FLOAT;
}

Power MakePower(tw_scope* scope, const char* name, double beta, uint32_t dtype) {
  const tw_output variable = tw_variable_create(scope, FreeName(scope, name).c_str(), tw_scope_scalar(scope, dtype, beta));
  return {variable, tw_variable_read(scope, variable), beta, dtype};
}

const tw_operation* Advance(tw_scope* scope, const Power& power, const tw_operation* updates) {
  const tw_output next = tw_scope_op2(scope, "Mul", power.value, tw_scope_scalar(scope, power.dtype, power.beta));
  return Update(scope, "AssignVariableOp", {power.variable, next}, {updates});
}

}  // namespace thalweg::library
