// TensorList: what a variant refers to in the ops of that family: tensors of one element type whose shapes fit one partial shape. An
// element that nobody has set yet is empty, and reads as zeros. Lists share tensors, so a copy costs a pointer per element.
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

// Input i of the call, to be kept. REQUIRES: the kernel's spec says `keep`.
Kept KeepInput(const tw_frame* f, uint32_t i);
// The same for what a list keeps, wherever it lies.
Kept PutAway(const tw_frame* f, uint32_t i);
// An element in host memory, to be read.
Kept OnHost(const tw_frame* f, const Kept& element);
// A new tensor; of numbers not initialised.
Kept NewTensor(const tw_frame* f, uint32_t dtype, const int64_t* dims, int32_t rank);

// A shape of which some sizes, or even the rank, may be unknown.
struct PartialShape {
  bool ranked = false;
  std::vector<int64_t> dims;  // -1: unknown

  PartialShape() = default;
  PartialShape(const int64_t* d, int32_t rank) : ranked(rank >= 0), dims(d, d + (rank > 0 ? rank : 0)) {}
  // As ops take it: a vector of sizes, or the scalar -1. Throws INVALID_ARGUMENT.
  static PartialShape Read(const tw_view* v, const char* name);
  // The shape of the elements of a tensor along its first axis.
  static PartialShape OfRows(const tw_view* v) { return v->rank > 0 ? PartialShape(v->dims + 1, v->rank - 1) : PartialShape(); }
  bool full() const;
  bool Admits(const int64_t* d, int32_t rank) const;
  bool Admits(const tw_view* v) const { return Admits(v->dims, v->rank); }
  // Takes over what the other knows; false if they disagree.
  bool Merge(const PartialShape& o) { return !o.ranked || Merge(o.dims.data(), int32_t(o.dims.size())); }
  bool Merge(const int64_t* d, int32_t rank);  // REQUIRES: rank >= 0
  bool Merge(const tw_view* v) { return Merge(v->dims, v->rank); }
  PartialShape Rest() const;  // without the first axis. REQUIRES: it has one, if it is ranked
  bool operator==(const PartialShape& o) const { return ranked == o.ranked && dims == o.dims; }
  std::string text() const { return tw::text(dims.data(), ranked ? int32_t(dims.size()) : -1); }
};

struct TensorList {
  uint32_t dtype = 0;
  PartialShape shape;
  int64_t most = -1;  // elements that may be pushed; -1: any number
  std::vector<Kept> elements;

  static constexpr std::string_view variant_name = "org.thalweg.tensor_list";
  uint64_t bytes() const { return sizeof *this + elements.capacity() * sizeof(Kept); }
  TensorList plus(const tw_frame* f, const TensorList& o) const;
  TensorList zeros(const tw_frame* f) const;

  // Throw INVALID_ARGUMENT.
  void WantType(uint32_t op_type) const;
  void WantElement(const tw_view* v, const char* what) const;
  void WantIndex(int64_t i, const char* what) const;
  // What is known of the shape of all elements: the list's own shape merged with what an op was told.
  PartialShape Known(const PartialShape& told) const;
};

// The attribute element_dtype, which all but a few of the family have.
class OfElements {
 public:
  explicit OfElements(const tw::Node& n) : dtype_(n.type("element_dtype")) {}

 protected:
  uint32_t dtype_;
};

// Throws RESOURCE_EXHAUSTED where so many elements are more than the session may hold, or than there is memory for, before they are made.
void WantRoom(const tw_frame* f, uint64_t n);
// The sum of two tensors of one type and shape, as a new one.
Kept SumOf(const tw_frame* f, const tw_view* x, const tw_view* y);

// The list behind input i, which must be of the op's element type.
const TensorList& ListAt(const tw_frame* f, uint32_t i, uint32_t op_type);
// Output o, a scalar, refers to the list.
inline void PutList(const tw_frame* f, uint32_t o, std::unique_ptr<TensorList> list) { tw::put(f, f->out[o], 0, std::move(list)); }
// Output o becomes the tensor, or zeros. REQUIRES: the kernel's spec says `gives`.
void GiveTensor(const tw_frame* f, uint32_t o, const Kept& t);
void GiveZeros(const tw_frame* f, uint32_t o, uint32_t dtype, const PartialShape& shape);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_TENSOR_LIST_H_
