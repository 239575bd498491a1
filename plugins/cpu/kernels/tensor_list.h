// TensorList: the object that a variant refers to in the TensorList ops. It holds tensors of one
// element type whose shapes fit one partial shape. An element that has not been set is empty, and
// reads as zeros. Lists share tensors, so a copy costs a pointer per element.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_TENSOR_LIST_H_
#define THALWEG_PLUGINS_CPU_KERNELS_TENSOR_LIST_H_

#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "thalweg/cpp/variant.hpp"

namespace thalweg::cpu {

// A shared reference to a tensor; may be empty.
class Kept {
 public:
  Kept() = default;
  // Takes over a reference.
  Kept(const tw_host* h, tw_tensor* t) : api_(h->tensor), t_(t) {}
  Kept(const Kept& o) : api_(o.api_), t_(o.t_) {
    if (t_) api_->retain(t_);
  }
  Kept(Kept&& o) noexcept : api_(o.api_), t_(std::exchange(o.t_, nullptr)) {}
  Kept& operator=(Kept o) noexcept {
    std::swap(api_, o.api_);
    std::swap(t_, o.t_);
    return *this;
  }
  ~Kept() {
    if (t_) api_->release(t_);
  }
  explicit operator bool() const { return t_ != nullptr; }
  tw_tensor* get() const { return t_; }
  const tw_view* view() const { return api_->view(t_); }

 private:
  const tw_tensor_api* api_ = nullptr;
  tw_tensor* t_ = nullptr;
};

// Keeps input i of the call. REQUIRES: the kernel's spec says `keep`.
Kept KeepInput(const tw_frame* f, uint32_t i);
// Does the same for an input that a list keeps, in whatever memory the input is.
Kept PutAway(const tw_frame* f, uint32_t i);
// Returns an element in the memory of output o, which the kernel's spec names in `gives` and
// `anywhere`.
Kept Bring(const tw_frame* f, uint32_t o, const Kept& element);
// Returns the element in host memory, for reading.
Kept OnHost(const tw_frame* f, const Kept& element);
// Returns a new tensor; numbers are not initialised.
Kept NewTensor(const tw_frame* f, uint32_t dtype, const int64_t* dims, int32_t rank);

// A shape in which some sizes, or even the rank, may be unknown.
struct PartialShape {
  bool ranked = false;
  std::vector<int64_t> dims;  // -1: unknown

  PartialShape() = default;
  PartialShape(const int64_t* d, int32_t rank) : ranked(rank >= 0), dims(d, d + (rank > 0 ? rank : 0)) {}
  // Reads the form that ops take: a vector of sizes, or the scalar -1. Throws INVALID_ARGUMENT.
  static PartialShape Read(const tw_view* v, const char* name);
  // Returns the shape of a tensor's slices along the first axis.
  static PartialShape OfRows(const tw_view* v) { return v->rank > 0 ? PartialShape(v->dims + 1, v->rank - 1) : PartialShape(); }
  bool full() const;
  bool Admits(const int64_t* d, int32_t rank) const;
  bool Admits(const tw_view* v) const { return Admits(v->dims, v->rank); }
  // Takes over the sizes that the other shape knows. Returns false if the shapes disagree.
  bool Merge(const PartialShape& o) { return !o.ranked || Merge(o.dims.data(), int32_t(o.dims.size())); }
  bool Merge(const int64_t* d, int32_t rank);  // REQUIRES: rank >= 0
  bool Merge(const tw_view* v) { return Merge(v->dims, v->rank); }
  PartialShape Rest() const;  // without the first axis. REQUIRES: a first axis, if the rank is known
  bool operator==(const PartialShape& o) const { return ranked == o.ranked && dims == o.dims; }
  std::string text() const { return tw::text(dims.data(), ranked ? int32_t(dims.size()) : -1); }
};

struct TensorList {
  uint32_t dtype = 0;
  PartialShape shape;
  int64_t most = -1;  // the largest number of elements after pushes; -1: no limit
  std::vector<Kept> elements;

  static constexpr std::string_view variant_name = "org.thalweg.tensor_list";
  uint64_t bytes() const { return sizeof *this + elements.capacity() * sizeof(Kept); }
  TensorList plus(const tw_frame* f, const TensorList& o) const;
  TensorList zeros(const tw_frame* f) const;

  // These throw INVALID_ARGUMENT.
  void WantType(uint32_t op_type) const;
  void WantElement(const tw_view* v, const char* what) const;
  void WantIndex(int64_t i, const char* what) const;
  // Returns the known part of the shape of all elements: the list's own shape merged with the op's.
  PartialShape Known(const PartialShape& told) const;
};

// The attribute element_dtype, which all but a few ops of the family have.
class OfElements {
 public:
  explicit OfElements(const tw::Node& n) : dtype_(n.type("element_dtype")) {}

 protected:
  uint32_t dtype_;
};

// Throws RESOURCE_EXHAUSTED, before the elements are made, if n elements exceed the session's limit
// or the available memory.
void WantRoom(const tw_frame* f, uint64_t n);
// Returns a new tensor, the sum of two tensors of one type and shape.
Kept SumOf(const tw_frame* f, const tw_view* x, const tw_view* y);
// Returns a new tensor of zeros with the type and shape of `like`.
Kept ZerosOf(const tw_frame* f, const tw_view* like);

// Returns the list behind input i, which must have the op's element type.
const TensorList& ListAt(const tw_frame* f, uint32_t i, uint32_t op_type);
// Makes output o, a scalar, refer to the list.
inline void PutList(const tw_frame* f, uint32_t o, std::unique_ptr<TensorList> list) { tw::put(f, f->out[o], 0, std::move(list)); }
// GiveTensor sets output o to the tensor, GiveZeros to zeros. REQUIRES: the kernel's spec says
// `gives`.
void GiveTensor(const tw_frame* f, uint32_t o, const Kept& t);
void GiveZeros(const tw_frame* f, uint32_t o, uint32_t dtype, const PartialShape& shape);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_TENSOR_LIST_H_
