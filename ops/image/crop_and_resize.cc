// CropAndResize cuts boxes out of images and makes them one size; it has backward ops for images and
// boxes.
#include "ops/common/image.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks boxes [n, 4] at input i and their image numbers behind it. Returns n.
int64_t Boxes(const tw::Shape& s, uint32_t i) {
  WantRank(s, i, 2, "boxes");
  WantVector(s, i + 1, "box_ind");
  if (s.known(i) && Known(s.dim(i, 1)) && s.dim(i, 1) != 4)
    Fail("'boxes' is " + tw::text(s.in(i)) + "; a box has four coordinates: y, x of one corner, y, x of the opposite one");
  return MergeSize(s, s.known(i) ? s.dim(i, 0) : -1, s.known(i + 1) ? s.dim(i + 1, 0) : -1, "the numbers of boxes and of 'box_ind'");
}

Dims Images(const tw::Shape& s, uint32_t i, const char* name) {
  WantRank(s, i, 4, name);
  const Dims in = In(s, i).value_or(Dims(4, -1));
  if (in[1] == 0 || in[2] == 0) Fail("'" + std::string(name) + "' is " + Text(in) + ", which has no pixels");
  return in;
}

void Rule(const tw::Shape& s) {
  const Dims in = Images(s, 0, "image"), size = HeightAndWidth(s, 3, "crop_size");
  s.out(0, Dims{Boxes(s, 1), size[0], size[1], in[3]});
}

void ImageRule(const tw::Shape& s) {
  const Dims grads = Images(s, 0, "grads");
  MergeSize(s, grads[0], Boxes(s, 1), "the numbers of crops in 'grads' and of boxes");
  const MaybeDims size = ShapeValue(s, 3, "image_size");
  if (size && size->size() != 4) Fail("'image_size' has " + std::to_string(size->size()) + " entries; images have four sizes");
  Dims out = size.value_or(Dims(4, -1));
  if (out[1] == 0 || out[2] == 0) Fail("'image_size' is " + Text(out) + ", which has no pixels");
  out[3] = MergeSize(s, out[3], grads[3], "the channels of 'image_size' and of 'grads'");
  s.out(0, out);
}

void BoxesRule(const tw::Shape& s) {
  const Dims grads = Images(s, 0, "grads"), in = Images(s, 1, "image");
  MergeSize(s, grads[3], in[3], "the channels of 'grads' and of 'image'");
  s.out(0, Dims{MergeSize(s, grads[0], Boxes(s, 2), "the numbers of crops in 'grads' and of boxes"), 4});
}

// The derivative for the boxes exists for bilinear crops only; others are constant between jumps.
void Gradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  if (IsFloatType(type))
    g.dx(0, g.op("CropAndResizeGradImage", {g.dy(), g.x(1), g.x(2), g.shape(0)}, {tw::Attr::Type("T", type), {"method", g.s("method")}}));
  if (g.s("method") == "bilinear") g.dx(1, g.op("CropAndResizeGradBoxes", {g.dy(), g.x(0), g.x(1), g.x(2)}));
}

// The sum of (image gradients) * d is the sum of grads * (crops of d).
void ImageGradient(const tw::Grad& g) {
  g.dx(0, g.op("CropAndResize", {g.dy(), g.x(1), g.x(2), HeightAndWidthOf(g, 0)}, {{"method", g.s("method")}}));
  if (g.s("method") == "bilinear") g.dx(1, g.op("CropAndResizeGradBoxes", {g.x(0), g.dy(), g.x(1), g.x(2)}));
}

#define METHOD "method: {\"bilinear\", \"nearest\"} = \"bilinear\"; "

}  // namespace

void register_crop_and_resize(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32) -> (crops: float); T: {uint8, uint16, int8, "
      "int16, int32, int64, half, float, double}; " METHOD
      "extrapolation_value: float = 0.0; doc \"boxes of images, each made the same size, in float\"");
  p.op<ImageGradient, ImageRule>(
      "CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32, image_size: int32) -> (output: T); T: {float, half, "
      "double}; " METHOD "doc \"gradient of CropAndResize for the images\"");
  p.op<nullptr, BoxesRule>(
      "CropAndResizeGradBoxes(grads: float, image: T, boxes: float, box_ind: int32) -> (output: float); T: {uint8, uint16, int8, int16, "
      "int32, "
      "int64, half, float, double}; method: {\"bilinear\"} = \"bilinear\"; no_gradient \"second derivatives for boxes are not offered\"; "
      "doc "
      "\"gradient of CropAndResize for the boxes\"");
}

}  // namespace thalweg::ops
