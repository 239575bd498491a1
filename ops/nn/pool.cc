// MaxPool and AvgPool with their backward ops: the largest element, or the mean, of each window.
// Windows cover height and width only. Padding counts in neither the maximum nor the mean. The V2
// forms take ksize and strides as inputs.
#include <algorithm>

#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

Dims PoolShape(const tw::Shape& s, const MaybeDims& image, const Dims& ksize, const Dims& strides) {
  const Windows windows(s, &strides);
  const ImageAxes& axes = windows.axes();
  const std::string is = "'ksize' is " + Text(ksize);
  if (ksize.size() != 4) Fail(is + "; it needs four entries, one per axis");
  if (ksize[axes.batch] != 1 || ksize[axes.channels] != 1)
    Fail(is + "; windows over batch or channels are not offered: those entries must be 1");
  const Dims paddings = s.s("padding") == "EXPLICIT" ? s.ints("explicit_paddings") : Dims(8, 0);
  Dims out = image.value_or(Dims(4, -1));
  for (size_t k = 0; k < 2; ++k) {
    const size_t axis = axes.space(k);
    if (ksize[axis] < 1) Fail(is + "; every entry must be at least 1");
    if (std::max(paddings[2 * axis], paddings[2 * axis + 1]) >= ksize[axis])
      Fail("'explicit_paddings' is " + Text(paddings) + " and " + is + "; padding must be less than the window");
    out[axis] = windows.OutSize(s, k, out[axis], ksize[axis]);
  }
  return out;
}

Dims PoolShape(const tw::Shape& s, const MaybeDims& image) { return PoolShape(s, image, s.ints("ksize"), s.ints("strides")); }

// Reads ksize and strides from inputs i and i + 1. If either value is unknown, only the sizes of
// batch and channels are known.
Dims PoolShapeV2(const tw::Shape& s, const MaybeDims& image, uint32_t i) {
  WantVector(s, i, "ksize");
  WantVector(s, i + 1, "strides");
  Dims ksize, strides;
  const bool known = s.value(i, &ksize), both = s.value(i + 1, &strides) && known;
  if (both) return PoolShape(s, image, ksize, strides);
  const Dims ones(4, 1);
  const ImageAxes axes = Windows(s, &ones).axes();
  Dims out = image.value_or(Dims(4, -1));
  for (size_t k = 0; k < 2; ++k) out[axes.space(k)] = -1;
  return out;
}

const char kFits[] = "the shape of the gradient and that of the pooled image";

void PoolRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "the image");
  s.out(0, PoolShape(s, In(s, 0)));
}

void PoolRuleV2(const tw::Shape& s) {
  WantRank(s, 0, 4, "the image");
  s.out(0, PoolShapeV2(s, In(s, 0), 1));
}

template <bool kV2>
Dims Pooled(const tw::Shape& s, const MaybeDims& image) {
  return kV2 ? PoolShapeV2(s, image, 3) : PoolShape(s, image);
}

template <bool kV2>
void MaxGradRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "orig_input");
  const MaybeDims pooled = Pooled<kV2>(s, In(s, 0));
  Merge(s, In(s, 1), pooled, "the shape of 'orig_output' and that of the pooled image");
  Merge(s, In(s, 2), pooled, kFits);
  s.out(0, In(s, 0).value_or(Dims(4, -1)));
}

template <bool kV2>
void MaxGradGradRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "orig_input");
  const MaybeDims image = Merge(s, In(s, 0), In(s, 2), "the shapes of 'orig_input' and 'grad'");
  Set(s, 0, Merge(s, In(s, 1), Pooled<kV2>(s, image), "the shape of 'orig_output' and that of the pooled image"));
}

void AvgGradRule(const tw::Shape& s) {
  WantRank(s, 1, 4, "grad");
  const MaybeDims image = ShapeValue(s, 0, "orig_input_shape");
  if (image && image->size() != 4) Fail("'orig_input_shape' has " + std::to_string(image->size()) + " entries; an image has four sizes");
  Merge(s, In(s, 1), PoolShape(s, image), kFits);
  s.out(0, image.value_or(Dims(4, -1)));
}

// has_explicit: MaxPool and MaxPoolGrad have explicit paddings; the other ops do not.
tw_edge Emit(const tw::Grad& g, const char* op, bool has_explicit, const std::vector<tw_edge>& in) {
  const WindowAttrs w(g);
  if (has_explicit)
    return g.op(op, in,
                {{"ksize", w.ksize},
                 {"strides", w.strides},
                 {"padding", w.padding},
                 {"explicit_paddings", w.explicit_paddings},
                 {"data_format", w.data_format}});
  return g.op(op, in, {{"ksize", w.ksize}, {"strides", w.strides}, {"padding", w.padding}, {"data_format", w.data_format}});
}

void MaxGradient(const tw::Grad& g) { g.dx(0, Emit(g, "MaxPoolGrad", true, {g.x(0), g.y(), g.dy()})); }

// The position of the maximum does not depend on the values, so only the incoming gradient has a
// derivative.
void MaxGradGradient(const tw::Grad& g) {
  if (g.s("padding") == "EXPLICIT")
    throw tw::Error{TW_UNIMPLEMENTED, "second derivatives of MaxPool with padding EXPLICIT are not offered; pad first and pool with VALID"};
  g.dx(2, Emit(g, "MaxPoolGradGrad", false, {g.x(0), g.x(1), g.dy()}));
}
void MaxGradGradGradient(const tw::Grad& g) { g.dx(2, Emit(g, "MaxPoolGrad", true, {g.x(0), g.x(1), g.dy()})); }

tw_edge EmitV2(const tw::Grad& g, const char* op, const std::vector<tw_edge>& in) {
  return g.op(op, in, {{"padding", g.s("padding")}, {"data_format", g.s("data_format")}});
}
void MaxGradientV2(const tw::Grad& g) { g.dx(0, EmitV2(g, "MaxPoolGradV2", {g.x(0), g.y(), g.dy(), g.x(1), g.x(2)})); }
void MaxGradGradientV2(const tw::Grad& g) { g.dx(2, EmitV2(g, "MaxPoolGradGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)})); }
void MaxGradGradGradientV2(const tw::Grad& g) { g.dx(2, EmitV2(g, "MaxPoolGradV2", {g.x(0), g.x(1), g.dy(), g.x(3), g.x(4)})); }

void AvgGradient(const tw::Grad& g) { g.dx(0, Emit(g, "AvgPoolGrad", false, {g.shape(0), g.dy()})); }
void AvgGradGradient(const tw::Grad& g) { g.dx(1, Emit(g, "AvgPool", false, {g.dy()})); }

// Attributes that follow the order of axes, listed in `?axes` after the arguments.
#define AXES " data_format ksize strides"
#define SIZES "ksize: list(int) >= 4; strides: list(int) >= 4; "
#define EXPLICIT "padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; "
#define IMPLICIT "padding: {\"SAME\", \"VALID\"}; "
#define FORMAT "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; "
#define MAX_TYPES "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; "
#define ANY_FORMAT "data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"; "

}  // namespace

void register_pool(tw::Plugin& p) {
  p.op<MaxGradient, PoolRule>("MaxPool(input: T) -> (output: T); " MAX_TYPES SIZES EXPLICIT ANY_FORMAT "?axes input output" AXES
                              " explicit_paddings; ?data input; doc \"the largest element of each window\"");
  p.op<MaxGradientV2, PoolRuleV2>("MaxPoolV2(input: T, ksize: int32, strides: int32) -> (output: T); " MAX_TYPES IMPLICIT ANY_FORMAT
                                  "?axes input ksize strides output data_format; doc \"the largest element of each window\"");
  p.op<MaxGradGradient, MaxGradRule<false>>(
      "MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> (output: T); " SIZES EXPLICIT FORMAT "T: " OPS_REALS
      " = float; ?axes orig_input orig_output grad output" AXES
      " explicit_paddings; doc \"gradient of MaxPool: goes to the first largest element of each window\"");
  p.op<MaxGradGradGradient, MaxGradGradRule<false>>(
      "MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> (output: T); " SIZES IMPLICIT FORMAT "T: " OPS_REALS
      "; ?axes orig_input orig_output grad output" AXES "; doc \"gradient of MaxPoolGrad: picks the element that won each window\"");
  p.op<MaxGradGradientV2, MaxGradRule<true>>(
      "MaxPoolGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> (output: T); " IMPLICIT FORMAT "T: " OPS_REALS
      " = float; ?axes orig_input orig_output grad ksize strides output data_format; doc \"gradient of MaxPoolV2: goes to the first "
      "largest element of each window\"");
  p.op<MaxGradGradGradientV2, MaxGradGradRule<true>>(
      "MaxPoolGradGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> (output: T); " IMPLICIT FORMAT
      "T: " OPS_REALS
      "; ?axes orig_input orig_output grad ksize strides output data_format; doc \"gradient of MaxPoolGradV2: picks the element that won "
      "each window\"");
  p.op<AvgGradient, PoolRule>("AvgPool(value: T) -> (output: T); " SIZES IMPLICIT FORMAT "T: " OPS_FLOATS "; ?axes value output" AXES
                              "; ?data value; doc \"the mean of each window, padding left out\"");
  p.op<AvgGradGradient, AvgGradRule>("AvgPoolGrad(orig_input_shape: int32, grad: T) -> (output: T); " SIZES IMPLICIT FORMAT "T: " OPS_FLOATS
                                     "; ?axes orig_input_shape grad output" AXES "; doc \"gradient of AvgPool\"");
}

}  // namespace thalweg::ops
