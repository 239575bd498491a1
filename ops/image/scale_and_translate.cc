// ScaleAndTranslate resizes and moves images, with kernels of several kinds; ScaleAndTranslateGrad is
// its backward op.
#include "ops/common/grad.h"
#include "ops/common/image.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void WantPair(const tw::Shape& s, uint32_t i, const char* name) {
  WantVector(s, i, name);
  if (s.known(i) && Known(s.dim(i, 0)) && s.dim(i, 0) != 2)
    Fail("'" + std::string(name) + "' has " + tw::text(s.dim(i, 0)) + " entries; it needs two, for height and width");
}

void Rule(const tw::Shape& s) {
  WantPair(s, 2, "scale");
  WantPair(s, 3, "translation");
  s.out(0, Resized(s, 0, 1));
}

void GradRule(const tw::Shape& s) {
  WantPair(s, 2, "scale");
  WantPair(s, 3, "translation");
  s.out(0, Original(s, 0, 1));
}

tw_edge Emit(const tw::Grad& g, const char* op, tw_edge a, tw_edge b) {
  return g.op(op, {a, b, g.x(2), g.x(3)}, {{"kernel_type", g.s("kernel_type")}, {"antialias", g.b("antialias")}});
}

// The backward op has one type. Scale and translation have no gradient.
void Gradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  if (IsFloatType(type)) g.dx(0, CastTo(g, Emit(g, "ScaleAndTranslateGrad", g.dy(), CastTo(g, g.x(0), TW_FLOAT)), type));
}
void GradGradient(const tw::Grad& g) { g.dx(0, Emit(g, "ScaleAndTranslate", g.dy(), HeightAndWidthOf(g, 0))); }

#define KERNEL "kernel_type: string = \"lanczos3\"; antialias: bool = true; "

}  // namespace

void register_scale_and_translate(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "ScaleAndTranslate(images: T, size: int32, scale: float, translation: float) -> (resized_images: float); T: {int8, "
      "uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; " KERNEL
      "?data images; doc \"images of another size, scaled and moved, each pixel from those around its place by a kernel, in "
      "float\"");
  p.op<GradGradient, GradRule>(
      "ScaleAndTranslateGrad(grads: T, original_image: T, scale: float, translation: float) -> (output: T); T: {float}; " KERNEL
      "shape_only original_image; doc \"gradient of ScaleAndTranslate; of original_image only the shape counts\"");
}

}  // namespace thalweg::ops
