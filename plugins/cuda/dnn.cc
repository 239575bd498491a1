// Through cuDNN's graph API as its C functions are: a convolution is a graph of one operation, the library's heuristics name engines for
// it, and the first that keeps to the precision asked for and to one order of sums becomes an execution plan. Its C++ layer would add a
// second cache and exceptions, and no engine.
#include "dnn.h"

#include <cudnn.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "program_cache.h"  // of plugins/opencl

namespace thalweg::cuda {
namespace {

// clang-format off
#define THALWEG_DNN_FUNCTIONS(X) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendExecute) X(cudnnBackendFinalize) \
  X(cudnnBackendGetAttribute) X(cudnnBackendSetAttribute) X(cudnnCreate) X(cudnnDestroy) X(cudnnGetErrorString) X(cudnnGetVersion) \
  X(cudnnSetStream)
// clang-format on

constexpr int64_t kImages = 1, kFilter = 2, kResults = 3;  // names of tensors within a graph
constexpr int64_t kMostWorkspace = int64_t{1} << 30;
constexpr int64_t kMostEngines = 16;

std::optional<cudnnDataType_t> TypeOf(uint32_t type) {
  switch (type) {
    case TW_FLOAT: return CUDNN_DATA_FLOAT;
    case TW_DOUBLE: return CUDNN_DATA_DOUBLE;
    case TW_HALF: return CUDNN_DATA_HALF;
    case TW_BFLOAT16: return CUDNN_DATA_BFLOAT16;
    default: return {};
  }
}

}  // namespace

struct DnnLibrary {
#define THALWEG_DNN_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_DNN_FUNCTIONS(THALWEG_DNN_POINTER)
#undef THALWEG_DNN_POINTER
  Library library{"cudnn", {"libcudnn.so.9"}};

  bool Open(const tw_host* host) {
    return library.Open(host, [&](Library& l) {
      bool all = true;
#define THALWEG_DNN_FIND(name)                            \
  name = reinterpret_cast<decltype(name)>(l.Find(#name)); \
  all = all && name;
      THALWEG_DNN_FUNCTIONS(THALWEG_DNN_FIND)
#undef THALWEG_DNN_FIND
      return all;
    });
  }
};
std::shared_ptr<DnnLibrary> MakeDnnLibrary() { return std::make_shared<DnnLibrary>(); }

namespace {

// One of the library's objects. After a failure `ok` stays false and calls do nothing.
class Descriptor {
 public:
  Descriptor(const DnnLibrary& l, cudnnBackendDescriptorType_t type) : l_(l) {
    ok_ = l.cudnnBackendCreateDescriptor(type, &it_) == CUDNN_STATUS_SUCCESS;
  }
  ~Descriptor() {
    if (it_) l_.cudnnBackendDestroyDescriptor(it_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void* values) {
    ok_ = ok_ && l_.cudnnBackendSetAttribute(it_, name, type, n, values) == CUDNN_STATUS_SUCCESS;
    return *this;
  }
  template <class T>
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return Set(name, type, 1, &value);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return Set(name, CUDNN_TYPE_INT64, int64_t(values.size()), values.data());
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    ok_ = ok_ && value.ok_;
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.it_);
  }
  Descriptor& Finalize() {
    ok_ = ok_ && l_.cudnnBackendFinalize(it_) == CUDNN_STATUS_SUCCESS;
    return *this;
  }
  // How many values there are of up to n.
  int64_t Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, void* values) const {
    int64_t found = 0;
    return ok_ && l_.cudnnBackendGetAttribute(it_, name, type, n, &found, values) == CUDNN_STATUS_SUCCESS ? found : 0;
  }
  bool ok() const { return ok_; }
  cudnnBackendDescriptor_t it() const { return it_; }

 private:
  const DnnLibrary& l_;
  cudnnBackendDescriptor_t it_ = nullptr;
  bool ok_ = false;
};

// Dims are said channels second, whatever the order in memory.
void Describe(Descriptor* t, cudnnDataType_t type, int64_t name, int64_t n, int64_t channels, int64_t height, int64_t width,
              int64_t aligned) {
  t->Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, channels, height, width})
      .Set(CUDNN_ATTR_TENSOR_STRIDES, {height * width * channels, 1, width * channels, channels})
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, name)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, aligned)
      .Finalize();
}

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, images, filter, results, alpha, beta;
};
constexpr OperationNames kOperations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

// Everything that a kept plan depends on beside cuDNN and the device.
std::string TextOf(const Convolution& c, Precision precision) {
  std::ostringstream s;
  for (int64_t v : {int64_t(c.what), int64_t(c.type),   c.n,
                    c.height,        c.width,           c.channels,
                    c.out_channels,  c.filter_height,   c.filter_width,
                    c.out_height,    c.out_width,       c.stride_height,
                    c.stride_width,  c.dilation_height, c.dilation_width,
                    c.before_height, c.before_width,    c.after_height,
                    c.after_width,   c.aligned,         int64_t(precision)})
    s << v << " ";
  return s.str();
}

}  // namespace

struct Dnn::Way {
  explicit Way(const DnnLibrary& l) : plan(l, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}
  Descriptor plan;
  int64_t workspace = 0;

  bool ReadWorkspace() {
    return plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace) == 1 && workspace <= kMostWorkspace;
  }
};

namespace {

// Whether the engine keeps to what kernels promise: one order of sums, and no less precision than was asked for.
bool Keeps(const DnnLibrary& l, cudnnBackendDescriptor_t config, uint32_t type, Precision precision) {
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
    if (type != TW_FLOAT) return false;
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) return precision != Precision::kBfloat16 && precision != Precision::kHalf;
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && precision == Precision::kFloat;
  });
}

}  // namespace

Dnn::Dnn(std::shared_ptr<DnnLibrary> library, const Vendors& vendors, std::string architecture)
    : library_(std::move(library)), vendors_(vendors), architecture_(std::move(architecture)) {}

Dnn::~Dnn() {
  ways_.clear();
  if (handle_) library_->cudnnDestroy(static_cast<cudnnHandle_t>(handle_));
}

bool Dnn::Start(const tw_host* host) {
  if (tried_) return handle_ != nullptr;
  tried_ = true;
  cudnnHandle_t handle = nullptr;
  if (library_->Open(host) && library_->cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS) handle_ = handle;
  return handle_ != nullptr;
}

std::unique_ptr<Dnn::Way> Dnn::Make(const tw_host* host, const Convolution& c) {
  const DnnLibrary& l = *library_;
  const std::optional<cudnnDataType_t> type = TypeOf(c.type);
  if (!type) return nullptr;
  const std::string identity = "cudnn " + std::to_string(l.cudnnGetVersion()) + " " + architecture_ + " ";
  const opencl::ProgramCache cache(host, identity, TextOf(c, vendors_.precision), "cuda");
  if (const std::string kept = cache.Load(); !kept.empty()) {
    auto way = std::make_unique<Way>(l);
    way->plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_)
        .Set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(kept.size()), kept.data());
    if (way->ReadWorkspace()) return way;
  }
  const cudnnDataType_t computed = c.type == TW_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  Descriptor window(l, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, computed)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {c.stride_height, c.stride_width})
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {c.dilation_height, c.dilation_width})
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {c.before_height, c.before_width})
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {c.after_height, c.after_width})
      .Finalize();
  Descriptor images(l, CUDNN_BACKEND_TENSOR_DESCRIPTOR), filter(l, CUDNN_BACKEND_TENSOR_DESCRIPTOR),
      results(l, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  Describe(&images, *type, kImages, c.n, c.channels, c.height, c.width, c.aligned);
  Describe(&filter, *type, kFilter, c.out_channels, c.channels, c.filter_height, c.filter_width, c.aligned);
  Describe(&results, *type, kResults, c.n, c.out_channels, c.out_height, c.out_width, c.aligned);
  const OperationNames& names = kOperations[c.what];
  Descriptor operation(l, names.type);
  operation.Set(names.window, window).Set(names.images, images).Set(names.filter, filter).Set(names.results, results);
  if (c.type == TW_DOUBLE)
    operation.Set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).Set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  else
    operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).Set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  operation.Finalize();
  Descriptor graph(l, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), heuristics(l, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_).Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation).Finalize();
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
      .Finalize();
  std::vector<std::unique_ptr<Descriptor>> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t k = 0; k < kMostEngines; ++k) {
    configs.push_back(std::make_unique<Descriptor>(l, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configs.back()->it());
  }
  const int64_t found = heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostEngines, raw.data());
  for (int64_t k = 0; k < std::min(found, kMostEngines); ++k) {
    if (!Keeps(l, raw[size_t(k)], c.type, vendors_.precision)) continue;
    auto way = std::make_unique<Way>(l);
    way->plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_)
        .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *configs[size_t(k)])
        .Finalize();
    if (!way->ReadWorkspace()) continue;
    int64_t bytes = way->plan.Get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, nullptr);
    std::string text(size_t(std::max<int64_t>(bytes, 0)), '\0');
    if (bytes > 0 && way->plan.Get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes, text.data()) > 0)
      cache.Store(text);
    return way;
  }
  return nullptr;
}

const Dnn::Way* Dnn::Find(const tw_host* host, const Convolution& c) {
  std::lock_guard lock(mutex_);
  if (!Start(host)) return nullptr;
  const auto [it, is_new] = ways_.try_emplace(c);
  if (is_new) it->second = Make(host, c);
  return it->second.get();
}

uint64_t Dnn::Workspace(const Way& way) { return uint64_t(way.workspace); }

// The stream is the handle's until the next call.
void Dnn::Enqueue(const Way& way, CUstream queue, CUdeviceptr images, CUdeviceptr filter, CUdeviceptr results, CUdeviceptr workspace) {
  const DnnLibrary& l = *library_;
  const int64_t names[] = {kImages, kFilter, kResults};
  void* memory[] = {reinterpret_cast<void*>(images), reinterpret_cast<void*>(filter), reinterpret_cast<void*>(results)};
  void* scratch = reinterpret_cast<void*>(workspace);
  std::lock_guard lock(mutex_);
  Descriptor pack(l, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names)
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, memory)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch)
      .Finalize();
  cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM;
  if (pack.ok()) status = l.cudnnSetStream(static_cast<cudnnHandle_t>(handle_), reinterpret_cast<cudaStream_t>(queue));
  if (status == CUDNN_STATUS_SUCCESS) status = l.cudnnBackendExecute(static_cast<cudnnHandle_t>(handle_), way.plan.it(), pack.it());
  if (status != CUDNN_STATUS_SUCCESS)
    throw tw::Error{TW_INTERNAL, std::string("cudnnBackendExecute failed with ") + l.cudnnGetErrorString(status)};
}

}  // namespace thalweg::cuda
