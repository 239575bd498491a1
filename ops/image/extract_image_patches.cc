// ExtractImagePatches makes the windows of images rows of channels.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Returns the entries of a list for height and width.
Dims HeightAndWidth(const tw::Shape& s, const char* name) {
  const Dims v = s.ints(name);
  const std::string is = "'" + std::string(name) + "' is " + Text(v);
  if (v.size() != 4) Fail(is + "; it needs four entries, one per axis");
  if (v[0] != 1 || v[3] != 1) Fail(is + "; the entries for batch and channels must be 1");
  for (int64_t entry : v)
    if (entry < 1 || entry > INT32_MAX) Fail(is + "; every entry must be at least 1 and fit in 31 bits");
  return Sub(v, 1, 3);
}

void Rule(const tw::Shape& s) {
  WantRank(s, 0, 4, "images");
  const Dims sizes = HeightAndWidth(s, "ksizes"), strides = HeightAndWidth(s, "strides"), rates = HeightAndWidth(s, "rates");
  Dims out = In(s, 0).value_or(Dims(4, -1));
  for (size_t k = 0; k < 2; ++k) {
    int64_t& size = out[k + 1];
    if (s.s("padding") == "SAME") {
      size = s.calc('/', s.calc('+', size, strides[k] - 1), strides[k]);
      continue;
    }
    const int64_t reach = (sizes[k] - 1) * rates[k] + 1;
    if (Known(size) && size < reach)
      Fail("a window reaches over " + tw::text(reach) + " elements of axis " + std::to_string(k + 1) + ", but 'images' is " +
           Text(In(s, 0)) + "; use a smaller window or padding SAME");
    size = s.calc('+', s.calc('/', s.calc('-', size, reach), strides[k]), 1);
  }
  out[3] = s.calc('*', out[3], s.calc('*', sizes[0], sizes[1]));
  s.out(0, out);
}

// The patches of an image of place numbers, counted from 1, tell where each number of a patch comes
// from; 0 is padding. The gradient adds the numbers by place.
void Gradient(const tw::Grad& g) {
  const tw_edge shape = g.shape(0), space = g.op("StridedSlice", {shape, Ints(g, {1}), Ints(g, {3}), Ints(g, {1})});
  const tw_edge end = g.op("AddV2", {g.op("Prod", {space, Int(g, 0)}), Int(g, 1)});
  const tw_edge image = g.op("Reshape", {g.op("Range", {Int(g, 1), end, Int(g, 1)}), Concat(g, {Ints(g, {1}), space, Ints(g, {1})})});
  const Dims ksizes = g.ints("ksizes"), strides = g.ints("strides"), rates = g.ints("rates");
  const tw_edge numbers =
      g.op("ExtractImagePatches", {image}, {{"ksizes", ksizes}, {"strides", strides}, {"rates", rates}, {"padding", g.s("padding")}});
  const tw_edge places = g.op("Reshape", {numbers, Ints(g, {-1})}), count = g.op("Reshape", {g.op("Size", {places}), Ints(g, {1})});
  const tw_edge batch = Head(g, shape, 1), channels = Tail(g, shape, -1);
  const tw_edge rows = g.op("Reshape", {g.dy(), Concat(g, {batch, count, channels})});
  const tw_edge sums = g.op("UnsortedSegmentSum", {g.op("Transpose", {rows, Ints(g, {1, 0, 2})}), places, end});
  const tw_edge kept = g.op("StridedSlice", {sums, Ints(g, {1}), Ints(g, {0}), Ints(g, {1})}, {{"end_mask", 1}});
  g.dx(0, g.op("Reshape", {g.op("Transpose", {kept, Ints(g, {1, 0, 2})}), shape}));
}

}  // namespace

void register_extract_image_patches(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "ExtractImagePatches(images: T) -> (patches: T); ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; T: "
      "{bfloat16, "
      "half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}; padding: {\"SAME\", "
      "\"VALID\"}; ?data images; doc \"the pixels of each window of an image, row by row, as the channels of one pixel\"");
}

}  // namespace thalweg::ops
