// The gradients of Conv2D with respect to its input and to its filter.
// The gradient of an input pixel is a sum over the taps that read the pixel. Each tap contributes
// the output's gradient at the window that read it. The set of taps depends on the pixel's position
// modulo the stride: its phase. Within one phase the sum is a plain convolution of the output's
// gradient with the phase's taps in reverse. One task therefore gathers every pixel once, and
// nothing is scattered.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CONV2D_BACKPROP_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CONV2D_BACKPROP_H_

#include <algorithm>

#include "kernels/conv_gather.h"
#include "kernels/conv_geometry.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {

// The taps that read the pixels of one phase along one axis: last, last - every, .. down to first.
// There are none if count is 0.
struct PhaseTaps {
  int64_t count = 0, last = 0, every = 1;
  int64_t tap(int64_t t) const { return last - t * every; }
};

// Tap k reads pixel i from window o = (i + before - k * dilation) / stride, if o is an integer.
inline PhaseTaps TapsOf(const WindowAxis& a, int64_t phase) {
  PhaseTaps p;
  int64_t first = -1, second = -1;
  for (int64_t k = 0; k < a.window && k < 2 * a.stride && second < 0; ++k) {
    if ((phase + a.before - k * a.dilation) % a.stride != 0) continue;
    (first < 0 ? first : second) = k;
  }
  if (first < 0) return p;
  p.every = second < 0 ? a.window : second - first;
  p.count = (a.window - 1 - first) / p.every + 1;
  p.last = first + (p.count - 1) * p.every;
  return p;
}

// Returns the windows from which the taps of a phase read its pixels, in the order of the taps.
inline GatherAxis BackwardAxis(const WindowAxis& a, int64_t phase, const PhaseTaps& taps) {
  const int64_t pixels = phase < a.in ? (a.in - phase - 1) / a.stride + 1 : 0;
  const int64_t first = taps.count ? (phase + a.before - taps.last * a.dilation) / a.stride : 0;
  return {a.out, pixels, 1, taps.count, first, std::max<int64_t>(1, taps.every * a.dilation / a.stride)};
}

template <class T>
class Conv2DBackpropInput {
 public:
  explicit Conv2DBackpropInput(const tw::Node& n) : tables_(GemmTablesFor(n.host())), attrs_(n), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, n.node->shapes[3], n.node->shapes[1], n.node->shapes[2]);
    return TurnedBytes(g) + PhaseBytes(g);
  }

  // The first input (sizes) has been used already, to allocate the output.
  void operator()(tw::Frame frame, tw::In<int32_t>, tw::In<T> filter, tw::In<T> grad, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, ShapeOf(output), ShapeOf(filter), ShapeOf(grad));
    if (output.size() == 0) return;
    if (grad.size() == 0) {
      std::fill_n(output.data(), output.size(), T(0));
      return;
    }
    Workspace work(frame.f, TurnedBytes(g) + PhaseBytes(g));
    Wide<T>* turned = reinterpret_cast<Wide<T>*>(work.data());
    for (int64_t y = 0; y < std::min(g.h.stride, g.h.in); ++y)
      for (int64_t x = 0; x < std::min(g.w.stride, g.w.in); ++x) {
        const PhaseTaps taps_h = TapsOf(g.h, y), taps_w = TapsOf(g.w, x);
        TurnFilter(frame.f, g, taps_h, taps_w, filter.data(), turned);
        GatherProduct<T> p = ProductOf(g, y, x, taps_h, taps_w);
        p.from.source = grad.data();
        p.to.dest = output.data();
        for (int64_t group = 0; group < g.groups; ++group) {
          p.from.first_channel = group * g.group_out;
          p.to.first_channel = group * g.group_in;
          p.weights = turned + group * p.from.depth() * g.group_in;
          RunGatherProduct(tables_, frame.f, p, slots_, work.data() + TurnedBytes(g));
        }
      }
  }

 private:
  static uint64_t TurnedBytes(const ConvGeometry& g) {
    return RoundUp64(uint64_t(g.taps() * g.group_in * g.out_channels) * sizeof(Wide<T>));
  }

  // Returns an upper bound of the scratch bytes of any phase. It counts all taps of the filter as
  // taps of one phase.
  uint64_t PhaseBytes(const ConvGeometry& g) const {
    GatherProduct<T> p = ProductOf(g, 0, 0, PhaseTaps{g.h.window, 0, 1}, PhaseTaps{g.w.window, 0, 1});
    return GatherScratch(p, slots_);
  }

  static GatherProduct<T> ProductOf(const ConvGeometry& g, int64_t y, int64_t x, const PhaseTaps& taps_h, const PhaseTaps& taps_w) {
    GatherProduct<T> p{};
    p.from = {g.format.channels_first,
              g.batch,
              BackwardAxis(g.h, y, taps_h),
              BackwardAxis(g.w, x, taps_w),
              nullptr,
              g.out_channels,
              0,
              g.group_out};
    p.weights_row = g.group_in;
    p.out = g.group_in;
    p.to = {nullptr, g.h.in, g.w.in, g.in_channels, y, g.h.stride, x, g.w.stride, 0};
    return p;
  }

  // Writes the filter's taps of one phase as [group, tap of h, tap of w, out channel, in channel].
  void TurnFilter(const tw_frame* f, const ConvGeometry& g, const PhaseTaps& taps_h, const PhaseTaps& taps_w, const T* filter,
                  Wide<T>* turned) const {
    const int64_t taps = taps_h.count * taps_w.count;
    ForEachTask(f, g.groups * taps, slots_, [&](int64_t task, int) {
      const int64_t group = task / taps, tap = task % taps;
      const int64_t at = taps_h.tap(tap / taps_w.count) * g.w.window + taps_w.tap(tap % taps_w.count);
      const T* from = filter + at * g.group_in * g.out_channels + group * g.group_out;
      Wide<T>* to = turned + task * g.group_out * g.group_in;
      constexpr int64_t kSide = 16;  // the side of squares that stay in the first-level cache
      for (int64_t i0 = 0; i0 < g.group_in; i0 += kSide)
        for (int64_t o0 = 0; o0 < g.group_out; o0 += kSide)
          for (int64_t o = o0; o < std::min(o0 + kSide, g.group_out); ++o)
            for (int64_t i = i0; i < std::min(i0 + kSide, g.group_in); ++i) to[o * g.group_in + i] = Wide<T>(from[i * g.out_channels + o]);
    });
  }

 protected:
  GemmTables tables_;
  WindowAttrs attrs_;
  int slots_;
};

template <class T>
class Conv2DBackpropFilter {
 public:
  explicit Conv2DBackpropFilter(const tw::Node& n) : tables_(GemmTablesFor(n.host())), attrs_(n), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, n.node->shapes[0], n.node->shapes[3], n.node->shapes[2]);
    return WeightGradientScratch(GradientOf(g, 0), slots_);
  }

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t>, tw::In<T> grad, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, ShapeOf(input), ShapeOf(output), ShapeOf(grad));
    if (output.size() == 0) return;
    Workspace work(frame.f, WeightGradientScratch(GradientOf(g, 0), slots_));
    for (int64_t group = 0; group < g.groups; ++group) {
      WeightGradient<T> p = GradientOf(g, group);
      p.from.source = input.data();
      p.grad = grad.data();
      p.weights = output.data() + group * g.group_out;
      RunWeightGradient(tables_, frame.f, p, slots_, work.data());
    }
  }

 private:
  static WeightGradient<T> GradientOf(const ConvGeometry& g, int64_t group) {
    WeightGradient<T> p{};
    p.from = {g.format.channels_first, g.batch, ForwardAxis(g.h), ForwardAxis(g.w), nullptr, g.in_channels, group * g.group_in, g.group_in};
    p.grad_channels = g.out_channels;
    p.first_grad_channel = group * g.group_out;
    p.out = g.group_out;
    p.weights_row = g.out_channels;
    return p;
  }

 protected:
  GemmTables tables_;
  WindowAttrs attrs_;
  int slots_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CONV2D_BACKPROP_H_
