// Shared parts of ops that make images [batch, height, width, channels] of another size.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

#define OPS_PIXELS "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; "

inline bool IsFloatType(uint32_t type) { return type == TW_HALF || type == TW_BFLOAT16 || type == TW_FLOAT || type == TW_DOUBLE; }

// Reads [height, width], both at least 1, from the size vector at input i.
inline Dims HeightAndWidth(const tw::Shape& s, uint32_t i, const char* name) {
  const MaybeDims size = ShapeValue(s, i, name);
  const std::string quoted = "'" + std::string(name) + "'";
  if (size && size->size() != 2) Fail(quoted + " has " + std::to_string(size->size()) + " entries; it needs height and width");
  const Dims out = size.value_or(Dims(2, -1));
  for (int64_t entry : out)
    if (entry == 0) Fail(quoted + " is " + Text(out) + "; both entries must be at least 1");
  return out;
}

// Returns the shape of the images at input i in the size at input `size`. Images without pixels are
// refused.
inline Dims Resized(const tw::Shape& s, uint32_t i, uint32_t size) {
  WantRank(s, i, 4, "images");
  const Dims in = In(s, i).value_or(Dims(4, -1)), out = HeightAndWidth(s, size, "size");
  if (in[1] == 0 || in[2] == 0) Fail("'images' is " + Text(in) + ", which has no pixels to make others from");
  return {in[0], out[0], out[1], in[3]};
}

// Returns the shape of the original images, input `image` of a backward op; grads: input `grads`.
inline Dims Original(const tw::Shape& s, uint32_t grads, uint32_t image) {
  WantRank(s, grads, 4, "grads");
  WantRank(s, image, 4, "original_image");
  const Dims dy = In(s, grads).value_or(Dims(4, -1)), in = In(s, image).value_or(Dims(4, -1));
  if (in[1] == 0 || in[2] == 0) Fail("'original_image' is " + Text(in) + ", which has no pixels");
  return {MergeSize(s, dy[0], in[0], "the numbers of images of 'grads' and 'original_image'"), in[1], in[2],
          MergeSize(s, dy[3], in[3], "the channels of 'grads' and 'original_image'")};
}

// Returns the height and width of input i in a gradient graph.
inline tw_edge HeightAndWidthOf(const tw::Grad& g, uint32_t i) {
  return g.op("StridedSlice", {g.shape(i), Ints(g, {1}), Ints(g, {3}), Ints(g, {1})});
}

}  // namespace thalweg::ops
