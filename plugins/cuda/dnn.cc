// Uses the C functions of cuDNN's graph API. The library's heuristics list engines for a graph. The
// first one that has the requested precision and a fixed order of sums becomes an execution plan.
// cuDNN's C++ layer would add a second cache and exceptions, but no engine.
#include "dnn.h"

#include <algorithm>
#include <sstream>

#include "dnn_descriptors.h"
#include "program_cache.h"  // of plugins/opencl

namespace thalweg::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 30;

// Returns everything that a cached plan depends on besides cuDNN and the device.
std::string TextOf(const DnnGraph& graph, Precision precision) {
  std::ostringstream s;
  const auto add = [&](const auto& values) {
    for (auto v : values) s << v << " ";
  };
  for (const DnnTensor& t : graph.tensors) {
    s << "tensor " << t.kind << " " << t.type << " " << t.aligned << " ";
    add(t.dims), add(t.steps);
  }
  for (const DnnOperation& o : graph.operations) {
    s << "operation " << o.what << " ";
    add(o.tensors), add(o.window.size), add(o.window.stride), add(o.window.dilation), add(o.window.before), add(o.window.after);
  }
  s << "precision " << int(precision);
  return s.str();
}

// Returns true if floats are multiplied; only then can the engine choose a precision.
bool Multiplies(const DnnGraph& graph) {
  return graph.tensors[0].type == TW_FLOAT && std::any_of(graph.operations.begin(), graph.operations.end(), [](const DnnOperation& o) {
           return o.what <= DnnOperation::kConvolutionFilter || o.what == DnnOperation::kProduct;
         });
}

// Returns true if the engine has the guarantees of our kernels: a fixed order of sums, and at least
// the requested precision.
bool Keeps(const DnnLibrary& l, cudnnBackendDescriptor_t config, bool multiplies, Precision precision) {
  Descriptor engine(l, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t into = engine.it();
  int64_t found = 0;
  if (!engine.ok() || l.cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &into) !=
                          CUDNN_STATUS_SUCCESS)
    return false;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t n = engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  return std::none_of(notes, notes + n, [&](cudnnBackendNumericalNote_t note) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return true;
    if (!multiplies) return false;
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return precision != Precision::kBfloat16 && precision != Precision::kHalf;
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && precision == Precision::kFloat;
  });
}

}  // namespace

struct Dnn::Way {
  explicit Way(const DnnLibrary& l) : plan(l, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}
  Descriptor plan;
  int64_t workspace = 0;
  std::vector<int64_t> names;  // of the tensors in memory

  bool ReadWorkspace() {
    return plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace) == 1 && workspace <= kMostWorkspace;
  }
};

Dnn::Dnn(std::shared_ptr<DnnLibrary> library, const Vendors& vendors, std::string architecture)
    : library_(std::move(library)), vendors_(vendors), architecture_(std::move(architecture)) {}

Dnn::~Dnn() {
  ways_.Clear();
  lstms_.Clear();
  if (handle_) library_->cudnnDestroy(static_cast<cudnnHandle_t>(handle_));
}

bool Dnn::Start(const tw_host* host) {
  if (tried_) return handle_ != nullptr;
  tried_ = true;
  cudnnHandle_t handle = nullptr;
  if (library_->Open(host) && library_->cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS) handle_ = handle;
  return handle_ != nullptr;
}

std::unique_ptr<Dnn::Way> Dnn::Make(const tw_host* host, const DnnGraph& graph) {
  const DnnLibrary& l = *library_;
  const auto start = [&] {
    auto way = std::make_unique<Way>(l);
    for (size_t k = 0; k < graph.tensors.size(); ++k)
      if (graph.tensors[k].kind != DnnTensor::kInside) way->names.push_back(int64_t(k) + 1);
    way->plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
    return way;
  };
  const std::string identity = "cudnn " + std::to_string(l.cudnnGetVersion()) + " " + architecture_ + " ";
  const opencl::ProgramCache cache(host, identity, TextOf(graph, vendors_.precision), "cuda");
  if (const std::string kept = cache.Load(); !kept.empty()) {
    auto way = start();
    way->plan.Set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(kept.size()), kept.data()).Finalize();
    if (way->ReadWorkspace()) return way;
  }
  const DnnObjects objects(l, static_cast<cudnnHandle_t>(handle_), graph);
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(l, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, objects.graph())
        .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
        .Finalize();
    // Asks for all engines, because for floats the first dozens use tensor cores.
    const int64_t named = heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    std::deque<Descriptor> configs;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t k = 0; k < named; ++k) raw.push_back(configs.emplace_back(l, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).it());
    const int64_t found = named ? heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, named, raw.data()) : 0;
    for (int64_t k = 0; k < std::min(found, named); ++k) {
      if (!Keeps(l, raw[size_t(k)], Multiplies(graph), vendors_.precision)) continue;
      auto way = start();
      way->plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[size_t(k)]).Finalize();
      if (!way->ReadWorkspace()) continue;
      int64_t bytes = way->plan.Get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, nullptr);
      std::string text(size_t(std::max<int64_t>(bytes, 0)), '\0');
      if (bytes > 0 && way->plan.Get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes, text.data()) > 0)
        cache.Store(text);
      return way;
    }
  }
  return nullptr;
}

std::shared_ptr<const Dnn::Way> Dnn::Find(const tw_host* host, const DnnGraph& graph) {
  std::lock_guard lock(mutex_);
  if (!Start(host)) return nullptr;
  return ways_.Find(graph, [&] { return Make(host, graph); });
}

uint64_t Dnn::Workspace(const Way& way) { return uint64_t(way.workspace); }

// The handle keeps the stream until the next call.
void Dnn::Enqueue(const Way& way, CUstream queue, const std::vector<CUdeviceptr>& memory, CUdeviceptr workspace) {
  const DnnLibrary& l = *library_;
  std::vector<void*> addresses;
  for (CUdeviceptr m : memory) addresses.push_back(reinterpret_cast<void*>(m));
  void* scratch = reinterpret_cast<void*>(workspace);
  std::lock_guard lock(mutex_);
  Descriptor pack(l, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, int64_t(way.names.size()), way.names.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, int64_t(addresses.size()), addresses.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch)
      .Finalize();
  cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM;
  if (pack.ok()) status = l.cudnnSetStream(static_cast<cudnnHandle_t>(handle_), reinterpret_cast<cudaStream_t>(queue));
  if (status == CUDNN_STATUS_SUCCESS) status = l.cudnnBackendExecute(static_cast<cudnnHandle_t>(handle_), way.plan.it(), pack.it());
  if (status != CUDNN_STATUS_SUCCESS) Fail(l, "cudnnBackendExecute", status);
}

bool Dnn::Softmax(const tw_host* host, CUstream queue, uint32_t type, int64_t rows, int64_t n, bool logarithm, CUdeviceptr x,
                  CUdeviceptr y) {
  cudnnDataType_t its = CUDNN_DATA_FLOAT;
  if (!DnnTypeOf(type, &its) || rows > INT32_MAX || n > INT32_MAX || rows * n > INT32_MAX) return false;
  std::lock_guard lock(mutex_);
  if (!Start(host)) return false;
  const DnnLibrary& l = *library_;
  const Made<cudnnTensorDescriptor_t> shape(l.cudnnCreateTensorDescriptor, l.cudnnDestroyTensorDescriptor);
  if (!shape.it() || l.cudnnSetTensor4dDescriptor(shape.it(), CUDNN_TENSOR_NCHW, its, int(rows), int(n), 1, 1) != CUDNN_STATUS_SUCCESS)
    return false;
  const float one = 1, zero = 0;
  const double one_of_double = 1, zero_of_double = 0;
  const bool is_double = type == TW_DOUBLE;
  cudnnStatus_t status = l.cudnnSetStream(static_cast<cudnnHandle_t>(handle_), reinterpret_cast<cudaStream_t>(queue));
  if (status == CUDNN_STATUS_SUCCESS)
    status = l.cudnnSoftmaxForward(static_cast<cudnnHandle_t>(handle_), logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE,
                                   CUDNN_SOFTMAX_MODE_INSTANCE, is_double ? static_cast<const void*>(&one_of_double) : &one, shape.it(),
                                   reinterpret_cast<const void*>(x), is_double ? static_cast<const void*>(&zero_of_double) : &zero,
                                   shape.it(), reinterpret_cast<void*>(y));
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return false;
  if (status != CUDNN_STATUS_SUCCESS) Fail(l, "cudnnSoftmaxForward", status);
  return true;
}

}  // namespace thalweg::cuda
