// ImageProjectiveTransformV2 and V3 turn, shift, scale and tilt images.
#include "ops/common/image.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRank(s, 0, 4, "images");
  WantRank(s, 1, 2, "transforms");
  const Dims in = In(s, 0).value_or(Dims(4, -1)), size = HeightAndWidth(s, 2, "output_shape");
  if (s.known(1)) {
    if (Known(s.dim(1, 1)) && s.dim(1, 1) != 8)
      Fail("'transforms' is " + tw::text(s.in(1)) + "; a transform has eight numbers: the rows of a 3 x 3 matrix without its last 1");
    if (Known(s.dim(1, 0)) && Known(in[0]) && s.dim(1, 0) != 1 && s.dim(1, 0) != in[0])
      Fail("'transforms' is " + tw::text(s.in(1)) + "; there must be one for all images, or one for each of the " + tw::text(in[0]));
  }
  if (s.c->n_in > 3) WantScalar(s, 3, "fill_value");
  s.out(0, Dims{in[0], size[0], size[1], in[3]});
}

#define IMAGES "images: dtype, transforms: float, output_shape: int32"
#define ATTRS                                                                                                                           \
  "dtype: {uint8, int32, int64, half, bfloat16, float, double}; interpolation: {\"NEAREST\", \"BILINEAR\"}; fill_mode: {\"CONSTANT\", " \
  "\"REFLECT\", \"WRAP\", \"NEAREST\"} = \"CONSTANT\"; ?data images; no_gradient \"the backward op is not offered\"; "

}  // namespace

void register_projective_transform(tw::Plugin& p) {
  p.op<nullptr, Rule>("ImageProjectiveTransformV2(" IMAGES ") -> (transformed_images: dtype); " ATTRS
                      "doc \"images seen through projective transforms; pixels from outside are 0, or as fill_mode says\"");
  p.op<nullptr, Rule>("ImageProjectiveTransformV3(" IMAGES ", fill_value: float) -> (transformed_images: dtype); " ATTRS
                      "doc \"images seen through projective transforms; pixels from outside have a value, or are as fill_mode says\"");
}

}  // namespace thalweg::ops
