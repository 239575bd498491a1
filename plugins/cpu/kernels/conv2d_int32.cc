// Conv2D and Conv2DBackpropInput of int32, by their definition: there is no blocked product of
// integers, and training does not use them. Sums wrap around.
#include <algorithm>

#include "kernels/common/arithmetic.h"
#include "kernels/common/parallel.h"
#include "kernels/conv_geometry.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The strides along the axes of an image tensor.
struct Steps {
  int64_t row, column, channel;
  Steps(const ImageFormat& f, int64_t rows, int64_t columns, int64_t channels)
      : row(f.channels_first ? columns : columns * channels),
        column(f.channels_first ? 1 : channels),
        channel(f.channels_first ? rows * columns : 1) {}
};

// Calls tap(in, weight, out) for each multiplication of row y of an image's result. The arguments
// are element offsets: in the image of the input, in the filter, and in the image of the result.
template <class F>
void ForProducts(const ConvGeometry& g, int64_t y, F&& tap) {
  const Steps in(g.format, g.h.in, g.w.in, g.in_channels), out(g.format, g.h.out, g.w.out, g.out_channels);
  for (int64_t x = 0; x < g.w.out; ++x)
    for (int64_t t = 0; t < g.taps(); ++t) {
      const int64_t i = t / g.w.window, j = t % g.w.window;
      const int64_t row = y * g.h.stride - g.h.before + i * g.h.dilation, column = x * g.w.stride - g.w.before + j * g.w.dilation;
      if (row < 0 || row >= g.h.in || column < 0 || column >= g.w.in) continue;
      for (int64_t c = 0; c < g.group_in; ++c)
        for (int64_t o = 0; o < g.out_channels; ++o)
          tap(row * in.row + column * in.column + (o / g.group_out * g.group_in + c) * in.channel,
              (t * g.group_in + c) * g.out_channels + o, y * out.row + x * out.column + o * out.channel);
    }
}

int64_t RowCost(const ConvGeometry& g) { return Cost(g.w.out, g.taps(), g.group_in, g.out_channels, 4); }

class Conv2D {
 public:
  explicit Conv2D(const tw::Node& n) : attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<int32_t> input, tw::In<int32_t> filter, tw::Out<int32_t> output) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, ShapeOf(input), ShapeOf(filter), ShapeOf(output));
    std::fill_n(output.data(), output.size(), 0);
    if (output.size() == 0) return;
    const int64_t in_size = g.h.in * g.w.in * g.in_channels, out_size = g.h.out * g.w.out * g.out_channels;
    ParallelFor(frame.f, g.batch * g.h.out, RowCost(g), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32_t* from = input.data() + i / g.h.out * in_size;
        int32_t* to = output.data() + i / g.h.out * out_size;
        ForProducts(g, i % g.h.out,
                    [&](int64_t in, int64_t weight, int64_t out) { to[out] = Plus(to[out], Times(from[in], filter.data()[weight])); });
      }
    });
  }

 private:
  WindowAttrs attrs_;
};

// The first input (sizes) has been used already, to allocate the output. Several result rows add to
// one image, so a task takes a whole image.
class Conv2DBackpropInput {
 public:
  explicit Conv2DBackpropInput(const tw::Node& n) : attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<int32_t>, tw::In<int32_t> filter, tw::In<int32_t> grad, tw::Out<int32_t> output) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, ShapeOf(output), ShapeOf(filter), ShapeOf(grad));
    std::fill_n(output.data(), output.size(), 0);
    if (output.size() == 0 || grad.size() == 0) return;
    const int64_t in_size = g.h.in * g.w.in * g.in_channels, out_size = g.h.out * g.w.out * g.out_channels;
    ParallelFor(frame.f, g.batch, Cost(g.h.out, RowCost(g)), [&](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end; ++image) {
        int32_t* to = output.data() + image * in_size;
        const int32_t* from = grad.data() + image * out_size;
        for (int64_t y = 0; y < g.h.out; ++y)
          ForProducts(g, y,
                      [&](int64_t in, int64_t weight, int64_t out) { to[in] = Plus(to[in], Times(from[out], filter.data()[weight])); });
      }
    });
  }

 private:
  WindowAttrs attrs_;
};

}  // namespace

void register_conv2d_int32(tw::Plugin& p) {
  p.kernel<Conv2D>("Conv2D @CPU");
  p.kernel<Conv2DBackpropInput>("Conv2DBackpropInput @CPU");
}

}  // namespace thalweg::cpu
