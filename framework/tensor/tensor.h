// Tensor: the object behind the C handle tw_tensor. It is a view, which kernels read, plus a
// reference to a buffer. A tensor is immutable once others can see it; only a sole owner (unique())
// may write.
// The elements of a string tensor are tw_string whose bytes are stored in the tensor's `texts`. The
// elements of a resource or variant tensor are Handle*, retained.
// Threads: reference counts are atomic; contents have one writer or many readers.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/buffer.h"
#include "framework/tensor/shape.h"
#include "thalweg/plugin/tensor.h"

namespace thalweg {

// A reference-counted object that an element of type resource or variant refers to.
class Handle {
 public:
  virtual ~Handle() = default;
  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  int32_t refs() const { return refs_.load(std::memory_order_acquire); }

 private:
  std::atomic<int32_t> refs_{1};
};

constexpr int32_t kInlineRank = 8;
// The largest rank of any shape. Functions that make a tensor of higher rank return
// INVALID_ARGUMENT.
constexpr int32_t kMaxRank = 254;

}  // namespace thalweg

struct tw_tensor {
  tw_view view;  // must be first: a tensor's address is also its view's
  std::atomic<int32_t> refs{1};
  uint32_t charged = 0;  // bytes that the buffer's budget is charged for this record; 0: none, or included in the buffer's charge
  thalweg::Buffer* buffer = nullptr;
  tw_tensor* strings_of = nullptr;  // owner of the elements, if this is a reshaped string, resource or variant tensor
  int64_t inline_dims[thalweg::kInlineRank];
  int64_t* heap_dims = nullptr;
  tw_tensor* next = nullptr;  // next in the free list of headers
};

namespace thalweg {

// A counted reference to a tw_tensor; may be empty.
class Tensor {
 public:
  Tensor() = default;
  // Takes over the caller's reference.
  static Tensor Adopt(tw_tensor* t) {
    Tensor r;
    r.t_ = t;
    return r;
  }
  // Adds a reference to a borrowed tensor.
  static Tensor Share(tw_tensor* t);
  Tensor(const Tensor& o);
  Tensor(Tensor&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() { reset(); }
  void reset();
  tw_tensor* release() { return std::exchange(t_, nullptr); }

  // Makes a tensor with memory from the pool (NULL: host memory). Strings, resources and variants
  // start empty; other elements are not initialised. budget: is charged; NULL: none.
  static StatusOr<Tensor> Make(uint32_t dtype, const int64_t* dims, int32_t rank, MemoryPool* pool = nullptr,
                               MemoryBudget* budget = nullptr);
  static StatusOr<Tensor> Make(uint32_t dtype, const Shape& shape, MemoryPool* pool = nullptr) {
    return Make(dtype, shape.dims().data(), shape.rank(), pool);
  }
  // Makes a tensor around a buffer. Takes over the caller's reference to the buffer, also on
  // failure.
  static StatusOr<Tensor> Wrap(Buffer* buffer, uint64_t offset, uint32_t dtype, const int64_t* dims, int32_t rank);
  // A host vector of plain values.
  template <class T>
  static StatusOr<Tensor> Vector(uint32_t dtype, const std::vector<T>& values) {
    int64_t n = int64_t(values.size());
    ASSIGN_OR_RETURN(Tensor t, Make(dtype, &n, 1));
    std::copy(values.begin(), values.end(), static_cast<T*>(t.data()));
    return t;
  }
  // Returns a tensor that shares the elements under other dims.
  StatusOr<Tensor> Reshape(const int64_t* dims, int32_t rank) const;
  // Returns a tensor that shares the memory from byte `bytes` on, as elements of `dtype` under
  // these dims. handle: the memory is a device's object, not an address. REQUIRES: the part is
  // inside this tensor, and both have the same dtype or both are plain.
  StatusOr<Tensor> Part(uint64_t bytes, uint32_t dtype, const int64_t* dims, int32_t rank, bool handle) const;
  // Returns a copy in host memory. REQUIRES: this tensor is in host memory.
  StatusOr<Tensor> Clone() const;

  tw_tensor* get() const { return t_; }
  explicit operator bool() const { return t_ != nullptr; }
  const tw_view& view() const { return t_->view; }
  void* data() const { return static_cast<char*>(t_->view.data) + t_->view.offset; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  uint32_t dtype() const { return t_->view.dtype; }
  int32_t rank() const { return t_->view.rank; }
  int64_t dim(int32_t i) const { return t_->view.dims[i]; }
  uint64_t count() const { return t_->view.count; }
  uint64_t bytes() const { return t_->view.bytes; }
  Shape shape() const { return Shape(t_->view.dims, t_->view.rank); }
  // Returns true if nobody else refers to the tensor or its memory and the memory is not read-only.
  bool unique() const;

  std::string_view str(uint64_t i) const {
    const tw_string& s = as<tw_string>()[i];
    return {s.data, s.size};
  }
  Status SetString(uint64_t i, std::string_view s);

 private:
  StatusOr<Tensor> Sharing(uint32_t dtype, const int64_t* dims, int32_t rank) const;

  tw_tensor* t_ = nullptr;
};

// For the C ABI.
void RetainTensor(tw_tensor* t);
void ReleaseTensor(tw_tensor* t);
// Returns true if anybody besides the caller refers to the tensor or its memory.
bool IsShared(const tw_tensor& t);
Status SetString(tw_tensor* t, uint64_t i, std::string_view s);

// Fills the shape fields of a view. The dims are copied to `storage`, which has at least `rank`
// entries. REQUIRES: bytes were checked.
void SetViewShape(tw_view* v, int64_t* storage, uint32_t dtype, const int64_t* dims, int32_t rank, uint64_t count, uint64_t bytes);

}  // namespace thalweg
