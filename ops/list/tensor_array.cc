// The TensorArrayV3 family: an array of tensors that lives as long as a step holds its handle.
// `flow`, a float, orders writes and reads and carries gradients. The gradient of a read is a write
// to the array of gradients; that of a write is a read from it.
#include "ops/common/grad.h"
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The shape of the elements, from the handle at input 0 merged with the attribute `attr`, if given.
MaybeDims Element(const tw::Shape& s, const char* attr = nullptr) {
  uint32_t dtype = 0;
  tw_shape shape{};
  s.handle(0, &dtype, &shape);
  const MaybeDims known = dtype ? ToDims(shape) : std::nullopt;
  return attr ? Merge(s, ToDims(s.shape(attr)), known, "'element_shape' and the shape of the array's elements") : known;
}

void Array(const tw::Shape& s) {
  WantScalar(s, 0, "size");
  s.set_handle(0, s.type("dtype"), s.shape("element_shape"));
}
void ArrayOfGradients(const tw::Shape& s) {
  uint32_t dtype = 0;
  tw_shape shape{};
  s.handle(0, &dtype, &shape);
  if (dtype) s.set_handle(0, dtype, shape);
}
void GradientsWithShape(const tw::Shape& s) { WantVector(s, 2, "shape_to_prepend"); }
void Write(const tw::Shape& s) { Merge(s, Element(s), In(s, 2), "the shape of the array's elements and that of 'value'"); }
void Read(const tw::Shape& s) { Set(s, 0, Element(s)); }

void Gather(const tw::Shape& s) {
  WantVector(s, 1, "indices");
  const MaybeDims element = Element(s, "element_shape");
  if (element) Set(s, 0, Join({s.known(1) ? s.dim(1, 0) : -1}, *element));
}
void Scatter(const tw::Shape& s) {
  WantVector(s, 1, "indices");
  WantRankAtLeast(s, 2, 1, "value");
  if (s.known(1) && s.known(2)) MergeSize(s, s.dim(2, 0), s.dim(1, 0), "the rows of 'value' and the number of indices");
}
void ConcatV3(const tw::Shape& s) {
  if (const MaybeDims rest = ToDims(s.shape("element_shape_except0"))) Set(s, 0, Join({-1}, *rest));
}
void Split(const tw::Shape& s) {
  WantRankAtLeast(s, 1, 1, "value");
  WantVector(s, 2, "lengths");
}

// Emits the array of gradients of the array at input 0. The op returns its handle, then the flow.
tw_edge Gradients(const tw::Grad& g, tw_edge flow) { return g.op("TensorArrayGradV3", {g.x(0), flow}, {{"source", ""}}); }

void WriteGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.dy());
  g.dx(2, g.op("TensorArrayReadV3", {array, g.x(1), g.out(array, 1)}, {tw::Attr::Type("dtype", g.type("T"))}));
  g.dx(3, g.dy());
}
void ReadGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.x(2));
  g.dx(2, g.op("TensorArrayWriteV3", {array, g.x(1), g.dy(), g.out(array, 1)}));
}
void GatherGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.x(2));
  g.dx(2, g.op("TensorArrayScatterV3", {array, g.x(1), g.dy(), g.out(array, 1)}));
}
void ScatterGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.dy());
  g.dx(2, g.op("TensorArrayGatherV3", {array, g.x(1), g.out(array, 1)}, {tw::Attr::Type("dtype", g.type("T"))}));
  g.dx(3, g.dy());
}
void ConcatGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.x(1));
  g.dx(1, g.op("TensorArraySplitV3", {array, g.dy(), g.y(1), g.out(array, 1)}));
}
void SplitGradient(const tw::Grad& g) {
  const tw_edge array = Gradients(g, g.dy());
  g.dx(1, g.op("TensorArrayConcatV3", {array, g.out(array, 1)}, {tw::Attr::Type("dtype", g.type("T"))}));
  g.dx(3, g.dy());
}

}  // namespace

void register_tensor_array(tw::Plugin& p) {
#define ARRAY "resource handle org.thalweg.tensor_array; stateful; "
  p.op<nullptr, Array>(
      "TensorArrayV3(size: int32[]) -> (handle: resource[], flow: float[]); dtype: type; element_shape: shape = unknown; "
      "dynamic_size: bool = false; clear_after_read: bool = true; identical_element_shapes: bool = false; "
      "tensor_array_name: string = \"\"; stateful; no_gradient \"it reads a size only\"; doc \"a new array of tensors\"");
  p.op<nullptr, ArrayOfGradients>(
      "TensorArrayGradV3(handle: resource[], flow_in: float[]) -> (grad_handle: resource[], flow_out: float[]); "
      "source: string; " ARRAY
      "no_gradient \"gradients of arrays of gradients are not defined\"; "
      "doc \"the array of an array's gradients\"");
  p.op<nullptr, GradientsWithShape>(
      "TensorArrayGradWithShape(handle: resource[], flow_in: float[], shape_to_prepend: int32) -> "
      "(grad_handle: resource[], flow_out: float[]); source: string; " ARRAY
      "no_gradient \"gradients of arrays of gradients are not defined\"; "
      "doc \"the array of an array's gradients, which have more axes\"");
  p.op<WriteGradient, Write>(
      "TensorArrayWriteV3(handle: resource[], index: int32[], value: T, flow_in: float[]) -> (flow_out: float[]); T: type; " ARRAY
      "doc \"writes an element\"");
  p.op<ReadGradient, Read>("TensorArrayReadV3(handle: resource[], index: int32[], flow_in: float[]) -> (value: dtype); dtype: type; " ARRAY
                           "doc \"reads an element\"");
  p.op<GatherGradient, Gather>(
      "TensorArrayGatherV3(handle: resource[], indices: int32, flow_in: float[]) -> (value: dtype); dtype: type; "
      "element_shape: shape = unknown; " ARRAY "doc \"reads elements, along a new first axis\"");
  p.op<ScatterGradient, Scatter>(
      "TensorArrayScatterV3(handle: resource[], indices: int32, value: T, flow_in: float[]) -> (flow_out: float[]); T: type; " ARRAY
      "doc \"writes the rows of a tensor as elements\"");
  p.op<ConcatGradient, ConcatV3>(
      "TensorArrayConcatV3(handle: resource[], flow_in: float[]) -> (value: dtype, lengths: int64[_]); dtype: type; "
      "element_shape_except0: shape = unknown; " ARRAY "doc \"reads all elements, joined along their first axis\"");
  p.op<SplitGradient, Split>(
      "TensorArraySplitV3(handle: resource[], value: T, lengths: int64, flow_in: float[]) -> (flow_out: float[]); T: type; " ARRAY
      "doc \"writes the pieces of a tensor as elements\"");
  p.op("TensorArraySizeV3(handle: resource[], flow_in: float[]) -> (size: int32[]); " ARRAY
       "no_gradient \"a number of elements has no derivative\"; doc \"how many elements the array has\"");
  p.op("TensorArrayCloseV3(handle: resource[]) -> (); " ARRAY
       "no_gradient \"it has no outputs\"; doc \"lets all elements of the array go\"");
#undef ARRAY
}

}  // namespace thalweg::ops
