// SpaceToDepth turns square blocks of an image into channels of one pixel; DepthToSpace does the
// reverse.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The positions of the axes. NCHW_VECT_C has the channels in fours: [N, C / 4, H, W, 4].
struct Axes {
  size_t height, width, channels;
  int32_t rank;
};
Axes AxesOf(std::string_view format) { return format == "NHWC" ? Axes{1, 2, 3, 4} : Axes{2, 3, 1, format == "NCHW" ? 4 : 5}; }

// Returns the checked shape of the input. All sizes are unknown if the rank is.
Dims Image(const tw::Shape& s, const Axes& axes) {
  WantRank(s, 0, axes.rank, "input");
  Dims in = s.known(0) ? *In(s, 0) : Dims(static_cast<size_t>(axes.rank), -1);
  if (axes.rank == 5 && Known(in[4]) && in[4] != 4) Fail("'input' is " + Text(in) + "; in NCHW_VECT_C its last axis has size 4");
  return in;
}

[[noreturn]] void Indivisible(const Dims& in, const char* what, int64_t by) {
  Fail("the " + std::string(what) + " of 'input', which is " + Text(in) + ", does not divide into " + tw::text(by));
}

void ToDepthRule(const tw::Shape& s) {
  const Axes axes = AxesOf(s.s("data_format"));
  const int64_t block = s.i("block_size");
  const Dims in = Image(s, axes);
  Dims out = in;
  for (size_t k : {axes.height, axes.width}) {
    if (Known(in[k]) && in[k] % block != 0) Indivisible(in, k == axes.height ? "height" : "width", block);
    out[k] = s.calc('/', in[k], block);
  }
  out[axes.channels] = s.calc('*', out[axes.channels], s.calc('*', block, block));
  s.out(0, out);
}

void ToSpaceRule(const tw::Shape& s) {
  const Axes axes = AxesOf(s.s("data_format"));
  const int64_t block = s.i("block_size"), area = s.calc('*', block, block);
  Dims out = Image(s, axes);
  int64_t& channels = out[axes.channels];
  if (Known(channels) && channels % area != 0) Indivisible(out, "number of channels", area);
  channels = s.calc('/', channels, area);
  for (size_t k : {axes.height, axes.width}) out[k] = s.calc('*', out[k], block);
  s.out(0, out);
}

// Each op is the gradient of the other.
void Backward(const tw::Grad& g, const char* op) {
  g.dx(0, g.op(op, {g.dy()}, {{"block_size", g.i("block_size")}, {"data_format", g.s("data_format")}}));
}
void ToDepthGradient(const tw::Grad& g) { Backward(g, "DepthToSpace"); }
void ToSpaceGradient(const tw::Grad& g) { Backward(g, "SpaceToDepth"); }

}  // namespace

#define BLOCKS "T: type; block_size: int >= 2; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"; "

void register_space_to_depth(tw::Plugin& p) {
  p.op<ToDepthGradient, ToDepthRule>(
      "SpaceToDepth(input: T) -> (output: T); " BLOCKS
      "?data input; doc \"blocks of block_size x block_size places become the channels of one, row by row\"");
  p.op<ToSpaceGradient, ToSpaceRule>(
      "DepthToSpace(input: T) -> (output: T); " BLOCKS
      "?data input; doc \"channels become blocks of block_size x block_size places, row by row: undoes SpaceToDepth\"");
}

}  // namespace thalweg::ops
