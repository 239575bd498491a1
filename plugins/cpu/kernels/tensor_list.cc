// Lists of tensors, element by element: create, push, pop, read and set. A list that nothing else
// refers to is changed in place, so a loop that pushes or sets pays only for the element.
#include "kernels/tensor_list.h"

#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {

Kept KeepInput(const tw_frame* f, uint32_t i) {
  tw_tensor* t = nullptr;
  tw::check(f->host->tensor->keep(f, i, &t));
  return {f->host, t};
}

Kept PutAway(const tw_frame* f, uint32_t i) {
  tw_tensor* t = nullptr;
  tw::check(tw::variants(f->host).put_away(f, i, &t));
  return {f->host, t};
}

Kept Bring(const tw_frame* f, uint32_t o, const Kept& element) {
  tw_tensor* t = nullptr;
  tw::check(tw::variants(f->host).bring(f, o, element.get(), &t));
  return {f->host, t};
}

Kept OnHost(const tw_frame* f, const Kept& element) {
  tw_tensor* t = nullptr;
  tw::check(tw::variants(f->host).to_host(f, element.get(), &t));
  return {f->host, t};
}

Kept NewTensor(const tw_frame* f, uint32_t dtype, const int64_t* dims, int32_t rank) {
  tw_tensor* t = nullptr;
  tw::check(tw::variants(f->host).tensor(f, dtype, dims, uint32_t(rank), &t));
  return {f->host, t};
}

void WantRoom(const tw_frame* f, uint64_t n) {
  constexpr uint64_t kFew = 4096;
  if (n <= kFew) return;
  const int64_t bytes = int64_t(n * sizeof(Kept));
  (void)NewTensor(f, TW_UINT8, &bytes, 1);  // takes addresses, not memory
}

PartialShape PartialShape::Read(const tw_view* v, const char* name) {
  if (v->rank == 0) {
    if (const int64_t size = IndexAt(v, 0); size != -1)
      Invalid(std::string(name) + " is the scalar " + std::to_string(size) + "; give a vector of sizes, or -1 for any shape");
    return {};
  }
  if (v->rank != 1) Invalid(std::string(name) + " must be a vector, or the scalar -1, but is " + DimsText(v));
  PartialShape s;
  s.ranked = true;
  const Ints sizes = ReadInts(v, name);
  for (int k = 0; k < sizes.n; ++k) {
    if (sizes[k] < -1) Invalid(std::string(name) + " has the size " + std::to_string(sizes[k]) + "; unknown sizes are -1");
    s.dims.push_back(sizes[k]);
  }
  return s;
}

bool PartialShape::full() const { return ranked && std::find(dims.begin(), dims.end(), -1) == dims.end(); }

bool PartialShape::Admits(const int64_t* d, int32_t rank) const {
  if (!ranked) return true;
  if (size_t(rank) != dims.size()) return false;
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] >= 0 && d[k] != dims[k]) return false;
  return true;
}

bool PartialShape::Merge(const int64_t* d, int32_t rank) {
  if (!ranked) {
    *this = PartialShape(d, rank);
    return true;
  }
  if (dims.size() != size_t(rank)) return false;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] < 0) dims[k] = d[k];
    if (d[k] >= 0 && d[k] != dims[k]) return false;
  }
  return true;
}

PartialShape PartialShape::Rest() const { return ranked ? PartialShape(dims.data() + 1, int32_t(dims.size()) - 1) : *this; }

void TensorList::WantType(uint32_t op_type) const {
  if (dtype != op_type) Invalid("the list holds " + TypeText(dtype) + ", but 'element_dtype' is " + TypeText(op_type));
}
void TensorList::WantElement(const tw_view* v, const char* what) const {
  if (!shape.Admits(v)) Invalid(std::string(what) + " is " + DimsText(v) + ", but the list's elements are " + shape.text());
}
void TensorList::WantIndex(int64_t i, const char* what) const {
  if (i < 0 || uint64_t(i) >= elements.size())
    Invalid(std::string(what) + " " + std::to_string(i) + " is not in a list of " + std::to_string(elements.size()) + " elements");
}
PartialShape TensorList::Known(const PartialShape& told) const {
  PartialShape s = told;
  if (!s.Merge(shape)) Invalid("'element_shape' is " + told.text() + ", but the list's elements are " + shape.text());
  return s;
}

const TensorList& ListAt(const tw_frame* f, uint32_t i, uint32_t op_type) {
  const auto& list = tw::get<TensorList>(f, f->in[i]);
  list.WantType(op_type);
  return list;
}

void GiveTensor(const tw_frame* f, uint32_t o, const Kept& t) { tw::check(f->host->tensor->give(f, o, t.get())); }

void GiveZeros(const tw_frame* f, uint32_t o, uint32_t dtype, const PartialShape& shape) {
  const Kept zeros = NewTensor(f, dtype, shape.dims.data(), int32_t(shape.dims.size()));
  FillZero(f, zeros.view());
  GiveTensor(f, o, zeros);
}

namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;

// Outputs an element that is read as a tensor of shape `shape`.
void GiveElement(const tw_frame* f, uint32_t o, const Kept& element, const PartialShape& shape) {
  if (!shape.Admits(element.view())) Invalid("the element is " + DimsText(element.view()) + ", but 'element_shape' is " + shape.text());
  GiveTensor(f, o, Bring(f, o, element));
}

// Returns the list behind input 0, for changing: the list itself if nothing else refers to it, or a
// copy.
std::unique_ptr<TensorList> ListToChange(const tw_frame* f) { return tw::own_or_copy<TensorList>(f, 0); }

int64_t Count(int64_t n, const char* name) {
  if (n < 0) Invalid(std::string(name) + " is " + std::to_string(n) + "; it must not be negative");
  return n;
}

struct EmptyTensorList : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any> element_shape, In<int32_t> most, Out<Any>) const {
    auto list = std::make_unique<TensorList>();
    list->dtype = dtype_;
    list->shape = PartialShape::Read(element_shape.v, "element_shape");
    list->most = most[0];
    PutList(f.f, 0, std::move(list));
  }
};

struct TensorListReserve : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any> element_shape, In<int32_t> n, Out<Any>) const {
    auto list = std::make_unique<TensorList>();
    list->dtype = dtype_;
    list->shape = PartialShape::Read(element_shape.v, "element_shape");
    WantRoom(f.f, uint64_t(Count(n[0], "num_elements")));
    list->elements.resize(size_t(n[0]));
    PutList(f.f, 0, std::move(list));
  }
};

struct TensorListPushBack : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<Any> tensor, Out<Any>) const {
    const TensorList& before = ListAt(f.f, 0, dtype_);
    before.WantElement(tensor.v, "the tensor to push");
    if (before.most >= 0 && before.elements.size() >= uint64_t(before.most))
      Invalid("the list is full: it has " + std::to_string(before.elements.size()) + " elements of at most " + std::to_string(before.most));
    Kept kept = PutAway(f.f, 1);
    std::unique_ptr<TensorList> list = ListToChange(f.f);
    list->elements.push_back(std::move(kept));
    PutList(f.f, 0, std::move(list));
  }
};

struct TensorListPopBack : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<Any> element_shape, Out<Any>, Out<Any>) const {
    const TensorList& before = ListAt(f.f, 0, dtype_);
    if (before.elements.empty()) Invalid("the list is empty: there is nothing to pop");
    const PartialShape shape = before.Known(PartialShape::Read(element_shape.v, "element_shape"));
    const Kept last = before.elements.back();
    if (last) {
      GiveElement(f.f, 1, last, shape);
    } else {
      if (!shape.full()) Invalid("the last element was never set, and its shape is only known to be " + shape.text());
      GiveZeros(f.f, 1, dtype_, shape);
    }
    std::unique_ptr<TensorList> list = ListToChange(f.f);
    list->elements.pop_back();
    // Copies the next element to be popped to the device while the reader of this one runs.
    if (!list->elements.empty() && list->elements.back()) list->elements.back() = Bring(f.f, 1, list->elements.back());
    const Kept handle = NewTensor(f.f, TW_VARIANT, nullptr, 0);
    tw::put(f.f, handle.view(), 0, std::move(list));
    GiveTensor(f.f, 0, handle);
  }
};

struct TensorListGetItem : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<int32_t> index, In<Any> element_shape, Out<Any>) const {
    const TensorList& list = ListAt(f.f, 0, dtype_);
    list.WantIndex(index[0], "index");
    PartialShape shape = list.Known(PartialShape::Read(element_shape.v, "element_shape"));
    if (const Kept& element = list.elements[size_t(index[0])]) return GiveElement(f.f, 0, element, shape);
    for (size_t k = 0; !shape.full() && k < list.elements.size(); ++k) {
      const Kept& other = list.elements[k];
      if (other && !shape.Merge(other.view()))
        Invalid("element " + std::to_string(index[0]) + " was never set, and the shapes of others differ");
    }
    if (!shape.full()) Invalid("element " + std::to_string(index[0]) + " was never set, and its shape is only known to be " + shape.text());
    GiveZeros(f.f, 0, dtype_, shape);
  }
};

struct TensorListSetItem : OfElements {
  explicit TensorListSetItem(const tw::Node& n) : OfElements(n), grows_(n.b("resize_if_index_out_of_bounds")) {}
  void operator()(Frame f, In<Any>, In<int32_t> index, In<Any> item, Out<Any>) const {
    const TensorList& before = ListAt(f.f, 0, dtype_);
    before.WantElement(item.v, "the item");
    if (!grows_ || index[0] < 0) before.WantIndex(index[0], "index");
    const size_t at = size_t(index[0]);
    if (at >= before.elements.size()) WantRoom(f.f, at + 1);
    Kept kept = PutAway(f.f, 2);
    std::unique_ptr<TensorList> list = ListToChange(f.f);
    if (at >= list->elements.size()) list->elements.resize(at + 1);
    list->elements[at] = std::move(kept);
    PutList(f.f, 0, std::move(list));
  }

 private:
  bool grows_;
};

void TensorListLength(Frame f, In<Any> handle, Out<int32_t> length) {
  length[0] = int32_t(tw::get<TensorList>(f.f, handle.v).elements.size());
}

void TensorListResize(Frame f, In<Any> handle, In<int32_t> size, Out<Any>) {
  (void)tw::get<TensorList>(f.f, handle.v);
  const auto n = size_t(Count(size[0], "size"));
  WantRoom(f.f, n);
  std::unique_ptr<TensorList> list = ListToChange(f.f);
  list->elements.resize(n);
  PutList(f.f, 0, std::move(list));
}

template <class T>
void TensorListElementShape(Frame f, In<Any> handle, Out<T> sizes) {
  const PartialShape& shape = tw::get<TensorList>(f.f, handle.v).shape;
  const int64_t n = int64_t(shape.dims.size());
  Allocate(sizes, &n, shape.ranked ? 1 : 0);
  if (!shape.ranked) sizes[0] = -1;
  for (size_t k = 0; k < shape.dims.size(); ++k) sizes[k] = T(shape.dims[k]);
}

}  // namespace

void register_tensor_list(tw::Plugin& p) {
  p.kernel<EmptyTensorList>("EmptyTensorList @CPU; cheap");
  p.kernel<TensorListReserve>("TensorListReserve @CPU; cheap");
  p.kernel<TensorListPushBack>("TensorListPushBack @CPU; cheap; keep tensor; anywhere tensor");
  p.kernel<TensorListPopBack>("TensorListPopBack @CPU; cheap; gives output_handle tensor; anywhere tensor");
  p.kernel<TensorListGetItem>("TensorListGetItem @CPU; cheap; gives item; anywhere item");
  p.kernel<TensorListSetItem>("TensorListSetItem @CPU; cheap; keep item; anywhere item");
  p.kernel<TensorListLength>("TensorListLength @CPU; cheap");
  p.kernel<TensorListResize>("TensorListResize @CPU; cheap");
  p.kernel<TensorListElementShape<int32_t>, TensorListElementShape<int64_t>>("TensorListElementShape @CPU; cheap");
}

}  // namespace thalweg::cpu
