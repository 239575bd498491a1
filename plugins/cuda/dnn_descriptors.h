// cuDNN's functions and descriptor objects, and the objects of a graph. Threads: functions any; one
// thread at a time per object.
#ifndef THALWEG_PLUGINS_CUDA_DNN_DESCRIPTORS_H_
#define THALWEG_PLUGINS_CUDA_DNN_DESCRIPTORS_H_

#include <cudnn.h>

#include <deque>
#include <vector>

#include "dnn.h"

namespace thalweg::cuda {

// clang-format off
#define THALWEG_DNN_FUNCTIONS(X) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendExecute) X(cudnnBackendFinalize) \
  X(cudnnBackendGetAttribute) X(cudnnBackendSetAttribute) X(cudnnCreate) X(cudnnCreateDropoutDescriptor) \
  X(cudnnCreateRNNDataDescriptor) X(cudnnCreateRNNDescriptor) X(cudnnCreateTensorDescriptor) X(cudnnDestroy) \
  X(cudnnDestroyDropoutDescriptor) X(cudnnDestroyRNNDataDescriptor) X(cudnnDestroyRNNDescriptor) X(cudnnDestroyTensorDescriptor) \
  X(cudnnGetErrorString) X(cudnnGetRNNTempSpaceSizes) X(cudnnGetRNNWeightParams) X(cudnnGetRNNWeightSpaceSize) \
  X(cudnnGetTensorNdDescriptor) X(cudnnGetVersion) X(cudnnRNNForward) X(cudnnSetDropoutDescriptor) X(cudnnSetRNNDataDescriptor) \
  X(cudnnSetRNNDescriptor_v8) X(cudnnSetStream) X(cudnnSetTensor4dDescriptor) X(cudnnSetTensorNdDescriptor) X(cudnnSoftmaxForward)
// clang-format on

struct DnnLibrary {
#define THALWEG_DNN_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_DNN_FUNCTIONS(THALWEG_DNN_POINTER)
#undef THALWEG_DNN_POINTER
  Library library{"cudnn", {"libcudnn.so.9"}};

  bool Open(const tw_host* host);
};

// Returns true if cuDNN has that element type; *out is then its name.
bool DnnTypeOf(uint32_t type, cudnnDataType_t* out);

[[noreturn]] void Fail(const DnnLibrary& l, const char* what, cudnnStatus_t status);

// Owns an object outside the graph API and destroys it at the end of the scope. NULL if it could
// not be created.
template <class T>
class Made {
 public:
  Made(cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)) : destroy_(destroy) {
    if (create(&it_) != CUDNN_STATUS_SUCCESS) it_ = nullptr;
  }
  ~Made() {
    if (it_) destroy_(it_);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  T it() const { return it_; }

 private:
  cudnnStatus_t (*const destroy_)(T);
  T it_ = nullptr;
};

// Owns an object of the graph API. After a failure `ok` stays false and calls do nothing.
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
  template <size_t N>
  Descriptor& Set(cudnnBackendAttributeName_t name, const std::array<int64_t, N>& values) {
    return Set(name, CUDNN_TYPE_INT64, int64_t(N), values.data());
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    ok_ = ok_ && value.ok_;
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.it_);
  }
  Descriptor& Finalize() {
    ok_ = ok_ && l_.cudnnBackendFinalize(it_) == CUDNN_STATUS_SUCCESS;
    return *this;
  }
  // Returns the number of values, up to n, that the attribute has.
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

// The library's objects for a graph. Tensors are identified by their numbers.
class DnnObjects {
 public:
  DnnObjects(const DnnLibrary& l, cudnnHandle_t handle, const DnnGraph& graph);
  const Descriptor& graph() const { return graph_; }

 private:
  void AddTensor(const DnnTensor& t, int64_t number);
  void AddOperation(const DnnOperation& o, uint32_t type);
  // Returns an operation's settings besides its tensors, or NULL if it has none.
  const Descriptor* Details(const DnnOperation& o, cudnnDataType_t computed);

  const DnnLibrary& l_;
  std::deque<Descriptor> tensors_, details_, operations_;
  Descriptor graph_;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DNN_DESCRIPTORS_H_
