// MaxPool3D and AvgPool3D with their backward ops: poolings of volumes. Windows cover depth, height
// and width only. Padding counts in neither the maximum nor the mean.
#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

MaybeDims Volumes(const tw::Shape& s, uint32_t i, const char* name) {
  WantRank(s, i, 5, name);
  return In(s, i);
}

Dims Pooled(const tw::Shape& s, const MaybeDims& volumes) {
  const Windows windows(s);
  const ImageAxes& axes = windows.axes();
  const Dims ksize = s.ints("ksize");
  const std::string is = "'ksize' is " + Text(ksize);
  if (ksize.size() != 5) Fail(is + "; it needs five entries, one per axis");
  if (ksize[axes.batch] != 1 || ksize[axes.channels] != 1) Fail(is + "; the entries for batch and channels must be 1");
  Dims out = volumes.value_or(Dims(5, -1));
  for (size_t k = 0; k < axes.spaces; ++k) {
    const size_t axis = axes.space(k);
    if (ksize[axis] < 1 || ksize[axis] > INT32_MAX) Fail(is + "; every entry must be at least 1 and fit in 31 bits");
    out[axis] = windows.OutSize(s, k, out[axis], ksize[axis]);
  }
  return out;
}

const char kPooled[] = "the shape of 'orig_output' and that of the pooled volumes";
const char kFits[] = "the shape of the gradient and that of the pooled volumes";

void PoolRule(const tw::Shape& s) { s.out(0, Pooled(s, Volumes(s, 0, "input"))); }

void MaxGradRule(const tw::Shape& s) {
  const MaybeDims volumes = Volumes(s, 0, "orig_input"), pooled = Pooled(s, volumes);
  Merge(s, In(s, 1), pooled, kPooled);
  Merge(s, In(s, 2), pooled, kFits);
  s.out(0, volumes.value_or(Dims(5, -1)));
}

void MaxGradGradRule(const tw::Shape& s) {
  WantRank(s, 0, 5, "orig_input");
  const MaybeDims volumes = Merge(s, In(s, 0), In(s, 2), "the shapes of 'orig_input' and 'grad'");
  Set(s, 0, Merge(s, In(s, 1), Pooled(s, volumes), kPooled));
}

void AvgGradRule(const tw::Shape& s) {
  WantRank(s, 1, 5, "grad");
  const MaybeDims volumes = ShapeValue(s, 0, "orig_input_shape");
  if (volumes && volumes->size() != 5)
    Fail("'orig_input_shape' has " + std::to_string(volumes->size()) + " entries; volumes have five sizes");
  Merge(s, In(s, 1), Pooled(s, volumes), kFits);
  s.out(0, volumes.value_or(Dims(5, -1)));
}

tw_edge Emit(const tw::Grad& g, const char* op, const std::vector<tw_edge>& in) {
  const WindowAttrs w(g);
  return g.op(op, in, {{"ksize", w.ksize}, {"strides", w.strides}, {"padding", w.padding}, {"data_format", w.data_format}});
}

void MaxGradient(const tw::Grad& g) { g.dx(0, Emit(g, "MaxPool3DGrad", {g.x(0), g.y(), g.dy()})); }
// The places of the largest elements do not depend on the values. MaxPool3DGradGrad has one type.
void MaxGradGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(2);
  g.dx(2, Emit(g, "MaxPool3DGradGrad", {CastTo(g, g.x(0), type), CastTo(g, g.x(1), type), g.dy()}));
}
void MaxGradGradGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  if (type == TW_HALF || type == TW_BFLOAT16 || type == TW_FLOAT) return g.dx(2, Emit(g, "MaxPool3DGrad", {g.x(0), g.x(1), g.dy()}));
  throw tw::Error{
      TW_UNIMPLEMENTED,
      "the gradient of MaxPool3DGradGrad, MaxPool3DGrad, is offered for half, bfloat16 and float only, not for " + TypeName(type)};
}
void AvgGradient(const tw::Grad& g) { g.dx(0, Emit(g, "AvgPool3DGrad", {g.shape(0), g.dy()})); }
void AvgGradGradient(const tw::Grad& g) { g.dx(1, Emit(g, "AvgPool3D", {g.dy()})); }

#define AXES " data_format ksize strides; "
#define WINDOWS                                                                                                            \
  "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; data_format: {\"NDHWC\", \"NCDHW\"} = " \
  "\"NDHWC\"; "

}  // namespace

void register_pool3d(tw::Plugin& p) {
  p.op<MaxGradient, PoolRule>("MaxPool3D(input: T) -> (output: T); " WINDOWS "T: {half, bfloat16, float}; ?axes input output" AXES
                              "?data input; doc \"the largest element of each window\"");
  p.op<MaxGradGradient, MaxGradRule>("MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T) -> (output: T); " WINDOWS
                                     "T: {half, bfloat16, float} = float; TInput: {half, bfloat16, float} = float; ?axes orig_input "
                                     "orig_output grad output" AXES
                                     "doc \"gradient of MaxPool3D: goes to the first largest element of each window\"");
  p.op<MaxGradGradGradient, MaxGradGradRule>("MaxPool3DGradGrad(orig_input: T, orig_output: T, grad: T) -> (output: T); " WINDOWS
                                             "T: " OPS_REALS "; ?axes orig_input orig_output grad output" AXES
                                             "doc \"gradient of MaxPool3DGrad: picks the element that won each window\"");
  p.op<AvgGradient, PoolRule>("AvgPool3D(input: T) -> (output: T); " WINDOWS "T: " OPS_FLOATS "; ?axes input output" AXES
                              "?data input; doc \"the mean of each window, padding left out\"");
  p.op<AvgGradGradient, AvgGradRule>("AvgPool3DGrad(orig_input_shape: int32, grad: T) -> (output: T); " WINDOWS "T: " OPS_FLOATS
                                     "; ?axes orig_input_shape grad output" AXES "doc \"gradient of AvgPool3D\"");
}

}  // namespace thalweg::ops
