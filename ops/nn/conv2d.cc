// Conv2D and its two backward ops: the correlation of images with filters. Filters are [height,
// width, channels in, channels out] in every format. If a filter has fewer input channels than the
// image, the convolution is grouped.
#include "ops/nn/convolution.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Conv2D {
  static constexpr int32_t kRank = 4;

  static Dims Result(const tw::Shape& s, const MaybeDims& image, const MaybeDims& filter) {
    const Windows windows(s);
    const ImageAxes& axes = windows.axes();
    const Dims in = image.value_or(Dims(4, -1)), by = filter.value_or(Dims(4, -1));
    const int64_t channels = in[axes.channels];
    if (by[2] == 0) Fail("the filter is " + Text(filter) + ", which has no channels");
    if (Known(channels) && Known(by[2])) {
      const int64_t groups = channels / by[2];
      if (channels == 0 || channels % by[2] != 0)
        Fail("the image is " + Text(image) + " with " + tw::text(channels) + " channels, the filter " + Text(filter) + " takes " +
             tw::text(by[2]) + "; they must agree, or the filter's divide the image's");
      if (groups > 1 && Known(by[3]) && by[3] % groups != 0)
        Fail("the filter is " + Text(filter) + ": its " + tw::text(by[3]) + " results do not divide into " + tw::text(groups) + " groups");
    }
    Dims out(4, -1);
    out[axes.batch] = in[axes.batch];
    out[axes.channels] = by[3];
    for (size_t k = 0; k < 2; ++k) out[axes.space(k)] = windows.OutSize(s, k, in[axes.space(k)], by[k]);
    return out;
  }

  // If `input_sizes` has two entries (height and width), the filter and the gradient give the rest.
  static MaybeDims ImageSizes(const tw::Shape& s, const MaybeDims& filter, const MaybeDims& dy) {
    const MaybeDims sizes = ShapeValue(s, 0, "input_sizes");
    if (!sizes) return std::nullopt;
    const ImageAxes axes = Windows(s).axes();
    Dims image = *sizes;
    if (sizes->size() == 2) {
      image = Dims(4, -1);
      image[axes.channels] = filter ? (*filter)[2] : -1;
      for (size_t k = 0; k < 2; ++k) image[axes.space(k)] = (*sizes)[k];
    } else if (sizes->size() != 4) {
      Fail("'input_sizes' has " + std::to_string(sizes->size()) + " entries; give the image's four sizes, or height and width");
    }
    if (!Known(image[axes.batch]) && dy) image[axes.batch] = (*dy)[axes.batch];
    return image;
  }

  static MaybeDims FilterSizes(const tw::Shape& s) { return SizesOf(s, 1, "filter_sizes", 4, "a filter has four sizes"); }

  static tw_edge Emit(const tw::Grad& g, const std::string& part, const std::vector<tw_edge>& in) {
    const WindowAttrs w(g);
    return g.op("Conv2D" + part, in,
                {{"strides", w.strides},
                 {"use_cudnn_on_gpu", g.b("use_cudnn_on_gpu")},
                 {"padding", w.padding},
                 {"explicit_paddings", w.explicit_paddings},
                 {"data_format", w.data_format},
                 {"dilations", w.dilations}});
  }
};

// Attributes that follow the order of axes, listed in `?axes` after the arguments.
#define AXES " data_format strides explicit_paddings dilations; "
#define CONV_ATTRS                                                                                                                       \
  "strides: list(int); use_cudnn_on_gpu: bool = true; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; " \
  "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]; "

}  // namespace

void register_conv2d(tw::Plugin& p) {
  using Conv = Convolution<Conv2D>;
  p.op<Conv::Gradient, Conv::Rule>("Conv2D(input: T, filter: T) -> (output: T); T: {half, bfloat16, float, double, int32}; " CONV_ATTRS
                                   "?axes input output" AXES
                                   "?data input filter; doc \"correlates images with filters [height, width, channels in, channels out]\"");
  p.op<Conv::BackInputGradient, Conv::BackInputRule>(
      "Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T); T: {half, bfloat16, float, double, "
      "int32}; " CONV_ATTRS "?axes input_sizes out_backprop output" AXES
      "?data filter out_backprop; doc \"gradient of Conv2D for its images\"");
  p.op<Conv::BackFilterGradient, Conv::BackFilterRule>(
      "Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); T: {half, bfloat16, float, double}; " CONV_ATTRS
      "?axes input out_backprop" AXES "?data input out_backprop; doc \"gradient of Conv2D for its filter\"");
}

}  // namespace thalweg::ops
