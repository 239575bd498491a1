// The TensorArrayV3 family: an array of tensors that lives as long as a step holds its handle. Each
// element is written once and read after that. An array of gradients adds up the values written to
// an element. The float `flow` orders writers and readers, and its value is unused.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/copy.h"
#include "kernels/register.h"
#include "kernels/tensor_list.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {
namespace {

constexpr char kTensorArray[] = "org.thalweg.tensor_array";

struct Element {
  Kept value;
  bool written = false, read = false, cleared = false;
};

struct TensorArray {
  std::string name;
  uint32_t dtype = 0;
  PartialShape shape;
  bool dynamic = false, clear = true, identical = false, sums = false, closed = false;
  std::vector<Element> elements;
  std::map<std::string, Kept, std::less<>> gradients;  // the handles, by source
  tw::Holding held;

  // Sets the number of elements. Throws if the payer may not hold them.
  void Resize(tw::Payer payer, size_t n) {
    const size_t there = elements.capacity(), room = n <= there ? there : std::max(n, 2 * there);
    if (room > there) held.set(payer, (there + room) * sizeof(Element));  // during growth the old and the new memory both exist
    elements.reserve(room);
    held.set(payer, room * sizeof(Element));
    elements.resize(n);
  }

  std::string At(int64_t i) const { return "element " + std::to_string(i) + " of the tensor array '" + name + "'"; }
};

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

TensorArray& Opened(const Var<Any>& handle) {
  TensorArray& array = *static_cast<TensorArray*>(handle.handle());
  if (array.closed) Invalid("the tensor array '" + array.name + "' is closed");
  return array;
}
TensorArray& Opened(const Var<Any>& handle, uint32_t dtype) {
  TensorArray& array = Opened(handle);
  if (array.dtype != dtype) Invalid("the tensor array '" + array.name + "' holds " + TypeText(array.dtype) + ", not " + TypeText(dtype));
  return array;
}

void PassFlow(const tw_frame* f, uint32_t in, uint32_t out) { tw::check(f->host->tensor->forward(f, in, out, nullptr, 0)); }

void Write(const tw_frame* f, TensorArray& array, int64_t i, Kept value) {
  if (i < 0 || (uint64_t(i) >= array.elements.size() && !array.dynamic))
    Invalid(array.At(i) + " cannot be written: it has " + std::to_string(array.elements.size()) + " elements and no dynamic size");
  const tw_view* v = value.view();
  if (!array.shape.Admits(v)) Invalid(array.At(i) + " cannot be " + DimsText(v) + ": the array's elements are " + array.shape.text());
  if (uint64_t(i) >= array.elements.size()) {
    array.Resize(f, size_t(i) + 1);
  }
  Element& e = array.elements[size_t(i)];
  if (e.read) Invalid(array.At(i) + " was read before, and cannot be written any more");
  if (e.written && !array.sums) Invalid(array.At(i) + " was written before");
  if (e.written && !SameDims(e.value.view(), v))
    Invalid(array.At(i) + " is " + DimsText(e.value.view()) + ": " + DimsText(v) + " cannot be added to it");
  if (array.identical) (void)array.shape.Merge(PartialShape(v->dims, v->rank));
  e.value = e.written ? SumOf(f, e.value.view(), v) : std::move(value);
  e.written = true;
}

// Returns element i for reading: its tensor, or zeros of the array's shape if it was never written.
Kept Read(const tw_frame* f, TensorArray& array, int64_t i, const PartialShape& told) {
  if (i < 0 || uint64_t(i) >= array.elements.size())
    Invalid(array.At(i) + " cannot be read: it has " + std::to_string(array.elements.size()) + " elements");
  Element& e = array.elements[size_t(i)];
  if (e.cleared) Invalid(array.At(i) + " was read before, and cleared then; set clear_after_read to false to read it twice");
  if (!e.written) {
    PartialShape shape = array.shape;
    if (!shape.Merge(told) || !shape.full()) Invalid(array.At(i) + " was never written, and its shape is only known to be " + shape.text());
    e.value = NewTensor(f, array.dtype, shape.dims.data(), int32_t(shape.dims.size()));
    FillZero(f, e.value.view());
    e.written = true;
  }
  e.read = true;
  if (!array.clear) return e.value;
  e.cleared = true;
  return std::exchange(e.value, Kept());
}

Kept CopyRows(const tw_frame* f, const tw_view* v, int64_t at, int64_t n, bool whole) {
  std::vector<int64_t> dims(v->dims + (whole ? 0 : 1), v->dims + v->rank);
  if (whole) dims[0] = n;
  Kept t = NewTensor(f, v->dtype, dims.data(), int32_t(dims.size()));
  if (t.view()->count) CopyRun(f, v, at * Product(v->dims, 1, v->rank), t.view(), 0, int64_t(t.view()->count));
  return t;
}

void Make(const tw_frame* f, TensorArray* array) {
  const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kTensorArray), nullptr, 0, nullptr, 0};
  const auto make = [](const tw_host* h, void* arg, void** out) {
    return tw::guard(h, [&] { *out = new TensorArray(std::move(*static_cast<TensorArray*>(arg))); });
  };
  tw::check(f->host->resource->open(f, &key, make, array, 0));
}

class TensorArrayV3 {
 public:
  explicit TensorArrayV3(const tw::Node& n) {
    like_.name = n.s("tensor_array_name").empty() ? n.name() : n.s("tensor_array_name");
    like_.dtype = n.type("dtype");
    like_.shape = PartialShape(n.shape("element_shape").dims, n.shape("element_shape").rank);
    like_.dynamic = n.b("dynamic_size");
    like_.clear = n.b("clear_after_read");
    like_.identical = n.b("identical_element_shapes");
  }
  void operator()(Frame f, In<int32_t> size, Out<Any>, Out<float> flow) const {
    if (size[0] < 0) Invalid("size is " + std::to_string(size[0]) + "; it must not be negative");
    TensorArray array = like_;
    array.Resize(f, size_t(size[0]));
    Make(f.f, &array);
    flow[0] = 0;
  }

 private:
  TensorArray like_;
};

// The array of gradients for an array and a source. The first call that asks for it makes it.
class TensorArrayGrad {
 public:
  explicit TensorArrayGrad(const tw::Node& n) : source_(n.s("source")) {
    if (!source_.empty()) return;
    // The gradients of one differentiation call share a scope, which is in the name of their nodes.
    const std::string_view name = n.name();
    const size_t at = name.find("gradients");
    source_ = name.substr(0, name.find('/', at == name.npos ? 0 : at));
  }
  void operator()(Frame f, Var<Any> handle, In<float>, Out<Any> grad, Out<float>) const { Open(f.f, handle, {}, grad); }

 protected:
  void Open(const tw_frame* f, Var<Any> handle, const std::vector<int64_t>& before, const Out<Any>& grad) const {
    TensorArray& array = Opened(handle);
    array.dynamic = false;
    PassFlow(f, 1, 1);
    if (const auto found = array.gradients.find(source_); found != array.gradients.end()) return GiveTensor(f, 0, found->second);
    TensorArray made;
    made.name = array.name + "@" + source_;
    made.dtype = array.dtype;
    made.shape = array.shape;
    if (made.shape.ranked) made.shape.dims.insert(made.shape.dims.begin(), before.begin(), before.end());
    made.identical = array.identical;
    made.clear = array.clear;
    made.sums = true;
    made.Resize(f, array.elements.size());
    Make(f, &made);
    Kept kept = NewTensor(f, TW_RESOURCE, nullptr, 0);
    tw::check(tw::variants(f->host).copy(f->host, grad.v(), 0, kept.view(), 0, 1));
    array.gradients.emplace(source_, std::move(kept));
  }

 private:
  std::string source_;
};

struct TensorArrayGradWithShape : TensorArrayGrad {
  using TensorArrayGrad::TensorArrayGrad;
  void operator()(Frame f, Var<Any> handle, In<float>, In<int32_t> before, Out<Any> grad, Out<float>) const {
    Open(f.f, handle, std::vector<int64_t>(before.data(), before.data() + before.size()), grad);
  }
};

void WriteOne(Frame f, Var<Any> handle, In<int32_t> index, In<Any> value, In<float>, Out<float>) {
  Write(f.f, Opened(handle, value.v->dtype), index[0], KeepInput(f.f, 2));
  PassFlow(f.f, 3, 0);
}

void ReadOne(Frame f, Var<Any> handle, In<int32_t> index, In<float>, Out<Any>) {
  GiveTensor(f.f, 0, Read(f.f, Opened(handle, f.f->out[0]->dtype), index[0], PartialShape()));
}

void WantRows(const tw_view* v, uint64_t n, const char* what) {
  if (v->rank < 1) Invalid("the value must be a vector at least, but is a scalar");
  if (uint64_t(v->dims[0]) != n) Invalid("the value has " + std::to_string(v->dims[0]) + " rows for " + std::to_string(n) + " " + what);
}

void Scatter(Frame f, Var<Any> handle, In<int32_t> indices, In<Any> value, In<float>, Out<float>) {
  TensorArray& array = Opened(handle, value.v->dtype);
  WantRows(value.v, indices.size(), "indices");
  for (uint64_t k = 0; k < indices.size(); ++k) Write(f.f, array, indices[k], CopyRows(f.f, value.v, int64_t(k), 1, false));
  PassFlow(f.f, 3, 0);
}

class Gather {
 public:
  explicit Gather(const tw::Node& n) : told_(n.shape("element_shape").dims, n.shape("element_shape").rank) {}
  void operator()(Frame f, Var<Any> handle, In<int32_t> indices, In<float>, Out<Any> out) const {
    TensorArray& array = Opened(handle, f.f->out[0]->dtype);
    PartialShape shape = array.shape;
    if (!shape.Merge(told_)) Invalid("element_shape is " + told_.text() + ", but the array's elements are " + array.shape.text());
    const tw::Charge charge(f, indices.size() * sizeof(Kept));
    std::vector<Kept> rows;
    rows.reserve(indices.size());
    for (uint64_t k = 0; k < indices.size(); ++k) {
      rows.push_back(Read(f.f, array, indices[k], told_));
      const tw_view* v = rows.back().view();
      if (!shape.Merge(PartialShape(v->dims, v->rank)))
        Invalid(array.At(indices[k]) + " is " + DimsText(v) + ", others are " + shape.text() + ": they cannot be gathered into one tensor");
    }
    if (!shape.full()) Invalid("no element is gathered, and their shape is only known to be " + shape.text());
    std::vector<int64_t> dims{int64_t(rows.size())};
    dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
    Allocate(out, dims.data(), int(dims.size()));
    int64_t at = 0;
    for (const Kept& row : rows) {
      const int64_t n = int64_t(row.view()->count);
      if (n > 0) CopyRun(f.f, row.view(), 0, out.v(), at, n);
      at += n;
    }
  }

 private:
  PartialShape told_;
};

class Concat {
 public:
  explicit Concat(const tw::Node& n) : told_(n.shape("element_shape_except0").dims, n.shape("element_shape_except0").rank) {}
  void operator()(Frame f, Var<Any> handle, In<float>, Out<Any> out, Out<int64_t> lengths) const {
    TensorArray& array = Opened(handle, f.f->out[0]->dtype);
    PartialShape rest = told_;
    if (array.shape.ranked && array.shape.dims.empty()) Invalid("the elements of the array are scalars, which cannot be joined");
    if (!rest.Merge(array.shape.Rest()))
      Invalid("element_shape_except0 is " + told_.text() + ", but the array's elements are " + array.shape.text());
    const tw::Charge charge(f, array.elements.size() * sizeof(Kept));
    std::vector<Kept> parts;
    parts.reserve(array.elements.size());
    int64_t sum = 0;
    for (size_t k = 0; k < array.elements.size(); ++k) {
      parts.push_back(Read(f.f, array, int64_t(k), PartialShape()));
      const tw_view* v = parts.back().view();
      if (v->rank == 0 || !rest.Merge(PartialShape::OfRows(v)))
        Invalid(array.At(int64_t(k)) + " is " + DimsText(v) + ": it cannot be joined with others whose sizes after the first axis are " +
                rest.text());
      sum += v->dims[0];
    }
    if (!rest.full()) Invalid("the array has no elements, and their sizes after the first axis are only known to be " + rest.text());
    std::vector<int64_t> dims{sum};
    dims.insert(dims.end(), rest.dims.begin(), rest.dims.end());
    Allocate(out, dims.data(), int(dims.size()));
    const int64_t n = int64_t(parts.size());
    Allocate(lengths, &n, 1);
    int64_t at = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const tw_view* v = parts[k].view();
      lengths[k] = v->dims[0];
      if (v->count) CopyRun(f.f, v, 0, out.v(), at, int64_t(v->count));
      at += int64_t(v->count);
    }
  }

 private:
  PartialShape told_;
};

void Split(Frame f, Var<Any> handle, In<Any> value, In<int64_t> lengths, In<float>, Out<float>) {
  TensorArray& array = Opened(handle, value.v->dtype);
  if (value.rank() < 1) Invalid("the value must be a vector at least, but is a scalar");
  int64_t rest = value.dim(0);
  for (uint64_t k = 0; k < lengths.size(); rest -= lengths[k++])
    if (lengths[k] < 0 || lengths[k] > rest)
      Invalid("the lengths do not add up to the " + std::to_string(value.dim(0)) + " rows of the value: length " + std::to_string(k) +
              " is " + std::to_string(lengths[k]));
  if (rest != 0)
    Invalid("the lengths add up to " + std::to_string(value.dim(0) - rest) + ", but the value has " + std::to_string(value.dim(0)) +
            " rows");
  if (lengths.size() != array.elements.size() && !array.dynamic)
    Invalid("the tensor array '" + array.name + "' has " + std::to_string(array.elements.size()) +
            " elements and no dynamic size, but there are " + std::to_string(lengths.size()) + " lengths");
  int64_t at = 0;
  for (uint64_t k = 0; k < lengths.size(); at += lengths[k++]) Write(f.f, array, int64_t(k), CopyRows(f.f, value.v, at, lengths[k], true));
  PassFlow(f.f, 3, 0);
}

void Size(Var<Any> handle, In<float>, Out<int32_t> size) { size[0] = int32_t(Opened(handle).elements.size()); }

void Close(Var<Any> handle) {
  auto& array = *static_cast<TensorArray*>(handle.handle());
  array.closed = true;
  std::vector<Element>().swap(array.elements);
  array.held.sub(array.held.bytes());
  array.gradients.clear();
}

}  // namespace

void register_tensor_array(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kTensorArray), 1, nullptr,
              [](const tw_host*, void* object) { delete static_cast<TensorArray*>(object); }, nullptr, nullptr});
  p.kernel<TensorArrayV3>("TensorArrayV3 @CPU; cheap");
  p.kernel<TensorArrayGrad>("TensorArrayGradV3 @CPU; cheap; update handle");
  p.kernel<TensorArrayGradWithShape>("TensorArrayGradWithShape @CPU; cheap; update handle");
  p.kernel<WriteOne>("TensorArrayWriteV3 @CPU; cheap; update handle; keep value");
  p.kernel<ReadOne>("TensorArrayReadV3 @CPU; cheap; update handle; gives value");
  p.kernel<Scatter>("TensorArrayScatterV3 @CPU; update handle");
  p.kernel<Gather>("TensorArrayGatherV3 @CPU; update handle");
  p.kernel<Concat>("TensorArrayConcatV3 @CPU; update handle");
  p.kernel<Split>("TensorArraySplitV3 @CPU; update handle");
  p.kernel<Size>("TensorArraySizeV3 @CPU; cheap; read handle");
  p.kernel<Close>("TensorArrayCloseV3 @CPU; cheap; update handle");
}

}  // namespace thalweg::cpu
