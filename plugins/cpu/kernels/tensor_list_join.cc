// Lists of tensors and whole tensors: stack, concatenate, split, gather and scatter elements, and
// join lists.
#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/tensor_list.h"

namespace thalweg::cpu {
namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;

// Merges the shapes of the elements that were set into `shape`. what: for an error, "elements of
// different shapes cannot be WHAT".
template <class F>
void MergeElements(PartialShape* shape, size_t n, F&& element, const char* what) {
  for (size_t k = 0; k < n; ++k) {
    const Kept& t = element(k);
    if (t && !shape->Merge(t.view()))
      Invalid("element " + std::to_string(k) + " is " + DimsText(t.view()) + ", others are " + shape->text() + ": they cannot be " + what);
  }
}

// Copies those of elements [0, n) that were set. place(k) returns where element k begins in the
// tensor and its length.
template <class E, class P>
void CopyElements(const tw_frame* f, size_t n, E&& element, P&& place, const tw_view* to) {
  constexpr int64_t kCall = 64;  // the cost of finding an element, in units of copying a float
  const int64_t each = n ? int64_t(to->count / n) : 0;
  const size_t bytes = ElementBytes(to->dtype);
  if (bytes == 0 || each >= kGrain) {
    for (size_t k = 0; k < n; ++k)
      if (const auto [at, count] = place(k); element(k) && count > 0) CopyRun(f, OnHost(f, element(k)).view(), 0, to, at, count);
    return;
  }
  ParallelFor(f, int64_t(n), each + kCall, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      if (const auto [at, count] = place(size_t(k)); element(size_t(k)) && count > 0)
        std::memcpy(Bytes(to) + size_t(at) * bytes, Bytes(OnHost(f, element(size_t(k))).view()), size_t(count) * bytes);
  });
}

// Writes elements [0, n) of one full shape, one after the other, to output 0. An element that was
// never set is zeros.
template <class F>
void StackElements(const tw_frame* f, const PartialShape& shape, size_t n, F&& element) {
  std::vector<int64_t> dims{int64_t(n)};
  dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
  const tw::Out<Any> out{f, 0};
  Allocate(out, dims.data(), int(dims.size()));
  const int64_t size = n ? int64_t(out.size() / n) : 0;
  bool all = true;
  for (size_t k = 0; all && k < n; ++k) all = bool(element(k));
  if (!all) FillZero(f, out.v());
  CopyElements(f, n, element, [&](size_t k) { return std::pair(int64_t(k) * size, size); }, out.v());
}

struct TensorListStack : OfElements {
  explicit TensorListStack(const tw::Node& n) : OfElements(n), wanted_(n.i("num_elements")) {}
  void operator()(Frame f, In<Any>, In<Any> element_shape, Out<Any>) const {
    const TensorList& list = ListAt(f.f, 0, dtype_);
    const size_t n = list.elements.size();
    if (wanted_ >= 0 && uint64_t(wanted_) != n)
      Invalid("the list has " + std::to_string(n) + " elements, not " + std::to_string(wanted_) + " as 'num_elements' says");
    PartialShape shape = list.Known(PartialShape::Read(element_shape.v, "element_shape"));
    const auto element = [&](size_t k) -> const Kept& { return list.elements[k]; };
    MergeElements(&shape, n, element, "stacked");
    if (!shape.full()) Invalid("the shape of the elements, of which none was set, is only known to be " + shape.text());
    StackElements(f.f, shape, n, element);
  }

 private:
  int64_t wanted_;
};

struct TensorListGather : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<int32_t> indices, In<Any> element_shape, Out<Any>) const {
    const TensorList& list = ListAt(f.f, 0, dtype_);
    for (uint64_t k = 0; k < indices.size(); ++k) list.WantIndex(indices[k], "index");
    PartialShape shape = list.Known(PartialShape::Read(element_shape.v, "element_shape"));
    const auto element = [&](size_t k) -> const Kept& { return list.elements[size_t(indices[k])]; };
    MergeElements(&shape, indices.size(), element, "gathered into one tensor");
    if (!shape.full()) Invalid("the shape of the elements, of which none was set, is only known to be " + shape.text());
    StackElements(f.f, shape, indices.size(), element);
  }
};

// Returns a new tensor with rows [at, at + n) of a tensor, or with row `at` without its axis.
Kept CopyRows(const tw_frame* f, const tw_view* v, int64_t at, const int64_t* dims, int32_t rank) {
  Kept t = NewTensor(f, v->dtype, dims, rank);
  if (t.view()->count) CopyRun(f, v, at * Product(v->dims, 1, v->rank), t.view(), 0, int64_t(t.view()->count));
  return t;
}
Kept CopyRow(const tw_frame* f, const tw_view* v, int64_t at) { return CopyRows(f, v, at, v->dims + 1, v->rank - 1); }

void WantRows(const tw_view* v) {
  if (v->rank < 1) Invalid("the tensor must be a vector at least, but is a scalar");
}

std::unique_ptr<TensorList> NewList(const tw_view* tensor, const tw_view* element_shape, PartialShape rows, const char* what) {
  auto list = std::make_unique<TensorList>();
  list->dtype = tensor->dtype;
  list->shape = PartialShape::Read(element_shape, "element_shape");
  if (!rows.Merge(list->shape)) Invalid(std::string(what) + " are " + rows.text() + ", but 'element_shape' is " + list->shape.text());
  return list;
}

void TensorListFromTensor(Frame f, In<Any> tensor, In<Any> element_shape, Out<Any>) {
  WantRows(tensor.v);
  auto list = NewList(tensor.v, element_shape.v, PartialShape::OfRows(tensor.v), "the rows of the tensor");
  constexpr uint64_t kTensor = 256 / sizeof(Kept);  // the memory of each row as a separate tensor, even of an empty row
  WantRoom(f.f, uint64_t(tensor.dim(0)) * kTensor);
  list->elements.reserve(size_t(tensor.dim(0)));
  for (int64_t k = 0; k < tensor.dim(0); ++k) list->elements.push_back(CopyRow(f.f, tensor.v, k));
  PutList(f.f, 0, std::move(list));
}

void WantIndexPerRow(const tw_frame* f, const In<Any>& tensor, const In<int32_t>& indices) {
  WantRows(tensor.v);
  if (int64_t(indices.size()) != tensor.dim(0))
    Invalid(std::to_string(indices.size()) + " indices for a tensor of " + std::to_string(tensor.dim(0)) + " rows");
  int64_t most = -1;
  for (uint64_t k = 0; k < indices.size(); ++k) {
    if (indices[k] < 0) Invalid("index " + std::to_string(indices[k]) + " is negative");
    most = std::max(most, int64_t(indices[k]));
  }
  WantRoom(f, uint64_t(most + 1));
}

void SetRows(const tw_frame* f, const In<Any>& tensor, const In<int32_t>& indices, TensorList* list) {
  for (uint64_t k = 0; k < indices.size(); ++k) {
    const auto at = size_t(indices[k]);
    if (at >= list->elements.size()) list->elements.resize(at + 1);
    list->elements[at] = CopyRow(f, tensor.v, int64_t(k));
  }
}

void Scatter(const tw_frame* f, In<Any> tensor, In<int32_t> indices, In<Any> element_shape, int64_t n) {
  WantIndexPerRow(f, tensor, indices);
  if (n < -1) Invalid("num_elements is " + std::to_string(n) + "; it must not be negative, or -1 for as many as the indices need");
  for (uint64_t k = 0; n >= 0 && k < indices.size(); ++k)
    if (indices[k] >= n) Invalid("index " + std::to_string(indices[k]) + " is not in a list of " + std::to_string(n) + " elements");
  auto list = NewList(tensor.v, element_shape.v, PartialShape::OfRows(tensor.v), "the rows of the tensor");
  if (n > 0) {
    WantRoom(f, uint64_t(n));
    list->elements.resize(size_t(n));
  }
  SetRows(f, tensor, indices, list.get());
  PutList(f, 0, std::move(list));
}

void TensorListScatter(Frame f, In<Any> tensor, In<int32_t> indices, In<Any> element_shape, Out<Any>) {
  Scatter(f.f, tensor, indices, element_shape, -1);
}
void TensorListScatterV2(Frame f, In<Any> tensor, In<int32_t> indices, In<Any> element_shape, In<int32_t> n, Out<Any>) {
  Scatter(f.f, tensor, indices, element_shape, n[0]);
}

struct TensorListScatterIntoExistingList : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<Any> tensor, In<int32_t> indices, Out<Any>) const {
    const TensorList& before = ListAt(f.f, 0, dtype_);
    WantIndexPerRow(f.f, tensor, indices);
    PartialShape rows = PartialShape::OfRows(tensor.v);
    if (!rows.Merge(before.shape))
      Invalid("the rows of the tensor are " + rows.text() + ", but the list's elements are " + before.shape.text());
    std::unique_ptr<TensorList> list = tw::own_or_copy<TensorList>(f.f, 0);
    SetRows(f.f, tensor, indices, list.get());
    PutList(f.f, 0, std::move(list));
  }
};

void TensorListSplit(Frame f, In<Any> tensor, In<Any> element_shape, In<int64_t> lengths, Out<Any>) {
  WantRows(tensor.v);
  int64_t sum = 0;
  for (uint64_t k = 0; k < lengths.size(); ++k) {
    if (lengths[k] < 0 || lengths[k] > tensor.dim(0) - sum)
      Invalid("the lengths do not add up to the " + std::to_string(tensor.dim(0)) + " rows of the tensor: length " + std::to_string(k) +
              " is " + std::to_string(lengths[k]));
    sum += lengths[k];
  }
  if (sum != tensor.dim(0))
    Invalid("the lengths add up to " + std::to_string(sum) + ", but the tensor has " + std::to_string(tensor.dim(0)) + " rows");
  std::vector<int64_t> dims(tensor.dims(), tensor.dims() + tensor.rank());
  dims[0] = -1;
  auto list = NewList(tensor.v, element_shape.v, PartialShape(dims.data(), tensor.rank()), "the pieces of the tensor");
  int64_t at = 0;
  for (uint64_t k = 0; k < lengths.size(); at += lengths[k++]) {
    dims[0] = lengths[k];
    if (!list->shape.Admits(dims.data(), tensor.rank()))
      Invalid("piece " + std::to_string(k) + " is " + tw::text(dims.data(), tensor.rank()) + ", but 'element_shape' is " +
              list->shape.text());
    list->elements.push_back(CopyRows(f.f, tensor.v, at, dims.data(), tensor.rank()));
  }
  PutList(f.f, 0, std::move(list));
}

// Concatenates elements along their first axis and outputs their lengths. An element that was never
// set has the length of `told`, or of `lengths`.
void Concat(const tw_frame* f, const TensorList& list, const PartialShape& told, const In<int64_t>* lengths) {
  const PartialShape known = list.Known(told);
  if (known.ranked && known.dims.empty()) Invalid("scalars cannot be joined; stack them");
  PartialShape rest = known.Rest();
  const size_t n = list.elements.size();
  tw::TempVector<int64_t> rows(n, f), begins(n, f);
  int64_t sum = 0;
  for (size_t k = 0; k < n; ++k) {
    const Kept& t = list.elements[k];
    if (t && t.view()->rank == 0) Invalid("element " + std::to_string(k) + " is a scalar: it cannot be joined; stack the elements");
    if (t && !rest.Merge(t.view()->dims + 1, t.view()->rank - 1))
      Invalid("element " + std::to_string(k) + " is " + DimsText(t.view()) + ", but the sizes of others after the first axis are " +
              rest.text());
    const int64_t first = known.ranked ? known.dims[0] : -1;
    if (t && first >= 0 && t.view()->dims[0] != first)
      Invalid("element " + std::to_string(k) + " is " + DimsText(t.view()) + ", but 'element_shape' is " + known.text());
    if (!t && first < 0 && (!lengths || k >= lengths->size()))
      Invalid("element " + std::to_string(k) + " was never set, and 'leading_dims' does not tell its length");
    rows[k] = t ? t.view()->dims[0] : first >= 0 ? first : (*lengths)[k];
    if (rows[k] < 0 || rows[k] > INT64_MAX - sum)
      Invalid("element " + std::to_string(k) + " cannot have " + std::to_string(rows[k]) + " rows");
    begins[k] = sum;
    sum += rows[k];
  }
  if (!rest.full()) Invalid("the sizes of the elements after the first axis are only known to be " + rest.text());
  std::vector<int64_t> dims{sum};
  dims.insert(dims.end(), rest.dims.begin(), rest.dims.end());
  const tw::Out<Any> tensor{f, 0};
  Allocate(tensor, dims.data(), int(dims.size()));
  const tw::Out<int64_t> out_lengths{f, 1};
  const int64_t count = int64_t(n);
  Allocate(out_lengths, &count, 1);
  std::copy(rows.begin(), rows.end(), out_lengths.data());
  if (std::any_of(list.elements.begin(), list.elements.end(), [](const Kept& t) { return !t; })) FillZero(f, tensor.v());
  const int64_t size = sum ? int64_t(tensor.size()) / sum : 0;
  const auto element = [&](size_t k) -> const Kept& { return list.elements[k]; };
  CopyElements(f, n, element, [&](size_t k) { return std::pair(begins[k] * size, rows[k] * size); }, tensor.v());
}

struct TensorListConcat : OfElements {
  explicit TensorListConcat(const tw::Node& n) : OfElements(n), told_(n.shape("element_shape").dims, n.shape("element_shape").rank) {}
  void operator()(Frame f, In<Any>, Out<Any>, Out<int64_t>) const { Concat(f.f, ListAt(f.f, 0, dtype_), told_, nullptr); }

 private:
  PartialShape told_;
};

struct TensorListConcatV2 : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any>, In<Any> element_shape, In<int64_t> leading_dims, Out<Any>, Out<int64_t>) const {
    Concat(f.f, ListAt(f.f, 0, dtype_), PartialShape::Read(element_shape.v, "element_shape"), &leading_dims);
  }
};

const TensorList& ListOf(const tw_frame* f, const tw_view* v, uint64_t i, uint32_t dtype) {
  const auto& list = tw::get<TensorList>(f, v, i);
  list.WantType(dtype);
  return list;
}

struct TensorListConcatLists : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any> a, In<Any> b, Out<Any> out) const {
    if (!SameDims(a.v, b.v)) Invalid("input_a is " + DimsText(a.v) + ", but input_b is " + DimsText(b.v));
    Allocate(out, a.dims(), a.rank());
    for (uint64_t i = 0; i < a.size(); ++i) {
      auto list = std::make_unique<TensorList>(ListOf(f.f, a.v, i, dtype_));
      const TensorList& second = ListOf(f.f, b.v, i, dtype_);
      if (!(list->shape == second.shape))
        Invalid("the elements of the lists at " + std::to_string(i) + " are " + list->shape.text() + " and " + second.shape.text());
      list->elements.insert(list->elements.end(), second.elements.begin(), second.elements.end());
      tw::put(f.f, out.v(), i, std::move(list));
    }
  }
};

struct TensorListPushBackBatch : OfElements {
  using OfElements::OfElements;
  void operator()(Frame f, In<Any> handles, In<Any> tensor, Out<Any> out) const {
    WantRows(tensor.v);
    if (uint64_t(tensor.dim(0)) != handles.size())
      Invalid("the tensor has " + std::to_string(tensor.dim(0)) + " rows for " + std::to_string(handles.size()) + " lists");
    Allocate(out, handles.dims(), handles.rank());
    for (uint64_t i = 0; i < handles.size(); ++i) {
      const TensorList& before = ListOf(f.f, handles.v, i, dtype_);
      Kept row = CopyRow(f.f, tensor.v, int64_t(i));
      before.WantElement(row.view(), "a row of the tensor");
      std::unique_ptr<TensorList> list = tw::own_or_copy<TensorList>(f.f, 0, i);
      list->elements.push_back(std::move(row));
      tw::put(f.f, out.v(), i, std::move(list));
    }
  }
};

}  // namespace

void register_tensor_list_join(tw::Plugin& p) {
  p.kernel<TensorListStack>("TensorListStack @CPU");
  p.kernel<TensorListGather>("TensorListGather @CPU");
  p.kernel<TensorListFromTensor>("TensorListFromTensor @CPU");
  p.kernel<TensorListScatter>("TensorListScatter @CPU");
  p.kernel<TensorListScatterV2>("TensorListScatterV2 @CPU");
  p.kernel<TensorListScatterIntoExistingList>("TensorListScatterIntoExistingList @CPU");
  p.kernel<TensorListSplit>("TensorListSplit @CPU");
  p.kernel<TensorListConcat>("TensorListConcat @CPU");
  p.kernel<TensorListConcatV2>("TensorListConcatV2 @CPU");
  p.kernel<TensorListConcatLists>("TensorListConcatLists @CPU");
  p.kernel<TensorListPushBackBatch>("TensorListPushBackBatch @CPU");
}

}  // namespace thalweg::cpu
