// DepthwiseConv2dNative and its two backward ops: every channel of an image has filters of its own. Filters are [height, width, channels
// in, results per channel] in every format; result m of channel c is channel c * multiplier + m.
#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

Dims ConvShape(const tw::Shape& s, const MaybeDims& image, const MaybeDims& filter) {
  const Windows windows(s);
  const ImageAxes& axes = windows.axes();
  const Dims in = image.value_or(Dims(4, -1)), by = filter.value_or(Dims(4, -1));
  if (Known(in[axes.channels]) && Known(by[2]) && in[axes.channels] != by[2])
    Fail("the image is " + Text(image) + " with " + tw::text(in[axes.channels]) + " channels, the filter " + Text(filter) + " takes " +
         tw::text(by[2]) + "; they must agree");
  Dims out(4, -1);
  out[axes.batch] = in[axes.batch];
  out[axes.channels] = s.calc('*', s.calc('=', in[axes.channels], by[2]), by[3]);
  for (size_t k = 0; k < 2; ++k) out[axes.space(k)] = windows.OutSize(s, k, in[axes.space(k)], by[k]);
  return out;
}

// Four sizes from the size input i.
MaybeDims FourSizes(const tw::Shape& s, uint32_t i, const char* name) {
  const MaybeDims sizes = ShapeValue(s, i, name);
  if (sizes && sizes->size() != 4)
    Fail("'" + std::string(name) + "' has " + std::to_string(sizes->size()) + " entries; it needs four sizes");
  return sizes;
}

const char kFits[] = "the shape of 'out_backprop' and that of the convolution's result";

void ConvRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantRank(s, 1, 4, "filter");
  s.out(0, ConvShape(s, In(s, 0), In(s, 1)));
}

void BackInputRule(const tw::Shape& s) {
  WantRank(s, 1, 4, "filter");
  WantRank(s, 2, 4, "out_backprop");
  const MaybeDims image = FourSizes(s, 0, "input_sizes");
  Merge(s, In(s, 2), ConvShape(s, image, In(s, 1)), kFits);
  s.out(0, image.value_or(Dims(4, -1)));
}

void BackFilterRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantRank(s, 2, 4, "out_backprop");
  const MaybeDims filter = FourSizes(s, 1, "filter_sizes");
  Merge(s, In(s, 2), ConvShape(s, In(s, 0), filter), kFits);
  s.out(0, filter.value_or(Dims(4, -1)));
}

tw_edge Emit(const tw::Grad& g, const std::string& part, const std::vector<tw_edge>& in) {
  const WindowAttrs w(g);
  return g.op("DepthwiseConv2dNative" + part, in,
              {{"strides", w.strides},
               {"padding", w.padding},
               {"explicit_paddings", w.explicit_paddings},
               {"data_format", w.data_format},
               {"dilations", w.dilations}});
}
tw_edge Convolve(const tw::Grad& g, tw_edge image, tw_edge filter) { return Emit(g, "", {image, filter}); }
tw_edge BackInput(const tw::Grad& g, tw_edge filter, tw_edge dy) { return Emit(g, "BackpropInput", {g.shape(0), filter, dy}); }
tw_edge BackFilter(const tw::Grad& g, tw_edge image, tw_edge dy) { return Emit(g, "BackpropFilter", {image, g.shape(1), dy}); }

// The three ops are the three products of one trilinear form in (image, filter, gradient), so each is the others' gradient.
void ConvGradient(const tw::Grad& g) {
  g.dx(0, BackInput(g, g.x(1), g.dy()));
  g.dx(1, BackFilter(g, g.x(0), g.dy()));
}
void BackInputGradient(const tw::Grad& g) {
  g.dx(1, BackFilter(g, g.dy(), g.x(2)));
  g.dx(2, Convolve(g, g.dy(), g.x(1)));
}
void BackFilterGradient(const tw::Grad& g) {
  g.dx(0, BackInput(g, g.dy(), g.x(2)));
  g.dx(2, Convolve(g, g.x(0), g.dy()));
}

#define REST                                                                                                                        \
  "T: " OPS_FLOATS                                                                                                                  \
  "; strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; data_format: {\"NHWC\", " \
  "\"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]; "

}  // namespace

void register_depthwise_conv2d(tw::Plugin& p) {
  p.op<ConvGradient, ConvRule>("DepthwiseConv2dNative(input: T, filter: T) -> (output: T); " REST
                               "doc \"correlates each channel with filters of its own, [height, width, channels, results per channel]\"");
  p.op<BackInputGradient, BackInputRule>(
      "DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T); " REST
      "doc \"gradient of DepthwiseConv2dNative for its images\"");
  p.op<BackFilterGradient, BackFilterRule>(
      "DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); " REST
      "doc \"gradient of DepthwiseConv2dNative for its filter\"");
}

}  // namespace thalweg::ops
