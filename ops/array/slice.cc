// Slice takes a block of a tensor, given by its begin and size.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Returns the size of the block along one axis. size: -1 means up to the end.
int64_t BlockSize(int64_t have, int64_t begin, int64_t size, size_t axis) {
  const std::string where = " on axis " + std::to_string(axis);
  if (begin < 0) Fail("'begin' is " + tw::text(begin) + where + "; it must not be negative");
  if (size < -1) Fail("'size' is " + tw::text(size) + where + "; it must be -1 (up to the end) or not negative");
  if (!Known(have)) return size;
  // The comparison is written so that it cannot overflow.
  if (begin > have || size > have - begin)
    Fail("the block begins at " + tw::text(begin) + " with size " + tw::text(size) + where + ", but the input has size " + tw::text(have) +
         " there");
  return size == -1 ? have - begin : size;
}

void Rule(const tw::Shape& s) {
  WantVector(s, 1, "begin");
  WantVector(s, 2, "size");
  const MaybeDims in = In(s, 0), begin_shape = In(s, 1), size_shape = In(s, 2);
  const MaybeDims spec = Merge(s, begin_shape, size_shape, "the lengths of 'begin' and 'size'");
  const int64_t n = spec ? (*spec)[0] : -1;
  if (in && Known(n) && n != s.rank(0))
    Fail("'begin' and 'size' have " + tw::text(n) + " entries but the input is " + Text(in) + "; give one for each axis");
  if (!in && !Known(n)) return;
  Dims out = in ? *in : Dims(static_cast<size_t>(n), -1), begin, size;
  const bool has_begin = s.value(1, &begin), has_size = s.value(2, &size);
  for (size_t k = 0; k < out.size(); ++k) {
    if (has_size && (has_begin || size[k] != -1))
      out[k] = BlockSize(out[k], has_begin ? begin[k] : 0, size[k], k);
    else
      out[k] = -1;
  }
  s.out(0, out);
}

// The gradient is padded with zeros where the slice cut the input off.
void Gradient(const tw::Grad& g) {
  const tw_edge before = CastTo(g, g.x(1), TW_INT32);
  const tw_edge after = g.op("Sub", {g.op("Sub", {g.shape(0), ShapeOf(g, g.dy())}), before});
  g.dx(0, g.op("Pad", {g.dy(), g.op("Pack", {before, after}, {{"axis", 1}})}));
}

}  // namespace

void register_slice(tw::Plugin& p) {
  p.op<Gradient, Rule>("Slice(input: T, begin: Index, size: Index) -> (output: T); T: type; Index: " OPS_INDEX
                       "; ?axes input begin size output; ?data input; doc \"a block of a tensor; size -1 goes up to the end\"");
}

}  // namespace thalweg::ops
