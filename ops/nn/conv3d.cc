// Conv3D and its two backward ops: the correlation of volumes with filters. Filters are [depth,
// height, width, channels in, channels out] in every format.
#include "ops/common/types.h"
#include "ops/nn/convolution.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Conv3D {
  static constexpr int32_t kRank = 5;

  static Dims Result(const tw::Shape& s, const MaybeDims& volume, const MaybeDims& filter) {
    const Windows windows(s);
    const ImageAxes& axes = windows.axes();
    const Dims in = volume.value_or(Dims(5, -1)), by = filter.value_or(Dims(5, -1));
    if (Known(in[axes.channels]) && Known(by[3]) && in[axes.channels] != by[3])
      Fail("the volume is " + Text(volume) + " with " + tw::text(in[axes.channels]) + " channels, the filter " + Text(filter) + " takes " +
           tw::text(by[3]) + "; they must agree");
    Dims out(5, -1);
    out[axes.batch] = in[axes.batch];
    out[axes.channels] = by[4];
    for (size_t k = 0; k < 3; ++k) out[axes.space(k)] = windows.OutSize(s, k, in[axes.space(k)], by[k]);
    return out;
  }

  static MaybeDims ImageSizes(const tw::Shape& s, const MaybeDims&, const MaybeDims&) {
    return SizesOf(s, 0, "input_sizes", 5, "it needs five sizes");
  }
  static MaybeDims FilterSizes(const tw::Shape& s) { return SizesOf(s, 1, "filter_sizes", 5, "it needs five sizes"); }

  static tw_edge Emit(const tw::Grad& g, const std::string& part, const std::vector<tw_edge>& in) {
    const WindowAttrs w(g);
    return g.op("Conv3D" + part + (part.empty() ? "" : "V2"), in,
                {{"strides", w.strides}, {"padding", w.padding}, {"data_format", w.data_format}, {"dilations", w.dilations}});
  }
};

// Attributes that follow the order of axes, listed in `?axes` after the arguments.
#define AXES " data_format strides dilations; "
#define REST                                                                                                                            \
  "T: " OPS_FLOATS                                                                                                                      \
  "; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = " \
  "[1, 1, 1, 1, 1]; "

}  // namespace

void register_conv3d(tw::Plugin& p) {
  using Conv = Convolution<Conv3D>;
  p.op<Conv::Gradient, Conv::Rule>(
      "Conv3D(input: T, filter: T) -> (output: T); " REST "?axes input output" AXES
      "?data input filter; doc \"correlates volumes with filters [depth, height, width, channels in, channels out]\"");
  p.op<Conv::BackInputGradient, Conv::BackInputRule>(
      "Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T) -> (output: T); " REST "Tshape: " OPS_INDEX
      " = int32; ?axes input_sizes out_backprop output" AXES "doc \"gradient of Conv3D for its volumes\"");
  p.op<Conv::BackFilterGradient, Conv::BackFilterRule>(
      "Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); " REST "?axes input out_backprop" AXES
      "doc \"gradient of Conv3D for its filter\"");
}

}  // namespace thalweg::ops
