// The kernel of Conv2D: NHWC and NCHW, strides, dilations, any padding. The convolution is grouped
// if the filter takes fewer channels than the input has.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CONV2D_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CONV2D_H_

#include "kernels/common/parallel.h"
#include "kernels/conv_gather.h"
#include "kernels/conv_geometry.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {

template <class T>
class Conv2D {
 public:
  explicit Conv2D(const tw::Node& n) : tables_(GemmTablesFor(n.host())), attrs_(n), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, n.node->shapes[0], n.node->shapes[1], n.node->shapes[2]);
    return WidenedBytes(g) + GatherScratch(ProductOf(g, 0), slots_);
  }

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> filter, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, ShapeOf(input), ShapeOf(filter), ShapeOf(output));
    if (output.size() == 0) return;
    GatherProduct<T> p = ProductOf(g, 0);
    Workspace work(frame.f, WidenedBytes(g) + GatherScratch(p, slots_));
    const Wide<T>* weights = Weights(frame, filter, work.data());
    p.from.source = input.data();
    p.to.dest = output.data();
    for (int64_t group = 0; group < g.groups; ++group) {
      p.weights = weights + group * g.group_out;
      p.from.first_channel = group * g.group_in;
      p.to.first_channel = group * g.group_out;
      RunGatherProduct(tables_, frame.f, p, slots_, work.data() + WidenedBytes(g));
    }
  }

 private:
  static uint64_t WidenedBytes(const ConvGeometry& g) {
    if (!kIsSmallFloat<T>) return 0;
    return RoundUp64(uint64_t(g.taps() * g.group_in * g.out_channels) * sizeof(Wide<T>));
  }

  GatherProduct<T> ProductOf(const ConvGeometry& g, int64_t group) const {
    GatherProduct<T> p{};
    p.from = {g.format.channels_first, g.batch, ForwardAxis(g.h), ForwardAxis(g.w), nullptr, g.in_channels, group * g.group_in, g.group_in};
    p.weights_row = g.out_channels;
    p.out = g.group_out;
    p.to = {nullptr, g.h.out, g.w.out, g.out_channels, 0, 1, 0, 1, group * g.group_out};
    return p;
  }

  const Wide<T>* Weights(const tw::Frame& frame, const tw::In<T>& filter, char* widened) const {
    if constexpr (kIsSmallFloat<T>) {
      float* to = reinterpret_cast<float*>(widened);
      ParallelFor(frame.f, int64_t(filter.size()), 1,
                  [&](int64_t begin, int64_t end) { Widen(*tables_.vector, filter.data() + begin, to + begin, end - begin); });
      return to;
    } else {
      return filter.data();
    }
  }

 protected:
  GemmTables tables_;
  WindowAttrs attrs_;
  int slots_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CONV2D_H_
