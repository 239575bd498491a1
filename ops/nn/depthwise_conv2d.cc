// DepthwiseConv2dNative and its two backward ops: each channel of an image has filters of its own.
// Filters are [height, width, channels in, results per channel] in every format; result m of
// channel c is output channel c * multiplier + m.
#include "ops/common/types.h"
#include "ops/nn/convolution.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct DepthwiseConv2d {
  static constexpr int32_t kRank = 4;

  static Dims Result(const tw::Shape& s, const MaybeDims& image, const MaybeDims& filter) {
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

  static MaybeDims ImageSizes(const tw::Shape& s, const MaybeDims&, const MaybeDims&) {
    return SizesOf(s, 0, "input_sizes", 4, "it needs four sizes");
  }
  static MaybeDims FilterSizes(const tw::Shape& s) { return SizesOf(s, 1, "filter_sizes", 4, "it needs four sizes"); }

  static tw_edge Emit(const tw::Grad& g, const std::string& part, const std::vector<tw_edge>& in) {
    const WindowAttrs w(g);
    return g.op("DepthwiseConv2dNative" + part, in,
                {{"strides", w.strides},
                 {"padding", w.padding},
                 {"explicit_paddings", w.explicit_paddings},
                 {"data_format", w.data_format},
                 {"dilations", w.dilations}});
  }
};

// Attributes that follow the order of axes, listed in `?axes` after the arguments.
#define AXES " data_format strides explicit_paddings dilations; "
#define REST                                                                                                                        \
  "T: " OPS_FLOATS                                                                                                                  \
  "; strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; data_format: {\"NHWC\", " \
  "\"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]; "

}  // namespace

void register_depthwise_conv2d(tw::Plugin& p) {
  using Conv = Convolution<DepthwiseConv2d>;
  p.op<Conv::Gradient, Conv::Rule>(
      "DepthwiseConv2dNative(input: T, filter: T) -> (output: T); " REST "?axes input output" AXES
      "?data input filter; doc \"correlates each channel with filters of its own, [height, width, channels, results per channel]\"");
  p.op<Conv::BackInputGradient, Conv::BackInputRule>(
      "DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T); " REST
      "?axes input_sizes out_backprop output" AXES "doc \"gradient of DepthwiseConv2dNative for its images\"");
  p.op<Conv::BackFilterGradient, Conv::BackFilterRule>(
      "DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); " REST
      "?axes input out_backprop" AXES "doc \"gradient of DepthwiseConv2dNative for its filter\"");
}

}  // namespace thalweg::ops
