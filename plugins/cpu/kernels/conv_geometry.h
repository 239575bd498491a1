// The sizes of one 2-D convolution, the same for its forward pass and both gradients.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CONV_GEOMETRY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CONV_GEOMETRY_H_

#include "kernels/window.h"

namespace thalweg::cpu {

struct ConvGeometry {
  ImageFormat format;
  int64_t batch;
  WindowAxis h, w;
  int64_t in_channels, out_channels;
  int64_t groups;               // each group reads its own slice of the input's channels and writes its own slice of the output's
  int64_t group_in, group_out;  // channels of one group
  int64_t taps() const { return h.window * w.window; }
};

// Derives the geometry from the shapes of input, filter and output. Fails unless the shapes belong
// together: every size that loops later use as a bound is checked here, even if the shape rule has
// accepted it.
inline ConvGeometry ConvGeometryOf(const WindowAttrs& attrs, const tw_shape& in, const tw_shape& filter, const tw_shape& out) {
  if (in.rank != 4 || filter.rank != 4 || out.rank != 4)
    throw tw::Error{TW_INTERNAL,
                    "input " + tw::text(in) + ", filter " + tw::text(filter) + " and output " + tw::text(out) + " must have rank 4"};
  const ImageFormat& f = attrs.format;
  ConvGeometry g{};
  g.format = f;
  g.batch = in.dims[0];
  g.h = attrs.Along(0, in.dims[f.height()], filter.dims[0]);
  g.w = attrs.Along(1, in.dims[f.width()], filter.dims[1]);
  g.in_channels = in.dims[f.channel()];
  g.group_in = filter.dims[2];
  g.out_channels = filter.dims[3];
  if (g.group_in == 0 || g.in_channels == 0 || g.in_channels % g.group_in != 0)
    throw tw::Error{TW_INTERNAL, "the input has " + tw::text(g.in_channels) + " channels, the filter " + tw::text(filter) + " takes " +
                                     tw::text(g.group_in) + "; the first must be a multiple of the second"};
  g.groups = g.in_channels / g.group_in;
  if (g.out_channels % g.groups)
    throw tw::Error{TW_INTERNAL, "the filter " + tw::text(filter) + " makes " + tw::text(g.out_channels) +
                                     " channels, which do not divide into " + tw::text(g.groups) + " groups"};
  g.group_out = g.out_channels / g.groups;
  if (out.dims[0] != g.batch || out.dims[f.height()] != g.h.out || out.dims[f.width()] != g.w.out ||
      out.dims[f.channel()] != g.out_channels)
    throw tw::Error{TW_INTERNAL, "input " + tw::text(in) + " and filter " + tw::text(filter) + " belong to an output of height " +
                                     tw::text(g.h.out) + ", width " + tw::text(g.w.out) + " and " + tw::text(g.out_channels) +
                                     " channels, but it is " + tw::text(out)};
  return g;
}

template <class V>
tw_shape ShapeOf(const V& v) {
  return {v.dims(), v.rank(), 0};
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CONV_GEOMETRY_H_
