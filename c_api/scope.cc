// Scopes: a graph, a prefix and the first failure. Scopes add operations only through the operation
// builder, as a program would.
#include "thalweg/scope.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "c_api/handles.h"
#include "c_api/op_builder.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/registry/registry.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/container.h"
#include "framework/tensor/tensor.h"
#include "thalweg/status.h"

using thalweg::Edge;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::Tensor;

struct tw_scope {
  tw_graph* graph = nullptr;
  std::string prefix;     // with its slash
  std::string place;      // place in the program
  std::string device;     // for operations that name none
  std::string container;  // likewise
  Status status;
};

namespace {

bool Good(const tw_scope* scope) { return scope && scope->status.ok(); }

// Runs a step that returns a StatusOr<T>; returns T{} if the scope has failed or fails now.
template <class T, class F>
T Step(tw_scope* scope, F&& body) {
  T result{};
  if (!Good(scope)) return result;
  tw_scope_fail(scope, thalweg::Enter([&]() -> Status {
                  StatusOr<T> made = body();
                  if (made.ok()) result = *made;
                  return made.status();
                }));
  return result;
}

// Returns the given name, or one made from `base` and a number; both under the prefix.
std::string MakeName(const tw_scope& scope, const char* name, const char* base) {
  return name && *name ? scope.prefix + name : scope.graph->graph->UniqueName(scope.prefix + base);
}

StatusOr<Edge> Input(tw_scope* scope, tw_output value, std::string_view what) { return thalweg::DecodeOutput(*scope->graph, value, what); }

// Stores a double as a scalar of any numeric type.
template <class T>
void Put(Tensor* t, double value) {
  *t->as<T>() = static_cast<T>(value);
}

// Rounds to nearest, ties to even, through the bits of a float.
uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t ToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size >= 65520) return uint16_t(sign | 0x7c00);
  if (size == 0) return sign;  // zero has no exponent
  int exponent;
  std::frexp(size, &exponent);
  // Units of the last place: 2^-24 for subnormal values, 11 significant bits otherwise.
  const int unit = std::max(exponent - 11, -24);
  const double scaled = std::nearbyint(std::ldexp(size, -unit));
  const auto mantissa = uint32_t(scaled);
  // Adding the biased exponent carries correctly if rounding reached the next power of two.
  const uint32_t biased = unit == -24 && mantissa < 1024 ? 0 : uint32_t(unit + 24);
  return uint16_t(sign | (biased * 1024 + mantissa));
}

template <class T>
Status PutInteger(Tensor* t, double value) {
  // 2^digits is exact in a double; the largest value of a wide type is not.
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double rounded = std::nearbyint(value);
  if (!(rounded >= double(std::numeric_limits<T>::min()) && rounded < above)) {
    return InvalidArgument(value, " does not fit into ", thalweg::DTypeName(t->dtype()));
  }
  Put<T>(t, rounded);
  return Status();
}

Status PutScalar(Tensor* t, double value) {
  switch (t->dtype()) {
    case TW_FLOAT: Put<float>(t, value); return Status();
    case TW_DOUBLE: Put<double>(t, value); return Status();
    case TW_HALF: *t->as<uint16_t>() = ToHalf(value); return Status();
    case TW_BFLOAT16: *t->as<uint16_t>() = ToBfloat16(float(value)); return Status();
    case TW_COMPLEX64:
      t->as<float>()[0] = float(value);
      t->as<float>()[1] = 0;
      return Status();
    case TW_COMPLEX128:
      t->as<double>()[0] = value;
      t->as<double>()[1] = 0;
      return Status();
    case TW_BOOL: *t->as<uint8_t>() = value != 0; return Status();
    case TW_INT8: return PutInteger<int8_t>(t, value);
    case TW_INT16: return PutInteger<int16_t>(t, value);
    case TW_INT32: return PutInteger<int32_t>(t, value);
    case TW_INT64: return PutInteger<int64_t>(t, value);
    case TW_UINT8: return PutInteger<uint8_t>(t, value);
    case TW_UINT16: return PutInteger<uint16_t>(t, value);
    case TW_UINT32: return PutInteger<uint32_t>(t, value);
    case TW_UINT64: return PutInteger<uint64_t>(t, value);
    default: return InvalidArgument("a scalar constant cannot be of type ", thalweg::DTypeName(t->dtype()));
  }
}

// Places an operation without a device: one on state runs where the state is, others on the scope's
// device.
void PlaceByDefault(const tw_scope& scope, tw_op* op) {
  if (!op || scope.device.empty() || !op->spec.device.empty()) return;
  for (const Edge& e : op->spec.inputs) {
    if (e.node->out_type(e.port) != TW_RESOURCE) continue;
    op->spec.device = e.node->device();
    return;
  }
  op->spec.device = scope.device;
}

// Sets the container attribute of an operation that creates state.
void SetContainer(const tw_scope& scope, const char* type, tw_op* op) {
  if (scope.container.empty()) return;
  const thalweg::OpSchema* schema = scope.graph->graph->host().FindOp(type);
  if (schema && schema->FindAttr("container") >= 0) tw_op_set_string(op, "container", scope.container.data(), scope.container.size());
}

// A group needs no particular device, but it belongs to the scope's task.
std::string TaskOf(const std::string& device) {
  const auto spec = thalweg::ParseDeviceSpec(device);
  if (!spec.ok()) return "";
  thalweg::DeviceSpec task;
  task.job = spec->job;
  task.task = spec->task;
  return task.text();
}

StatusOr<tw_output> Constant(tw_scope* scope, const Tensor& value) {
  thalweg::Graph& graph = *scope->graph->graph;
  ASSIGN_OR_RETURN(const Edge edge, graph.AddConst(value, MakeName(*scope, nullptr, "Const"), scope->place));
  return thalweg::EncodeOutput(graph, edge);
}

}  // namespace

tw_scope* tw_scope_create(tw_graph* graph, const char* prefix) {
  tw_scope* scope = nullptr;
  tw_status_release(thalweg::Enter([&]() -> Status {
    auto made = std::make_unique<tw_scope>();
    made->graph = graph;
    made->prefix = thalweg::TextOrEmpty(prefix);
    if (!made->prefix.empty()) made->prefix += '/';
    if (!graph) made->status = InvalidArgument("tw_scope_create: graph is NULL");
    scope = made.release();
    return Status();
  }));
  return scope;
}

tw_status* tw_scope_finish(tw_scope* scope) {
  const std::unique_ptr<tw_scope> taken(scope);
  return thalweg::Enter([&] { return scope ? scope->status : thalweg::ResourceExhausted("out of host memory for a scope"); });
}

uint32_t tw_scope_code(const tw_scope* scope) { return scope ? uint32_t(scope->status.raw_code()) : uint32_t(TW_RESOURCE_EXHAUSTED); }

void tw_scope_fail(tw_scope* scope, tw_status* status) {
  if (!status) return;
  Status s = thalweg::FromC(status);
  if (Good(scope)) scope->status = std::move(s);
}

tw_graph* tw_scope_graph(const tw_scope* scope) { return Good(scope) ? scope->graph : nullptr; }

const char* tw_scope_prefix(const tw_scope* scope) { return scope ? scope->prefix.c_str() : ""; }

void tw_scope_set_place(tw_scope* scope, const char* place) {
  if (!Good(scope)) return;
  tw_scope_fail(scope, thalweg::Enter([&] {
                  scope->place = thalweg::TextOrEmpty(place);
                  return Status();
                }));
}

void tw_scope_set_device(tw_scope* scope, const char* device) {
  if (!Good(scope)) return;
  tw_scope_fail(scope, thalweg::Enter([&] {
                  std::string text = thalweg::TextOrEmpty(device);
                  RETURN_IF_ERROR(thalweg::ParseDeviceSpec(text).status());
                  scope->device = std::move(text);
                  return Status();
                }));
}

const char* tw_scope_device(const tw_scope* scope) { return scope ? scope->device.c_str() : ""; }

void tw_scope_set_container(tw_scope* scope, const char* container) {
  if (!Good(scope)) return;
  tw_scope_fail(scope, thalweg::Guard([&] {
                  std::string name = thalweg::TextOrEmpty(container);
                  RETURN_IF_ERROR(thalweg::CheckContainerName(name));
                  scope->container = std::move(name);
                  return Status();
                }));
}

const char* tw_scope_container(const tw_scope* scope) { return scope ? scope->container.c_str() : ""; }

const char* tw_scope_place(const tw_scope* scope) { return scope ? scope->place.c_str() : ""; }

tw_output tw_scope_op(tw_scope* scope, const char* type, const tw_output* inputs, uint32_t n) {
  tw_op* op = tw_scope_begin(scope, type, nullptr);
  tw_op_add_inputs(op, inputs, n);
  return tw_scope_end(scope, op);
}

tw_output tw_scope_op1(tw_scope* scope, const char* type, tw_output a) { return tw_scope_op(scope, type, &a, 1); }

tw_output tw_scope_op2(tw_scope* scope, const char* type, tw_output a, tw_output b) {
  const tw_output inputs[] = {a, b};
  return tw_scope_op(scope, type, inputs, 2);
}

tw_output tw_scope_op3(tw_scope* scope, const char* type, tw_output a, tw_output b, tw_output c) {
  const tw_output inputs[] = {a, b, c};
  return tw_scope_op(scope, type, inputs, 3);
}

tw_op* tw_scope_begin(tw_scope* scope, const char* type, const char* name) {
  return Step<tw_op*>(scope, [&]() -> StatusOr<tw_op*> {
    if (!type) return InvalidArgument("the type of an operation is NULL");
    tw_op* op = tw_op_create(scope->graph, type, MakeName(*scope, name, type).c_str());
    if (!op) return thalweg::ResourceExhausted("out of host memory for an operation");
    tw_op_set_place(op, scope->place.c_str());
    SetContainer(*scope, type, op);
    return op;
  });
}

const tw_operation* tw_scope_end_operation(tw_scope* scope, tw_op* op) {
  if (!Good(scope)) {
    tw_op_destroy(op);
    return nullptr;
  }
  const tw_operation* operation = nullptr;
  PlaceByDefault(*scope, op);
  tw_scope_fail(scope, tw_op_finish(op, &operation));
  return operation;
}

tw_output tw_scope_end(tw_scope* scope, tw_op* op) {
  const tw_operation* operation = tw_scope_end_operation(scope, op);
  if (operation && tw_operation_output_count(operation) == 0) {
    tw_scope_fail(scope,
                  thalweg::Enter([&] { return InvalidArgument(operation->node->title(), " has no output; use tw_scope_end_operation"); }));
  }
  return tw_operation_output(operation, 0);
}

tw_output tw_scope_output(tw_scope* scope, tw_output output, uint32_t i) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    ASSIGN_OR_RETURN(const Edge edge, Input(scope, output, "output"));
    if (i >= uint32_t(edge.node->n_out())) {
      return InvalidArgument(edge.node->title(), " has ", edge.node->n_out(), " outputs, not one of number ", i);
    }
    return thalweg::EncodeOutput(*scope->graph->graph, {edge.node, int32_t(i)});
  });
}

tw_output tw_scope_name(tw_scope* scope, const char* name, tw_output value) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    if (!name || !*name) return InvalidArgument("tw_scope_name: name is NULL or empty");
    thalweg::NodeSpec spec;
    ASSIGN_OR_RETURN(const thalweg::OpSchema* identity, scope->graph->graph->host().FindRole("identity"));
    spec.op = identity->name;
    spec.place = scope->place;
    spec.device = scope->device;
    spec.name = scope->prefix + name;
    ASSIGN_OR_RETURN(const Edge edge, Input(scope, value, "value"));
    spec.inputs.push_back(edge);
    ASSIGN_OR_RETURN(const thalweg::Node* node, scope->graph->graph->AddNode(std::move(spec)));
    return thalweg::EncodeOutput(*scope->graph->graph, {node, 0});
  });
}

const tw_operation* tw_scope_group(tw_scope* scope, const char* name, const tw_operation* const* operations, uint32_t n) {
  return Step<const tw_operation*>(scope, [&]() -> StatusOr<const tw_operation*> {
    thalweg::NodeSpec spec;
    thalweg::Graph& graph = *scope->graph->graph;
    ASSIGN_OR_RETURN(const thalweg::OpSchema* no_op, graph.host().FindRole("no_op"));
    spec.op = no_op->name;
    spec.place = scope->place;
    spec.device = TaskOf(scope->device);
    spec.name = MakeName(*scope, name, "group");
    if (n > 0 && !operations) return InvalidArgument("tw_scope_group: operations is NULL");
    for (uint32_t i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(const thalweg::Node* node, thalweg::DecodeOperation(graph, operations[i], thalweg::StrCat("operation ", i)));
      spec.controls.push_back(node);
    }
    thalweg::ReserveOperation(*scope->graph);
    ASSIGN_OR_RETURN(const thalweg::Node* node, graph.AddNode(std::move(spec)));
    return thalweg::OperationOf(*scope->graph, node);
  });
}

tw_output tw_scope_constant(tw_scope* scope, tw_tensor* value) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    if (!value) return InvalidArgument("tw_scope_constant: value is NULL");
    if (!thalweg::LiesOnHost(*value)) {
      return InvalidArgument("tw_scope_constant: the tensor lies on a device; copy it with tw_tensor_to_host first");
    }
    return Constant(scope, Tensor::Share(value));
  });
}

tw_output tw_scope_scalar(tw_scope* scope, uint32_t dtype, double value) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    if (dtype >= TW_REF || !thalweg::FindDType(dtype)) return InvalidArgument(dtype, " is no element type");
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, nullptr, 0));
    RETURN_IF_ERROR(PutScalar(&t, value));
    return Constant(scope, t);
  });
}

tw_output tw_scope_ints(tw_scope* scope, const int32_t* values, uint32_t n) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    if (n > 0 && !values) return InvalidArgument("tw_scope_ints: values is NULL");
    const int64_t dim = n;
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_INT32, &dim, 1));
    std::copy(values, values + n, t.as<int32_t>());
    return Constant(scope, t);
  });
}

tw_output tw_scope_placeholder(tw_scope* scope, const char* name, uint32_t dtype, const int64_t* dims, int32_t rank) {
  return Step<tw_output>(scope, [&]() -> StatusOr<tw_output> {
    thalweg::Graph& graph = *scope->graph->graph;
    ASSIGN_OR_RETURN(const thalweg::OpSchema* placeholder, graph.host().FindRole("placeholder"));
    const std::string full = MakeName(*scope, name, "input");
    tw_op* op = tw_op_create(scope->graph, placeholder->name.c_str(), full.c_str());
    if (!op) return thalweg::ResourceExhausted("out of host memory for an operation");
    tw_op_set_place(op, scope->place.c_str());
    tw_op_set_device(op, scope->device.c_str());
    tw_op_set_type(op, "dtype", dtype);
    tw_op_set_shape(op, "shape", dims, rank);
    const tw_operation* operation = nullptr;
    RETURN_IF_ERROR(thalweg::FromC(tw_op_finish(op, &operation)));
    return tw_operation_output(operation, 0);
  });
}
