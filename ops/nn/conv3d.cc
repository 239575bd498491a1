// Conv3D and its two backward ops: filters sliding over volumes. Filters are [depth, height, width, channels in, channels out] in every
// format.
#include "ops/common/types.h"
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

Dims ConvShape(const tw::Shape& s, const MaybeDims& volume, const MaybeDims& filter) {
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

MaybeDims FiveSizes(const tw::Shape& s, uint32_t i, const char* name) {
  const MaybeDims sizes = ShapeValue(s, i, name);
  if (sizes && sizes->size() != 5)
    Fail("'" + std::string(name) + "' has " + std::to_string(sizes->size()) + " entries; it needs five sizes");
  return sizes;
}

const char kFits[] = "the shape of 'out_backprop' and that of the convolution's result";

void ConvRule(const tw::Shape& s) {
  WantRank(s, 0, 5, "input");
  WantRank(s, 1, 5, "filter");
  s.out(0, ConvShape(s, In(s, 0), In(s, 1)));
}

void BackInputRule(const tw::Shape& s) {
  WantRank(s, 1, 5, "filter");
  WantRank(s, 2, 5, "out_backprop");
  const MaybeDims volume = FiveSizes(s, 0, "input_sizes");
  Merge(s, In(s, 2), ConvShape(s, volume, In(s, 1)), kFits);
  s.out(0, volume.value_or(Dims(5, -1)));
}

void BackFilterRule(const tw::Shape& s) {
  WantRank(s, 0, 5, "input");
  WantRank(s, 2, 5, "out_backprop");
  const MaybeDims filter = FiveSizes(s, 1, "filter_sizes");
  Merge(s, In(s, 2), ConvShape(s, In(s, 0), filter), kFits);
  s.out(0, filter.value_or(Dims(5, -1)));
}

tw_edge Emit(const tw::Grad& g, const char* op, const std::vector<tw_edge>& in) {
  const WindowAttrs w(g);
  return g.op(op, in, {{"strides", w.strides}, {"padding", w.padding}, {"data_format", w.data_format}, {"dilations", w.dilations}});
}
tw_edge Convolve(const tw::Grad& g, tw_edge volume, tw_edge filter) { return Emit(g, "Conv3D", {volume, filter}); }
tw_edge BackInput(const tw::Grad& g, tw_edge filter, tw_edge dy) { return Emit(g, "Conv3DBackpropInputV2", {g.shape(0), filter, dy}); }
tw_edge BackFilter(const tw::Grad& g, tw_edge volume, tw_edge dy) { return Emit(g, "Conv3DBackpropFilterV2", {volume, g.shape(1), dy}); }

// The three ops are the three products of one trilinear form in (volume, filter, gradient), so each is the others' gradient.
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

#define REST                                                                                                                            \
  "T: " OPS_FLOATS                                                                                                                      \
  "; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = " \
  "[1, 1, 1, 1, 1]; "

}  // namespace

void register_conv3d(tw::Plugin& p) {
  p.op<ConvGradient, ConvRule>("Conv3D(input: T, filter: T) -> (output: T); " REST
                               "doc \"correlates volumes with filters [depth, height, width, channels in, channels out]\"");
  p.op<BackInputGradient, BackInputRule>("Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T) -> (output: T); " REST
                                         "Tshape: " OPS_INDEX " = int32; doc \"gradient of Conv3D for its volumes\"");
  p.op<BackFilterGradient, BackFilterRule>("Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T) -> (output: T); " REST
                                           "doc \"gradient of Conv3D for its filter\"");
}

}  // namespace thalweg::ops
