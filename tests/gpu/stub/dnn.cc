// cuDNN without a GPU: convolutions of one operation through the graph API, on the stub driver's streams, for float and half. Its
// heuristics name two engines: the first uses tensor cores, the second does not. With the option dnn=0 they name none.
#include <cudnn.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "library.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Object;
using Held = std::shared_ptr<Object>;

struct Attribute {
  std::string bytes;
  std::vector<Held> objects;
};

struct Object {
  cudnnBackendDescriptorType_t type;
  std::map<int, Attribute> attributes;
  bool final = false;
  int engine = 0;       // of engines, configurations and plans
  std::string problem;  // of plans: see Problem

  int64_t Number(int name, size_t k = 0) const {
    int64_t v = 0;
    const auto found = attributes.find(name);
    if (found != attributes.end() && found->second.bytes.size() >= (k + 1) * sizeof v)
      std::memcpy(&v, found->second.bytes.data() + k * sizeof v, sizeof v);
    return v;
  }
  const Object* Of(int name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() || found->second.objects.empty() ? nullptr : found->second.objects[0].get();
  }
};
Held& Of(cudnnBackendDescriptor_t d) { return *reinterpret_cast<Held*>(d); }

size_t SizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE: return 8;
    default: return 4;
  }
}

// A convolution, as numbers, and as the text that is a plan's.
struct Problem {
  enum {
    kWhat,
    kType,
    kN,
    kChannels,
    kHeight,
    kWidth,
    kOut,
    kFilterHeight,
    kFilterWidth,
    kOutHeight,
    kOutWidth,
    kStride,
    kDilation = kStride + 2,
    kBefore = kDilation + 2,
    kAfter = kBefore + 2,
    kCount = kAfter + 2
  };
  int64_t v[kCount];

  static Problem OfOperation(const Object& op, int what, int window, int images, int filter, int results) {
    Problem p{};
    const Object &w = *op.Of(window), &x = *op.Of(images), &f = *op.Of(filter), &y = *op.Of(results);
    const auto dim = [](const Object& t, size_t k) { return t.Number(CUDNN_ATTR_TENSOR_DIMENSIONS, k); };
    int32_t type = 0;
    std::memcpy(&type, x.attributes.at(CUDNN_ATTR_TENSOR_DATA_TYPE).bytes.data(), sizeof type);
    const int64_t first[] = {what, type, dim(x, 0), dim(x, 1), dim(x, 2), dim(x, 3), dim(f, 0), dim(f, 2), dim(f, 3), dim(y, 2), dim(y, 3)};
    std::memcpy(p.v, first, sizeof first);
    for (size_t k = 0; k < 2; ++k) {
      p.v[kStride + k] = w.Number(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, k);
      p.v[kDilation + k] = w.Number(CUDNN_ATTR_CONVOLUTION_DILATIONS, k);
      p.v[kBefore + k] = w.Number(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, k);
      p.v[kAfter + k] = w.Number(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, k);
      const int64_t reach = (dim(f, 2 + k) - 1) * p.v[kDilation + k] + 1;
      const int64_t out = (dim(x, 2 + k) + p.v[kBefore + k] + p.v[kAfter + k] - reach) / p.v[kStride + k] + 1;
      if (out != dim(y, 2 + k)) WrongInLibrary("a convolution's results have another size than its window says");
    }
    for (const Object* t : {&x, &f, &y}) {
      if (dim(*t, 1) > 1 && t->Number(CUDNN_ATTR_TENSOR_STRIDES, 1) != 1) WrongInLibrary("channels do not lie together");
    }
    return p;
  }
  std::string Text() const { return {reinterpret_cast<const char*>(v), sizeof v}; }
  static Problem OfText(const std::string& text) {
    Problem p{};
    std::memcpy(p.v, text.data(), std::min(text.size(), sizeof p.v));
    return p;
  }
  int64_t images() const { return v[kN] * v[kChannels] * v[kHeight] * v[kWidth]; }
  int64_t filter() const { return v[kOut] * v[kFilterHeight] * v[kFilterWidth] * v[kChannels]; }
  int64_t results() const { return v[kN] * v[kOut] * v[kOutHeight] * v[kOutWidth]; }
  size_t bytes() const { return v[kType] == CUDNN_DATA_HALF ? 2 : 4; }
};

template <class T>
void Convolve(const Problem& p, T* x, T* f, T* y) {
  using P = Problem;
  const int64_t* v = p.v;
  std::vector<double> sums(size_t(v[P::kWhat] == 0 ? p.results() : v[P::kWhat] == 1 ? p.images() : p.filter()), 0);
  for (int64_t n = 0; n < v[P::kN]; ++n)
    for (int64_t oy = 0; oy < v[P::kOutHeight]; ++oy)
      for (int64_t ox = 0; ox < v[P::kOutWidth]; ++ox)
        for (int64_t ky = 0; ky < v[P::kFilterHeight]; ++ky)
          for (int64_t kx = 0; kx < v[P::kFilterWidth]; ++kx) {
            const int64_t iy = oy * v[P::kStride] + ky * v[P::kDilation] - v[P::kBefore];
            const int64_t ix = ox * v[P::kStride + 1] + kx * v[P::kDilation + 1] - v[P::kBefore + 1];
            if (iy < 0 || ix < 0 || iy >= v[P::kHeight] || ix >= v[P::kWidth]) continue;
            for (int64_t o = 0; o < v[P::kOut]; ++o)
              for (int64_t c = 0; c < v[P::kChannels]; ++c) {
                const int64_t at_x = ((n * v[P::kHeight] + iy) * v[P::kWidth] + ix) * v[P::kChannels] + c;
                const int64_t at_f = ((o * v[P::kFilterHeight] + ky) * v[P::kFilterWidth] + kx) * v[P::kChannels] + c;
                const int64_t at_y = ((n * v[P::kOutHeight] + oy) * v[P::kOutWidth] + ox) * v[P::kOut] + o;
                if (v[P::kWhat] == 0)
                  sums[size_t(at_y)] += double(x[at_x]) * double(f[at_f]);
                else if (v[P::kWhat] == 1)
                  sums[size_t(at_x)] += double(y[at_y]) * double(f[at_f]);
                else
                  sums[size_t(at_f)] += double(x[at_x]) * double(y[at_y]);
              }
          }
  T* to = v[P::kWhat] == 0 ? y : v[P::kWhat] == 1 ? x : f;
  for (size_t k = 0; k < sums.size(); ++k) to[k] = static_cast<T>(sums[k]);
}

struct Handle {
  cudaStream_t stream = nullptr;
};

// The plan of a graph of one convolution.
bool Plan(Object* plan) {
  const Object* config = plan->Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object* graph = config ? config->Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) : nullptr;
  const Object* op = graph ? graph->Of(CUDNN_ATTR_OPERATIONGRAPH_OPS) : nullptr;
  if (!op) return false;
  plan->engine = config->engine;
  switch (op->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      plan->problem =
          Problem::OfOperation(*op, 0, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)
              .Text();
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      plan->problem =
          Problem::OfOperation(*op, 1, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)
              .Text();
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      plan->problem =
          Problem::OfOperation(*op, 2, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)
              .Text();
      return true;
    default: return false;
  }
}

// Whether a graph of one convolution is of a type that there are engines for.
bool HasEngines(const Object& heuristics) {
  const Object* graph = heuristics.Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const Object* op = graph ? graph->Of(CUDNN_ATTR_OPERATIONGRAPH_OPS) : nullptr;
  if (!op || !LibraryOption("dnn", 1)) return false;
  for (const auto& [name, attribute] : op->attributes) {
    if (attribute.objects.empty()) continue;
    const auto type = attribute.objects[0]->attributes.find(CUDNN_ATTR_TENSOR_DATA_TYPE);
    if (type == attribute.objects[0]->attributes.end()) continue;
    int32_t is = 0;
    std::memcpy(&is, type->second.bytes.data(), sizeof is);
    if (is != CUDNN_DATA_FLOAT && is != CUDNN_DATA_HALF) return false;
  }
  return true;
}

constexpr char kMark[] = "a plan of the stub ";

}  // namespace

EXPORT size_t cudnnGetVersion() { return 90000; }
EXPORT const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_OF_THE_STUB"; }
EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (EnterLibrary("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  EnterLibrary("cudnnDestroy");
  delete reinterpret_cast<Handle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
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
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
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
  EnterLibrary("a kept plan");
  o.engine = a.bytes[sizeof kMark - 1] - '0';
  o.problem = a.bytes.substr(sizeof kMark);
  o.final = true;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  Object& o = *Of(d);
  if (o.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && (EnterLibrary("a plan") || !Plan(&o))) return CUDNN_STATUS_NOT_SUPPORTED;
  o.final = true;
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
    const std::string text = kMark + std::string(1, char('0' + o.engine)) + o.problem;
    *n = int64_t(text.size());
    if (room) std::memcpy(values, text.data(), size_t(std::min(room, *n)));
  } else {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Object &o = *Of(plan), &memory = *Of(pack);
  void* at[4] = {};
  for (size_t k = 0; k < 3; ++k) {
    const int64_t name = memory.Number(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, k);
    if (name >= 1 && name <= 3) at[name] = reinterpret_cast<void*>(memory.Number(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, k));
  }
  const Problem p = Problem::OfText(o.problem);
  const int64_t what = p.v[Problem::kWhat];
  EnterLibrary(o.engine == 0 ? "engine with tensor cores" : "engine without tensor cores");
  std::vector<LibraryTouch> touches = {{at[1], size_t(p.images()) * p.bytes(), what == 1},
                                       {at[2], size_t(p.filter()) * p.bytes(), what == 2},
                                       {at[3], size_t(p.results()) * p.bytes(), what == 0}};
  touches.push_back({reinterpret_cast<void*>(memory.Number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)), 2048, true});
  const auto run = [p, x = at[1], f = at[2], y = at[3]] {
    if (p.bytes() == 2)
      Convolve(p, static_cast<_Float16*>(x), static_cast<_Float16*>(f), static_cast<_Float16*>(y));
    else
      Convolve(p, static_cast<float*>(x), static_cast<float*>(f), static_cast<float*>(y));
  };
  const auto stream = reinterpret_cast<CUstream>(reinterpret_cast<Handle*>(handle)->stream);
  return EnqueueOfLibrary(stream, "cudnnBackendExecute", touches, run) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS
                                                                                       : CUDNN_STATUS_EXECUTION_FAILED;
}
