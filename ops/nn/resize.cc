// ResizeBilinear and ResizeNearestNeighbor with their backward ops: they resize images [batch,
// height, width, channels]. With align_corners, the centres of the corner pixels keep their places.
// With half_pixel_centers, pixels are areas, not points.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void CheckAlignment(const tw::Shape& s) {
  if (s.b("align_corners") && s.b("half_pixel_centers"))
    Fail("'align_corners' and 'half_pixel_centers' are both true; they exclude each other");
}

// Reads [height, width] from the size input i. Both must be at least `least`.
Dims HeightAndWidth(const tw::Shape& s, uint32_t i, int64_t least) {
  const MaybeDims size = ShapeValue(s, i, "size");
  if (size && size->size() != 2) Fail("'size' has " + std::to_string(size->size()) + " entries; it needs height and width");
  const Dims out = size.value_or(Dims(2, -1));
  for (int64_t entry : out)
    if (Known(entry) && entry < least) Fail("'size' is " + Text(out) + "; both entries must be at least " + std::to_string(least));
  return out;
}

Dims Resized(const MaybeDims& images, const Dims& size) {
  const Dims in = images.value_or(Dims(4, -1));
  return {in[0], size[0], size[1], in[3]};
}

void Rule(const tw::Shape& s) {
  CheckAlignment(s);
  WantRank(s, 0, 4, "images");
  const MaybeDims in = In(s, 0);
  const Dims size = HeightAndWidth(s, 1, 1);
  if (in && ((*in)[1] == 0 || (*in)[2] == 0)) Fail("'images' is " + Text(in) + ", which has no pixels to make others from");
  s.out(0, Resized(in, size));
}

void BilinearGradRule(const tw::Shape& s) {
  CheckAlignment(s);
  WantRank(s, 0, 4, "grads");
  WantRank(s, 1, 4, "original_image");
  const Dims grads = In(s, 0).value_or(Dims(4, -1)), image = In(s, 1).value_or(Dims(4, -1));
  if (image[1] == 0 || image[2] == 0) Fail("'original_image' is " + Text(image) + ", which has no pixels");
  s.out(0, Dims{MergeSize(s, grads[0], image[0], "the numbers of images of 'grads' and 'original_image'"), image[1], image[2],
                MergeSize(s, grads[3], image[3], "the channels of 'grads' and 'original_image'")});
}

void NearestGradRule(const tw::Shape& s) {
  CheckAlignment(s);
  WantRank(s, 0, 4, "grads");
  s.out(0, Resized(In(s, 0), HeightAndWidth(s, 1, 1)));
}

bool IsFloat(uint32_t type) { return type == TW_HALF || type == TW_BFLOAT16 || type == TW_FLOAT || type == TW_DOUBLE; }

tw_edge Emit(const tw::Grad& g, const char* op, tw_edge a, tw_edge b) {
  return g.op(op, {a, b}, {{"align_corners", g.b("align_corners")}, {"half_pixel_centers", g.b("half_pixel_centers")}});
}
// The height and width of input i.
tw_edge SizeOf(const tw::Grad& g, uint32_t i) { return g.op("StridedSlice", {g.shape(i), Ints(g, {1}), Ints(g, {3}), Ints(g, {1})}); }

// All four ops are linear, so each is the gradient of its backward op.
void BilinearGradient(const tw::Grad& g) {
  if (IsFloat(g.type_in(0))) g.dx(0, Emit(g, "ResizeBilinearGrad", g.dy(), g.x(0)));
}
void BilinearGradGradient(const tw::Grad& g) { g.dx(0, Emit(g, "ResizeBilinear", g.dy(), SizeOf(g, 0))); }
void NearestGradient(const tw::Grad& g) {
  if (IsFloat(g.type_in(0))) g.dx(0, Emit(g, "ResizeNearestNeighborGrad", g.dy(), SizeOf(g, 0)));
}
void NearestGradGradient(const tw::Grad& g) {
  if (IsFloat(g.type_in(0))) g.dx(0, Emit(g, "ResizeNearestNeighbor", g.dy(), SizeOf(g, 0)));
}

#define ALIGNMENT "align_corners: bool = false; half_pixel_centers: bool = false; "
#define PIXELS "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; "

}  // namespace

void register_resize(tw::Plugin& p) {
  p.op<BilinearGradient, Rule>(
      "ResizeBilinear(images: T, size: int32) -> (resized_images: float); " PIXELS ALIGNMENT
      "?data images; doc \"images of another size, each pixel a weighted mean of the four around its place, in float\"");
  p.op<BilinearGradGradient, BilinearGradRule>(
      "ResizeBilinearGrad(grads: float, original_image: T) -> (output: T); T: {float, bfloat16, half, double}; " ALIGNMENT
      "shape_only original_image; doc \"gradient of ResizeBilinear; of original_image only the shape counts\"");
  p.op<NearestGradient, Rule>("ResizeNearestNeighbor(images: T, size: int32) -> (resized_images: T); " PIXELS ALIGNMENT
                              "doc \"images of another size, each pixel the one nearest to its place\"");
  p.op<NearestGradGradient, NearestGradRule>(
      "ResizeNearestNeighborGrad(grads: T, size: int32) -> (output: T); T: {uint8, int8, int32, half, float, double, bfloat16}; " ALIGNMENT
      "doc \"gradient of ResizeNearestNeighbor: each pixel of an image of that size gets the sum of those made from it\"");
}

}  // namespace thalweg::ops
