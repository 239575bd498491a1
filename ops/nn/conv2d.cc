// Conv2D and its two backward ops: filters sliding over images. Filters are [height, width, channels in, channels out] in every format;
// with fewer channels than the image has they work in groups.
#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The shape of the result, from those of image and filter.
Dims ConvShape(const tw::Shape& s, const MaybeDims& image, const MaybeDims& filter) {
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

// The image's sizes from the size input i. Two entries give height and width alone; the rest then comes from filter and gradient.
MaybeDims ImageSizes(const tw::Shape& s, uint32_t i, const MaybeDims& filter, const MaybeDims& dy) {
  const MaybeDims sizes = ShapeValue(s, i, "input_sizes");
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

const char kFits[] = "the shape of 'out_backprop' and that of the convolution's result";

void ConvRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantRank(s, 1, 4, "filter");
  s.out(0, ConvShape(s, In(s, 0), In(s, 1)));
}

void BackInputRule(const tw::Shape& s) {
  WantRank(s, 1, 4, "filter");
  WantRank(s, 2, 4, "out_backprop");
  const MaybeDims image = ImageSizes(s, 0, In(s, 1), In(s, 2));
  Merge(s, In(s, 2), ConvShape(s, image, In(s, 1)), kFits);
  s.out(0, image.value_or(Dims(4, -1)));
}

void BackFilterRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantRank(s, 2, 4, "out_backprop");
  const MaybeDims filter = ShapeValue(s, 1, "filter_sizes");
  if (filter && filter->size() != 4) Fail("'filter_sizes' has " + std::to_string(filter->size()) + " entries; a filter has four sizes");
  Merge(s, In(s, 2), ConvShape(s, In(s, 0), filter), kFits);
  s.out(0, filter.value_or(Dims(4, -1)));
}

tw_edge Emit(const tw::Grad& g, const char* op, tw_edge a, tw_edge b, tw_edge c = 0) {
  const WindowAttrs w(g);
  std::vector<tw_edge> in = {a, b};
  if (c) in.push_back(c);
  return g.op(op, in,
              {{"strides", w.strides},
               {"use_cudnn_on_gpu", g.b("use_cudnn_on_gpu")},
               {"padding", w.padding},
               {"explicit_paddings", w.explicit_paddings},
               {"data_format", w.data_format},
               {"dilations", w.dilations}});
}

// The three ops are the three products of one trilinear form in (image, filter, gradient), so each is the others' gradient.
void ConvGradient(const tw::Grad& g) {
  g.dx(0, Emit(g, "Conv2DBackpropInput", g.shape(0), g.x(1), g.dy()));
  g.dx(1, Emit(g, "Conv2DBackpropFilter", g.x(0), g.shape(1), g.dy()));
}
void BackInputGradient(const tw::Grad& g) {
  g.dx(1, Emit(g, "Conv2DBackpropFilter", g.dy(), g.shape(1), g.x(2)));
  g.dx(2, Emit(g, "Conv2D", g.dy(), g.x(1)));
}
void BackFilterGradient(const tw::Grad& g) {
  g.dx(0, Emit(g, "Conv2DBackpropInput", g.shape(0), g.dy(), g.x(2)));
  g.dx(2, Emit(g, "Conv2D", g.x(0), g.dy()));
}

#define CONV_ATTRS                                                                                                                       \
  "strides: list(int); use_cudnn_on_gpu: bool = true; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; " \
  "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]; "

}  // namespace

void register_conv2d(tw::Plugin& p) {
  p.op<ConvGradient, ConvRule>("Conv2D(input: T, filter: T) -> (output: T); T: {half, bfloat16, float, double, int32}; " CONV_ATTRS
                               "doc \"correlates images with filters [height, width, channels in, channels out]\"");
  p.op<BackInputGradient, BackInputRule>(
      "Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T); T: {half, bfloat16, float, double, "
      "int32}; " CONV_ATTRS "doc \"gradient of Conv2D for its images\"");
  p.op<BackFilterGradient, BackFilterRule>(
      "Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); T: {half, bfloat16, float, double}; " CONV_ATTRS
      "doc \"gradient of Conv2D for its filter\"");
}

}  // namespace thalweg::ops
