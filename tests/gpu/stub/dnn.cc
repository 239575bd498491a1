// cuDNN without a GPU: operation graphs through the graph API, on the stub driver's streams, for
// float, half and bfloat16. Its heuristics name two engines; the first uses tensor cores, the
// second does not. The option dnn=0 disables all engines, dnn_elements=N those for larger tensors.
// Graphs are checked against the manual, and their results are written to memory.
#include <cudnn.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "dnn_calls.h"
#include "dnn_graph.h"
#include "library.h"

namespace {

struct Object;
using Held = std::shared_ptr<Object>;

struct Attribute {
  std::string bytes;
  int64_t count = 0;
  std::vector<Held> objects;
};

struct Object {
  cudnnBackendDescriptorType_t type;
  std::map<int, Attribute> attributes;
  bool final = false;
  int engine = 0;     // of engines, configurations and plans
  std::string graph;  // of plans: DnnStubGraph::Text

  ~Object() {
    if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !graph.empty()) EnterLibrary("the end of a plan");
  }

  // Returns value k of the attribute, whatever its width; 0 if it was not set.
  int64_t Number(int name, size_t k = 0) const {
    const auto found = attributes.find(name);
    if (found == attributes.end() || int64_t(k) >= found->second.count) return 0;
    const size_t width = found->second.bytes.size() / size_t(found->second.count);
    int64_t v = 0;
    std::memcpy(&v, found->second.bytes.data() + k * width, std::min(width, sizeof v));
    return v;
  }
  size_t Count(int name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? 0 : size_t(found->second.count);
  }
  const Object* Of(int name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() || found->second.objects.empty() ? nullptr : found->second.objects[0].get();
  }
};
Held& Of(cudnnBackendDescriptor_t d) { return *reinterpret_cast<Held*>(d); }

size_t SizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN: return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE: return 8;
    case CUDNN_TYPE_FRACTION: return 16;
    default: return 4;
  }
}

DnnStubTensor TensorOf(const Object& o) {
  DnnStubTensor t;
  t.name = o.Number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  t.type = o.Number(CUDNN_ATTR_TENSOR_DATA_TYPE);
  t.aligned = o.Number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  t.is_virtual = o.Number(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  t.is_number = o.Number(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  for (size_t k = 0; k < o.Count(CUDNN_ATTR_TENSOR_DIMENSIONS); ++k) t.dims.push_back(o.Number(CUDNN_ATTR_TENSOR_DIMENSIONS, k));
  for (size_t k = 0; k < o.Count(CUDNN_ATTR_TENSOR_STRIDES); ++k) t.steps.push_back(o.Number(CUDNN_ATTR_TENSOR_STRIDES, k));
  return t;
}

// Reads the pairs of a window's attributes; pooling sizes are fractions.
void ReadWindow(const Object& o, std::vector<int64_t>* to) {
  const bool pool = o.type == CUDNN_BACKEND_RESAMPLE_DESCRIPTOR;
  const int names[] = {
      pool ? CUDNN_ATTR_RESAMPLE_WINDOW_DIMS : -1, pool ? CUDNN_ATTR_RESAMPLE_STRIDES : CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
      pool ? -1 : CUDNN_ATTR_CONVOLUTION_DILATIONS, pool ? CUDNN_ATTR_RESAMPLE_PRE_PADDINGS : CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
      pool ? CUDNN_ATTR_RESAMPLE_POST_PADDINGS : CUDNN_ATTR_CONVOLUTION_POST_PADDINGS};
  for (int name : names)
    for (size_t k = 0; k < 2; ++k) to->push_back(name < 0 ? 1 : o.Number(name, k));
  if (o.Number(pool ? CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS : CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2)
    WrongInLibrary("a window has not two axes");
  if (!pool) return;
  const int64_t mode = o.Number(CUDNN_ATTR_RESAMPLE_MODE), padded = o.Number(CUDNN_ATTR_RESAMPLE_PADDING_MODE);
  if (padded != (mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD))
    WrongInLibrary("a pooling pads with the wrong values");
  if (o.Number(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION) != CUDNN_PROPAGATE_NAN) WrongInLibrary("a pooling loses NaN");
}

// Reads the attributes that an operation keeps in a separate object.
void ReadDetails(const Object& o, DnnStubOperation* to) {
  switch (o.type) {
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      to->mode = o.Number(CUDNN_ATTR_POINTWISE_MODE);
      to->axis = o.Number(CUDNN_ATTR_POINTWISE_AXIS);
      break;
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR: to->mode = o.Number(CUDNN_ATTR_REDUCTION_OPERATOR); break;
    case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR: to->mode = o.Number(CUDNN_ATTR_RESAMPLE_MODE); [[fallthrough]];
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: ReadWindow(o, &to->window); break;
    default: break;
  }
}

DnnStubGraph GraphOf(const Object& o) {
  DnnStubGraph graph;
  const auto found = o.attributes.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (found == o.attributes.end()) return graph;
  for (const Held& held : found->second.objects) {
    DnnStubOperation operation;
    operation.type = held->type;
    for (const auto& [name, attribute] : held->attributes) {
      if (attribute.objects.empty()) continue;
      const Object& other = *attribute.objects[0];
      if (other.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        ReadDetails(other, &operation);
        continue;
      }
      const DnnStubTensor t = TensorOf(other);
      operation.tensors[name] = t.name;
      graph.tensors[t.name] = t;
    }
    if (held->type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR &&
        (held->Number(CUDNN_ATTR_OPERATION_NORM_FWD_MODE) != CUDNN_BATCH_NORM ||
         held->Number(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) != CUDNN_NORM_FWD_TRAINING))
      WrongInLibrary("a normalisation is none by batch while training");
    graph.operations.push_back(operation);
  }
  return graph;
}

// Returns true if there are engines for the tensors of a graph. Matrix products of attention need
// short types.
bool HasEngines(const Object& heuristics) {
  const Object* graph = heuristics.Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (!graph || !LibraryOption("dnn", 1)) return false;
  const DnnStubGraph g = GraphOf(*graph);
  const std::string wrong = g.Wrong();
  if (!wrong.empty()) WrongInLibrary("a graph for cuDNN: " + wrong);
  if (g.operations.empty() || !wrong.empty()) return false;
  const int64_t most = LibraryOption("dnn_elements", INT64_MAX);
  for (const auto& [name, t] : g.tensors) {
    const bool inside = t.is_virtual && (t.type == CUDNN_DATA_INT32 || t.type == CUDNN_DATA_BOOLEAN);
    if (!inside && t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_HALF && t.type != CUDNN_DATA_BFLOAT16) return false;
    if (t.count() > most) return false;
  }
  for (const DnnStubOperation& o : g.operations) {
    if (o.type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    for (const auto& [attribute, name] : o.tensors)
      if (const DnnStubTensor& t = g.tensors.at(name); !t.is_virtual && t.type == CUDNN_DATA_FLOAT) return false;
  }
  return true;
}

constexpr char kMark[] = "a plan of the stub, form 2 ";  // changes with Text, since plans are cached

}  // namespace

EXPORT size_t cudnnGetVersion() { return 90000; }
EXPORT const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_OF_THE_STUB"; }
EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (EnterLibrary("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cudnnHandle_t>(new DnnStubHandle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  EnterLibrary("cudnnDestroy");
  delete reinterpret_cast<DnnStubHandle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<DnnStubHandle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  auto object = std::make_shared<Object>();
  object->type = type;
  *made = reinterpret_cast<cudnnBackendDescriptor_t>(new Held(std::move(object)));
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete &Of(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n, const void* values) {
  Object& o = *Of(d);
  if (o.final) return CUDNN_STATUS_NOT_INITIALIZED;
  Attribute& a = o.attributes[name];
  a.count = n;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    a.objects.clear();
    for (int64_t k = 0; k < n; ++k) {
      Held& held = Of(static_cast<const cudnnBackendDescriptor_t*>(values)[k]);
      if (!held->final) return CUDNN_STATUS_BAD_PARAM;
      a.objects.push_back(held);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  a.bytes.assign(static_cast<const char*>(values), size_t(n) * SizeOf(type));
  if (name != CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) return CUDNN_STATUS_SUCCESS;
  if (a.bytes.compare(0, sizeof kMark - 1, kMark) != 0) return CUDNN_STATUS_BAD_PARAM;
  o.engine = a.bytes[sizeof kMark - 1] - '0';
  o.graph = a.bytes.substr(sizeof kMark);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  Object& o = *Of(d);
  o.final = true;
  if (o.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  if (!o.graph.empty()) return EnterLibrary("a kept plan"), CUDNN_STATUS_SUCCESS;
  const Object* config = o.Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object* graph = config ? config->Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) : nullptr;
  if (EnterLibrary("a plan") || !graph) return CUDNN_STATUS_NOT_SUPPORTED;
  o.engine = config->engine;
  o.graph = GraphOf(*graph).Text();
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t, int64_t room, int64_t* n, void* values) {
  const Held& held = Of(const_cast<cudnnBackendDescriptor_t>(d));
  const Object& o = *held;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *n = HasEngines(o) ? 2 : 0;
    for (int64_t k = 0; k < *n && k < room; ++k) {
      Object& config = *Of(static_cast<cudnnBackendDescriptor_t*>(values)[k]);
      config.engine = int(k);
      config.attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = o.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      config.final = true;
    }
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    *n = 1;
    Of(*static_cast<cudnnBackendDescriptor_t*>(values))->engine = o.engine;
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    *n = o.engine == 0;
    if (*n && room) *static_cast<cudnnBackendNumericalNote_t*>(values) = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    if (!o.final) return CUDNN_STATUS_NOT_INITIALIZED;
    *n = 1;
    *static_cast<int64_t*>(values) = 2048;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
    const std::string text = kMark + std::string(1, char('0' + o.engine)) + o.graph;
    *n = int64_t(text.size());
    if (room) std::memcpy(values, text.data(), size_t(std::min(room, *n)));
  } else {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Object &o = *Of(plan), &given = *Of(pack);
  const auto graph = std::make_shared<DnnStubGraph>(DnnStubGraph::OfText(o.graph));
  EnterLibrary(o.engine == 0 ? "engine with tensor cores" : "engine without tensor cores");
  if (graph->operations.size() > 1) EnterLibrary("several operations at once");
  std::map<int64_t, void*> memory;
  for (size_t k = 0; k < given.Count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS); ++k)
    memory[given.Number(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, k)] =
        reinterpret_cast<void*>(given.Number(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, k));
  std::vector<LibraryTouch> touches = {{reinterpret_cast<void*>(given.Number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)), 2048, true}};
  const auto numbers = std::make_shared<std::map<int64_t, float>>();
  for (const auto& [name, t] : graph->tensors) {
    if (t.is_virtual) continue;
    const auto found = memory.find(name);
    if (found == memory.end() || !found->second) return CUDNN_STATUS_BAD_PARAM;
    if (uintptr_t(found->second) % uintptr_t(t.aligned)) WrongInLibrary("a tensor is not aligned as its plan says");
    if (t.is_number) {  // read at once
      (*numbers)[name] = *static_cast<const float*>(found->second);
      found->second = &(*numbers)[name];
    } else {
      touches.push_back({found->second, size_t(t.reach()) * t.element(), graph->Makes(name)});
    }
  }
  const auto run = [graph, numbers, memory, its = std::weak_ptr<Object>(Of(plan))] {
    if (its.expired()) WrongInLibrary("a plan is gone before its work is over");
    graph->Run(memory);
  };
  const auto stream = reinterpret_cast<CUstream>(reinterpret_cast<DnnStubHandle*>(handle)->stream);
  return EnqueueOfLibrary(stream, "cudnnBackendExecute", touches, run) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS
                                                                                       : CUDNN_STATUS_EXECUTION_FAILED;
}

EXPORT cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  *made = reinterpret_cast<cudnnTensorDescriptor_t>(new DnnStubShape{});
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  delete &ShapeOf(d);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c,
                                                int h, int w) {
  if (format != CUDNN_TENSOR_NCHW || h != 1 || w != 1 || n < 1 || c < 1) return CUDNN_STATUS_BAD_PARAM;
  ShapeOf(d) = {type, {n, c, 1, 1}, {c, 1, 1, 1}};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                         const void* alpha, cudnnTensorDescriptor_t x_rows, const void* x, const void* beta,
                                         cudnnTensorDescriptor_t y_rows, void* y) {
  const DnnStubShape from = ShapeOf(x_rows), to = ShapeOf(y_rows);
  DnnStubTensor t;
  t.type = from.type;
  const bool is_double = from.type == CUDNN_DATA_DOUBLE;
  const double one = is_double ? *static_cast<const double*>(alpha) : double(*static_cast<const float*>(alpha));
  const double zero = is_double ? *static_cast<const double*>(beta) : double(*static_cast<const float*>(beta));
  if (from.dims != to.dims || from.type != to.type || one != 1 || zero != 0 || mode != CUDNN_SOFTMAX_MODE_INSTANCE)
    return CUDNN_STATUS_BAD_PARAM;
  const bool logarithm = algorithm == CUDNN_SOFTMAX_LOG;
  const int64_t rows = from.dims[0], n = from.dims[1];
  const size_t bytes = size_t(rows * n) * t.element();
  const auto run = [=] {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = row * n;
      double most = -INFINITY, sum = 0;
      for (int64_t k = 0; k < n; ++k) most = std::max(most, t.Get(x, at + k));
      for (int64_t k = 0; k < n; ++k) sum += std::exp(t.Get(x, at + k) - most);
      for (int64_t k = 0; k < n; ++k) {
        const double v = t.Get(x, at + k) - most;
        t.Put(y, at + k, logarithm ? v - std::log(sum) : std::exp(v) / sum);
      }
    }
  };
  const auto stream = reinterpret_cast<CUstream>(reinterpret_cast<DnnStubHandle*>(handle)->stream);
  return EnqueueOfLibrary(stream, "cudnnSoftmaxForward", {{x, bytes, false}, {y, bytes, true}}, run) == CUDA_SUCCESS
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}
