// BiasAdd adds one number per channel to all elements of the channel. Its backward op sums over
// them.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Channels are the last axis in NHWC and axis 1 in NCHW, at any rank; NCHW needs rank 3 or more.
int32_t LeastRank(const tw::Attrs& a) { return a.s("data_format") == "NCHW" ? 3 : 2; }
size_t ChannelAxis(const tw::Attrs& a, size_t rank) { return a.s("data_format") == "NCHW" ? 1 : rank - 1; }

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, LeastRank(s), "value");
  WantVector(s, 1, "bias");
  MaybeDims out = In(s, 0);
  if (out && s.known(1)) {
    int64_t& channels = (*out)[ChannelAxis(s, out->size())];
    const int64_t bias = s.dim(1, 0);
    if (Known(channels) && Known(bias) && channels != bias)
      Fail("'value' is " + Text(out) + " with " + tw::text(channels) + " channels (" + std::string(s.s("data_format")) +
           ") but 'bias' has " + tw::text(bias) + " entries; make them equal or change data_format");
    channels = s.calc('=', channels, bias);
  }
  Set(s, 0, out);
}

void GradRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, LeastRank(s), "out_backprop");
  s.out(0, Dims{s.known(0) ? s.dim(0, static_cast<int32_t>(ChannelAxis(s, static_cast<size_t>(s.rank(0))))) : -1});
}

void Gradient(const tw::Grad& g) {
  g.dx(0, g.dy());
  g.dx(1, g.op("BiasAddGrad", {g.dy()}, {{"data_format", g.s("data_format")}}));
}

// Broadcasts the gradient of the sums to every element of its channel.
void GradGradient(const tw::Grad& g) {
  tw_edge dy = g.dy();
  if (g.s("data_format") == "NCHW") {
    const MaybeDims in = ShapeIn(g, 0);
    const tw_edge trailing = in ? Ints(g, Dims(in->size() - 2, 1)) : Ones(g, g.op("Size", {Tail(g, g.shape(0), 2)}));
    dy = g.op("Reshape", {dy, Concat(g, {Ints(g, {-1}), trailing})});
  }
  g.dx(0, g.op("BroadcastTo", {dy, g.shape(0)}));
}

}  // namespace

void register_bias_add(tw::Plugin& p) {
  p.op<Gradient, Rule>("BiasAdd(value: T, bias: T) -> (output: T); T: " OPS_NUMBERS
                       "; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; "
                       "?axes value output data_format; ?data value bias; doc \"adds one number per channel; channels are the last axis, "
                       "or axis 1 in NCHW\"");
  p.op<GradGradient, GradRule>("BiasAddGrad(out_backprop: T) -> (output: T); T: " OPS_NUMBERS
                               "; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; ?axes out_backprop data_format; doc \"gradient of BiasAdd "
                               "for the bias: sums per channel\"");
}

}  // namespace thalweg::ops
