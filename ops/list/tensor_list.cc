// The TensorList family: lists of tensors as values, in elements of type variant. A handle carries
// the element type and, as far as known, the shape of the elements.
#include "ops/common/grad.h"
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The type and shape of a list's elements, as far as known while planning.
struct List {
  uint32_t dtype = 0;  // 0: unknown
  MaybeDims shape;
};

uint32_t ElementType(const tw::Shape& s) { return s.find("element_dtype") ? s.type("element_dtype") : 0; }

// Returns the list at input i; fails if its element type is not that of the op.
List ListIn(const tw::Shape& s, uint32_t i) {
  List list;
  tw_shape shape{};
  s.handle(i, &list.dtype, &shape);
  if (const uint32_t wanted = ElementType(s); wanted) {
    if (list.dtype && list.dtype != wanted) Fail("the list holds " + TypeName(list.dtype) + ", but 'element_dtype' is " + TypeName(wanted));
    if (!list.dtype) return {wanted, std::nullopt};
  }
  if (list.dtype) list.shape = ToDims(shape);
  return list;
}

void SetList(const tw::Shape& s, uint32_t o, const List& list) {
  if (!list.dtype) return;
  const Dims none;
  const Dims& dims = list.shape ? *list.shape : none;
  s.set_handle(o, list.dtype, {dims.data(), list.shape ? int32_t(dims.size()) : -1, 0});
}

// Reads an element shape: a vector of sizes, or the scalar -1 for any.
MaybeDims ElementShape(const tw::Shape& s, uint32_t i) {
  if (s.known(i) && s.rank(i) > 1) Fail("element_shape must be a vector, or the scalar -1, but is " + tw::text(s.in(i)));
  Dims sizes;
  if (s.value(i, &sizes)) {
    if (s.rank(i) == 0) {
      if (sizes[0] != -1) Fail("element_shape is the scalar " + tw::text(sizes[0]) + "; give a vector of sizes, or -1 for any shape");
      return std::nullopt;
    }
    for (int64_t size : sizes)
      if (size < -1) Fail("element_shape has the size " + tw::text(size) + "; unknown sizes are -1");
    return sizes;
  }
  if (s.known(i) && s.rank(i) == 1 && Known(s.dim(i, 0))) return Dims(size_t(s.dim(i, 0)), -1);
  return std::nullopt;
}

// The shape of an element that is read, merged from the list and from the input `told`.
MaybeDims Element(const tw::Shape& s, const List& list, uint32_t told) {
  return Merge(s, ElementShape(s, told), list.shape, "'element_shape' and the shape of the list's elements");
}

MaybeDims Rows(const MaybeDims& tensor) {
  if (!tensor) return std::nullopt;
  if (tensor->empty()) Fail("the tensor must be a vector at least, but is a scalar");
  return Sub(*tensor, 1, tensor->size());
}
MaybeDims Stacked(int64_t n, const MaybeDims& element) { return element ? MaybeDims(Join({n}, *element)) : std::nullopt; }

void Made(const tw::Shape& s) {
  WantScalar(s, 1, "the number of elements");
  SetList(s, 0, {ElementType(s), ElementShape(s, 0)});
}

void PushBack(const tw::Shape& s) {
  const List list = ListIn(s, 0);
  Merge(s, list.shape, In(s, 1), "the shape of the list's elements and that of 'tensor'");
  SetList(s, 0, list);
}

void PopBack(const tw::Shape& s) {
  const List list = ListIn(s, 0);
  SetList(s, 0, list);
  Set(s, 1, Element(s, list, 1));
}

void GetItem(const tw::Shape& s) {
  WantScalar(s, 1, "index");
  Set(s, 0, Element(s, ListIn(s, 0), 2));
}

void SetItem(const tw::Shape& s) {
  WantScalar(s, 1, "index");
  const List list = ListIn(s, 0);
  Merge(s, list.shape, In(s, 2), "the shape of the list's elements and that of 'item'");
  SetList(s, 0, list);
}

void Same(const tw::Shape& s) { SetList(s, 0, ListIn(s, 0)); }
void ShapeOfElements(const tw::Shape& s) {
  const List list = ListIn(s, 0);
  if (list.shape) Set(s, 0, Dims{int64_t(list.shape->size())});
}

void Stack(const tw::Shape& s) {
  const int64_t n = s.i("num_elements");
  if (n < -1) Fail("num_elements is " + tw::text(n) + "; it must not be negative, or -1 for any number");
  Set(s, 0, Stacked(n, Element(s, ListIn(s, 0), 1)));
}

void FromTensor(const tw::Shape& s) {
  const MaybeDims shape = ElementShape(s, 1);
  Merge(s, Rows(In(s, 0)), shape, "the rows of 'tensor' and 'element_shape'");
  SetList(s, 0, {ElementType(s), shape});
}

int64_t VectorSize(const tw::Shape& s, uint32_t i, const char* name) {
  WantVector(s, i, name);
  return s.known(i) ? s.dim(i, 0) : -1;
}

void Gather(const tw::Shape& s) { Set(s, 0, Stacked(VectorSize(s, 1, "indices"), Element(s, ListIn(s, 0), 2))); }

// `tensor` and `indices` are inputs `at` and `at` + 1.
void WantIndexPerRow(const tw::Shape& s, uint32_t at) {
  const int64_t indices = VectorSize(s, at + 1, "indices");
  Rows(In(s, at));
  if (s.known(at)) MergeSize(s, s.dim(at, 0), indices, "the rows of 'tensor' and the number of indices");
}

void Scatter(const tw::Shape& s) {
  WantIndexPerRow(s, 0);
  const MaybeDims shape = ElementShape(s, 2);
  Merge(s, Rows(In(s, 0)), shape, "the rows of 'tensor' and 'element_shape'");
  if (s.c->n_in > 3) WantScalar(s, 3, "num_elements");
  SetList(s, 0, {ElementType(s), shape});
}

void ScatterIntoList(const tw::Shape& s) {
  WantIndexPerRow(s, 1);
  const List list = ListIn(s, 0);
  Merge(s, Rows(In(s, 1)), list.shape, "the rows of 'tensor' and the shape of the list's elements");
  SetList(s, 0, list);
}

void Joined(const tw::Shape& s, const MaybeDims& element) {
  if (element && element->empty()) Fail("elements that are scalars cannot be joined; stack them");
  Set(s, 0, Stacked(-1, Rows(element)));
  Set(s, 1, Dims{-1});
}
void ConcatV1(const tw::Shape& s) {
  const List list = ListIn(s, 0);
  Joined(s, Merge(s, ToDims(s.shape("element_shape")), list.shape, "'element_shape' and the shape of the list's elements"));
}
void ConcatV2(const tw::Shape& s) {
  WantVector(s, 2, "leading_dims");
  Joined(s, Element(s, ListIn(s, 0), 1));
}

void Split(const tw::Shape& s) {
  WantVector(s, 2, "lengths");
  const MaybeDims shape = ElementShape(s, 1), tensor = In(s, 0);
  Merge(s, Stacked(-1, Rows(tensor)), shape, "the pieces of 'tensor' and 'element_shape'");
  SetList(s, 0, {ElementType(s), shape});
}

void JoinedLists(const tw::Shape& s) {
  const List a = ListIn(s, 0), b = ListIn(s, 1);
  Set(s, 0, Merge(s, In(s, 0), In(s, 1), "the shapes of 'input_a' and 'input_b'"));
  SetList(s, 0, {a.dtype, Merge(s, a.shape, b.shape, "the shapes of the elements of 'input_a' and 'input_b'")});
}

void PushBackBatch(const tw::Shape& s) {
  const List list = ListIn(s, 0);
  Merge(s, Rows(In(s, 1)), list.shape, "the rows of 'tensor' and the shape of the lists' elements");
  Set(s, 0, In(s, 0));
  SetList(s, 0, list);
}

// Gradients.

// Attributes of ops that gradients emit.
tw::Attr Of(const tw::Grad& g) { return tw::Attr::Type("element_dtype", g.type("element_dtype")); }
tw_edge ShapeOfList(const tw::Grad& g, tw_edge list) {
  return g.op("TensorListElementShape", {list}, {tw::Attr::Type("shape_type", TW_INT32)});
}
tw_edge Length(const tw::Grad& g, tw_edge list) { return g.op("TensorListLength", {list}); }
// A list as long as `list`, whose elements read as zeros.
tw_edge Unset(const tw::Grad& g, tw_edge list) { return g.op("TensorListReserve", {ShapeOfList(g, list), Length(g, list)}, {Of(g)}); }
// The incoming gradient of output o, which is a list.
tw_edge ListGradient(const tw::Grad& g, uint32_t o = 0) { return g.has_dy(o) ? g.dy(o) : Unset(g, g.y(o)); }
tw_edge RowShape(const tw::Grad& g, tw_edge tensor) { return Tail(g, ShapeOf(g, tensor), 1); }

void PushBackGradient(const tw::Grad& g) {
  const tw_edge popped = g.op("TensorListPopBack", {g.dy(), g.shape(1)}, {Of(g)});
  g.dx(0, popped);
  g.dx(1, g.out(popped, 1));
}
void PopBackGradient(const tw::Grad& g) {
  const tw_edge element = g.has_dy(1) ? g.dy(1) : g.op("ZerosLike", {g.y(1)});
  g.dx(0, g.op("TensorListPushBack", {ListGradient(g), element}, {Of(g)}));
}
void GetItemGradient(const tw::Grad& g) { g.dx(0, g.op("TensorListSetItem", {Unset(g, g.x(0)), g.x(1), g.dy()}, {Of(g)})); }
void SetItemGradient(const tw::Grad& g) {
  g.dx(2, g.op("TensorListGetItem", {g.dy(), g.x(1), g.shape(2)}, {Of(g)}));  // before the list is changed
  tw_edge list = g.op("TensorListSetItem", {g.dy(), g.x(1), g.op("ZerosLike", {g.x(2)})}, {Of(g)});
  if (g.b("resize_if_index_out_of_bounds")) list = g.op("TensorListResize", {list, Length(g, g.x(0))});
  g.dx(0, list);
}
void StackGradient(const tw::Grad& g) { g.dx(0, g.op("TensorListFromTensor", {g.dy(), RowShape(g, g.dy())}, {Of(g)})); }
void FromTensorGradient(const tw::Grad& g) {
  const MaybeDims shape = ShapeIn(g, 0);
  const int64_t n = shape && !shape->empty() && Known(shape->front()) ? shape->front() : -1;
  g.dx(0, g.op("TensorListStack", {g.dy(), RowShape(g, g.x(0))}, {Of(g), {"num_elements", n}}));
}
void ResizeGradient(const tw::Grad& g) { g.dx(0, g.op("TensorListResize", {g.dy(), Length(g, g.x(0))})); }

// An element that was gathered twice gets the sum of both gradients.
void GatherGradient(const tw::Grad& g) {
  const tw_edge places = g.op("Unique", {g.x(1)}), slot = g.out(places, 1);
  const tw_edge sums = g.op("UnsortedSegmentSum", {g.dy(), slot, g.op("Size", {places})});
  g.dx(0, g.op("TensorListScatterV2", {sums, places, RowShape(g, g.dy()), Length(g, g.x(0))}, {Of(g)}));
}
void ScatterGradient(const tw::Grad& g) { g.dx(0, g.op("TensorListGather", {g.dy(), g.x(1), RowShape(g, g.x(0))}, {Of(g)})); }
void ScatterIntoListGradient(const tw::Grad& g) {
  const tw_edge rows = g.op("TensorListGather", {g.dy(), g.x(2), RowShape(g, g.x(1))}, {Of(g)});
  g.dx(1, rows);
  const tw_edge list = g.op("TensorListScatterIntoExistingList", {g.dy(), g.op("ZerosLike", {rows}), g.x(2)}, {Of(g)});
  g.dx(0, g.op("TensorListResize", {list, Length(g, g.x(0))}));  // the write may have made the list longer
}
void ConcatGradient(const tw::Grad& g) { g.dx(0, g.op("TensorListSplit", {g.dy(), ShapeOfList(g, g.x(0)), g.y(1)}, {Of(g)})); }
void SplitGradient(const tw::Grad& g) {
  const tw_edge shape = Concat(g, {Ints(g, {-1}), RowShape(g, g.x(0))});
  g.dx(0, g.op("TensorListConcatV2", {g.dy(), shape, g.x(2)}, {Of(g)}));
}

}  // namespace

void register_tensor_list(tw::Plugin& p) {
#define ELEMENTS "element_dtype: type; "
#define SHAPES "shape_type: {int32, int64}; "
  p.op<nullptr, Made>("EmptyTensorList(element_shape: shape_type, max_num_elements: int32[]) -> (handle: variant[]); " ELEMENTS SHAPES
                      "role list; no_gradient \"it reads sizes only\"; doc \"a list without elements\"");
  p.op<nullptr, Made>("TensorListReserve(element_shape: shape_type, num_elements: int32[]) -> (handle: variant[]); " ELEMENTS SHAPES
                      "no_gradient \"it reads sizes only\"; doc \"a list of elements that read as zeros until they are set\"");
  p.op<PushBackGradient, PushBack>(
      "TensorListPushBack(input_handle: variant[], tensor: element_dtype) -> (output_handle: variant[]); " ELEMENTS
      "role list_push; doc \"the list with one element more at its end\"");
  p.op<PopBackGradient, PopBack>(
      "TensorListPopBack(input_handle: variant[], element_shape: int32) -> (output_handle: variant[], "
      "tensor: element_dtype); " ELEMENTS "role list_pop; doc \"the list without its last element, and that element\"");
  p.op<GetItemGradient, GetItem>(
      "TensorListGetItem(input_handle: variant[], index: int32[], element_shape: Tshape) -> (item: element_dtype); " ELEMENTS
      "Tshape: {int32, int64} = int32; doc \"one element of the list\"");
  p.op<SetItemGradient, SetItem>(
      "TensorListSetItem(input_handle: variant[], index: int32[], item: element_dtype) -> (output_handle: variant[]); " ELEMENTS
      "resize_if_index_out_of_bounds: bool = false; doc \"the list with another element in one place\"");
  p.op<nullptr, Same>(
      "TensorListLength(input_handle: variant[]) -> (length: int32[]); no_gradient \"a number of elements has no derivative\"; "
      "doc \"how many elements the list has\"");
  p.op<ResizeGradient, Same>(
      "TensorListResize(input_handle: variant[], size: int32[]) -> (output_handle: variant[]); "
      "doc \"the list cut, or made longer by elements that read as zeros\"");
  p.op<nullptr, ShapeOfElements>("TensorListElementShape(input_handle: variant[]) -> (element_shape: shape_type); " SHAPES
                                 "no_gradient \"a shape has no derivative\"; doc \"what the list knows of the shape of its elements\"");
  p.op<StackGradient, Stack>("TensorListStack(input_handle: variant[], element_shape: int32) -> (tensor: element_dtype); " ELEMENTS
                             "num_elements: int = -1; doc \"all elements along a new first axis\"");
  p.op<FromTensorGradient, FromTensor>(
      "TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> (output_handle: variant[]); " ELEMENTS SHAPES
      "doc \"the list of a tensor's rows\"");
  p.op<GatherGradient, Gather>(
      "TensorListGather(input_handle: variant[], indices: int32, element_shape: int32) -> (values: element_dtype); " ELEMENTS
      "doc \"some elements along a new first axis\"");
  p.op<ScatterGradient, Scatter>(
      "TensorListScatter(tensor: element_dtype, indices: int32, element_shape: shape_type) -> (output_handle: variant[]); " ELEMENTS SHAPES
      "doc \"the list that has the tensor's rows in these places\"");
  p.op<ScatterGradient, Scatter>(
      "TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32[]) -> "
      "(output_handle: variant[]); " ELEMENTS SHAPES "doc \"the list of that length that has the tensor's rows in these places\"");
  p.op<ScatterIntoListGradient, ScatterIntoList>(
      "TensorListScatterIntoExistingList(input_handle: variant[], tensor: element_dtype, indices: int32) -> "
      "(output_handle: variant[]); " ELEMENTS "doc \"the list with the tensor's rows in these places\"");
  p.op<ConcatGradient, ConcatV1>("TensorListConcat(input_handle: variant[]) -> (tensor: element_dtype, lengths: int64[_]); " ELEMENTS
                                 "element_shape: shape = unknown; doc \"all elements joined along their first axis\"");
  p.op<ConcatGradient, ConcatV2>(
      "TensorListConcatV2(input_handle: variant[], element_shape: shape_type, leading_dims: int64) -> "
      "(tensor: element_dtype, lengths: int64[_]); " ELEMENTS SHAPES "doc \"all elements joined along their first axis\"");
  p.op<SplitGradient, Split>(
      "TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> (output_handle: variant[]); " ELEMENTS SHAPES
      "doc \"the list of a tensor's pieces along its first axis\"");
  p.op<nullptr, JoinedLists>("TensorListConcatLists(input_a: variant, input_b: variant) -> (output: variant); " ELEMENTS
                             "no_gradient \"not defined, as in TensorFlow\"; doc \"list by list, the elements of both\"");
  p.op<nullptr, PushBackBatch>(
      "TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) -> (output_handles: variant); " ELEMENTS
      "no_gradient \"not defined, as in TensorFlow\"; doc \"each list with one row of the tensor more\"");
#undef ELEMENTS
#undef SHAPES
}

}  // namespace thalweg::ops
