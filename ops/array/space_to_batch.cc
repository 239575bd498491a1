// SpaceToBatchND moves the places of blocks from the axes after the batch into the batch, after
// padding; BatchToSpaceND does the reverse and crops. SpaceToBatch and BatchToSpace are the same for
// images and square blocks.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The sizes of a block and the rows of `paddings` or `crops`, as far as they are known.
struct Blocks {
  int64_t axes = -1;                  // the number of axes that a block has
  bool sized = false, edged = false;  // whether sizes and edges are known
  Dims sizes, edges;                  // edges: before and after each axis
  int64_t before(size_t k) const { return edges[2 * k]; }
  int64_t after(size_t k) const { return edges[2 * k + 1]; }
};

void ReadEdges(const tw::Shape& s, uint32_t i, const char* name, Blocks* b) {
  WantRank(s, i, 2, name);
  const std::string quoted = "'" + std::string(name) + "'";
  if (s.known(i)) {
    if (Known(s.dim(i, 1)) && s.dim(i, 1) != 2)
      Fail(quoted + " must have two columns, before and after, but has shape " + tw::text(s.in(i)));
    b->axes = MergeSize(s, b->axes, s.dim(i, 0), "the number of axes of a block and the rows of " + quoted);
  }
  b->edged = s.value(i, &b->edges);
  for (int64_t edge : b->edges)
    if (edge < 0) Fail(quoted + " is " + Text(b->edges) + "; no entry may be negative");
}

Blocks ReadBlocks(const tw::Shape& s, const char* edges) {
  Blocks b;
  WantVector(s, 1, "block_shape");
  if (s.known(1)) b.axes = s.dim(1, 0);
  b.sized = s.value(1, &b.sizes);
  for (int64_t size : b.sizes)
    if (size < 1) Fail("'block_shape' is " + Text(b.sizes) + "; every entry must be at least 1");
  ReadEdges(s, 2, edges, &b);
  if (Known(b.axes)) WantRankAtLeast(s, 0, static_cast<int32_t>(b.axes) + 1, "input");
  return b;
}

Blocks ReadSquares(const tw::Shape& s, const char* edges) {
  Blocks b;
  b.axes = 2;
  b.sized = true;
  b.sizes = Dims(2, s.i("block_size"));
  ReadEdges(s, 1, edges, &b);
  WantRank(s, 0, 4, "input");
  return b;
}

std::string OnAxis(size_t k, int64_t size) { return " on axis " + std::to_string(k) + ", of size " + tw::text(size); }

void ToBatch(const tw::Shape& s, const Blocks& b) {
  const MaybeDims in = In(s, 0);
  if (!in || !Known(b.axes)) return;
  Dims out = *in;
  out[0] = b.sized ? s.calc('*', out[0], Product(s, b.sizes)) : -1;
  for (size_t k = 0; k < static_cast<size_t>(b.axes); ++k) {
    int64_t& size = out[k + 1];
    size = b.edged ? s.calc('+', size, s.calc('+', b.before(k), b.after(k))) : -1;
    if (b.sized && Known(size) && size % b.sizes[k] != 0)
      Fail("'block_shape' is " + Text(b.sizes) + "; it does not divide the padded input" + OnAxis(k + 1, size));
    size = b.sized ? s.calc('/', size, b.sizes[k]) : -1;
  }
  s.out(0, out);
}

void ToSpace(const tw::Shape& s, const Blocks& b) {
  const MaybeDims in = In(s, 0);
  if (!in || !Known(b.axes)) return;
  Dims out = *in;
  const int64_t places = b.sized ? Product(s, b.sizes) : -1;
  if (Known(places) && Known(out[0]) && out[0] % places != 0)
    Fail("'input' is " + Text(in) + "; its batch does not divide by the " + tw::text(places) + " places of a block");
  out[0] = b.sized ? s.calc('/', out[0], places) : -1;
  for (size_t k = 0; k < static_cast<size_t>(b.axes); ++k) {
    int64_t& size = out[k + 1];
    size = b.sized ? s.calc('*', size, b.sizes[k]) : -1;
    const int64_t cut = b.edged ? s.calc('+', b.before(k), b.after(k)) : -1;
    if (Known(size) && Known(cut) && cut > size)
      Fail("'crops' cuts " + tw::text(b.before(k)) + " and " + tw::text(b.after(k)) + " elements" + OnAxis(k + 1, size) +
           ", of the result");
    size = s.calc('-', size, cut);
  }
  s.out(0, out);
}

void ToBatchRule(const tw::Shape& s) { ToBatch(s, ReadBlocks(s, "paddings")); }
void ToSpaceRule(const tw::Shape& s) { ToSpace(s, ReadBlocks(s, "crops")); }
void SquaresToBatchRule(const tw::Shape& s) { ToBatch(s, ReadSquares(s, "paddings")); }
void SquaresToSpaceRule(const tw::Shape& s) { ToSpace(s, ReadSquares(s, "crops")); }

// Each op is the gradient of the other: what was padded is cropped.
void ToBatchGradient(const tw::Grad& g) { g.dx(0, g.op("BatchToSpaceND", {g.dy(), g.x(1), g.x(2)})); }
void ToSpaceGradient(const tw::Grad& g) { g.dx(0, g.op("SpaceToBatchND", {g.dy(), g.x(1), g.x(2)})); }
void SquaresToBatchGradient(const tw::Grad& g) { g.dx(0, g.op("BatchToSpace", {g.dy(), g.x(1)}, {{"block_size", g.i("block_size")}})); }
void SquaresToSpaceGradient(const tw::Grad& g) { g.dx(0, g.op("SpaceToBatch", {g.dy(), g.x(1)}, {{"block_size", g.i("block_size")}})); }

}  // namespace

void register_space_to_batch(tw::Plugin& p) {
  p.op<ToBatchGradient, ToBatchRule>(
      "SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> (output: T); T: type; Tblock_shape: " OPS_INDEX
      " = int32; Tpaddings: " OPS_INDEX
      " = int32; ?data input; doc \"the places of blocks of the axes after the first, which are padded with zeros, become entries of the "
      "first axis\"");
  p.op<ToSpaceGradient, ToSpaceRule>(
      "BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> (output: T); T: type; Tblock_shape: " OPS_INDEX
      " = int32; Tcrops: " OPS_INDEX
      " = int32; ?data input; doc \"entries of the first axis become places of blocks of the axes after it, which are cropped: undoes "
      "SpaceToBatchND\"");
  p.op<SquaresToBatchGradient, SquaresToBatchRule>(
      "SpaceToBatch(input: T, paddings: Tpaddings) -> (output: T); T: type; Tpaddings: " OPS_INDEX
      " = int32; block_size: int >= 2; ?data input; doc \"SpaceToBatchND for square blocks "
      "of images\"");
  p.op<SquaresToSpaceGradient, SquaresToSpaceRule>(
      "BatchToSpace(input: T, crops: Tidx) -> (output: T); T: type; block_size: int >= 2; Tidx: " OPS_INDEX
      " = int32; ?data input; doc \"BatchToSpaceND for square blocks of images\"");
}

}  // namespace thalweg::ops
