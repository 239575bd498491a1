// ResizeArea and ResizeBicubic with its backward op.
#include "ops/common/grad.h"
#include "ops/common/image.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void CheckAlignment(const tw::Shape& s) {
  if (s.find("half_pixel_centers") && s.b("align_corners") && s.b("half_pixel_centers"))
    Fail("'align_corners' and 'half_pixel_centers' are both true; they exclude each other");
}

void Rule(const tw::Shape& s) {
  CheckAlignment(s);
  s.out(0, Resized(s, 0, 1));
}

void BicubicGradRule(const tw::Shape& s) {
  CheckAlignment(s);
  s.out(0, Original(s, 0, 1));
}

tw_edge Emit(const tw::Grad& g, const char* op, tw_edge a, tw_edge b) {
  return g.op(op, {a, b}, {{"align_corners", g.b("align_corners")}, {"half_pixel_centers", g.b("half_pixel_centers")}});
}

// The backward op has two types.
void BicubicGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  if (type == TW_FLOAT || type == TW_DOUBLE) return g.dx(0, Emit(g, "ResizeBicubicGrad", g.dy(), g.x(0)));
  if (IsFloatType(type)) g.dx(0, CastTo(g, Emit(g, "ResizeBicubicGrad", g.dy(), CastTo(g, g.x(0), TW_FLOAT)), type));
}
void BicubicGradGradient(const tw::Grad& g) { g.dx(0, Emit(g, "ResizeBicubic", g.dy(), HeightAndWidthOf(g, 0))); }

}  // namespace

void register_resize_area(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "ResizeArea(images: T, size: int32) -> (resized_images: float); " OPS_PIXELS
      "align_corners: bool = false; ?data images; no_gradient \"it has no backward op; ScaleAndTranslate with a box has one\"; "
      "doc \"images of another size, each pixel the mean of the area that it covers, in float\"");
  p.op<BicubicGradient, Rule>(
      "ResizeBicubic(images: T, size: int32) -> (resized_images: float); " OPS_PIXELS
      "align_corners: bool = false; half_pixel_centers: bool = false; ?data images; doc \"images of another size, each "
      "pixel from the sixteen around its place by a cubic kernel, in float\"");
  p.op<BicubicGradGradient, BicubicGradRule>(
      "ResizeBicubicGrad(grads: float, original_image: T) -> (output: T); T: {float, double}; align_corners: bool = false; "
      "half_pixel_centers: bool = false; shape_only original_image; doc \"gradient of ResizeBicubic; of original_image only the shape "
      "counts\"");
}

}  // namespace thalweg::ops
