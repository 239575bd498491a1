// Colours of pixels: RGBToHSV and HSVToRGB, AdjustContrastv2, AdjustHue and AdjustSaturation. The
// last axis holds red, green and blue, or hue, saturation and value.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks that input 0 has at least `rank` axes, the last of which has three entries if `colors`.
void Colors(const tw::Shape& s, int32_t rank, bool colors) {
  WantRankAtLeast(s, 0, rank, "images");
  const MaybeDims in = In(s, 0);
  if (colors && in && Known(in->back()) && in->back() != 3)
    Fail("'images' is " + Text(in) + "; its last axis must hold the 3 numbers of a colour");
  Set(s, 0, in);
}

void ConvertRule(const tw::Shape& s) { Colors(s, 1, true); }
void ContrastRule(const tw::Shape& s) {
  WantScalar(s, 1, "contrast_factor");
  Colors(s, 3, false);
}
void HueRule(const tw::Shape& s) {
  WantScalar(s, 1, "delta");
  Colors(s, 3, true);
}
void SaturationRule(const tw::Shape& s) {
  WantScalar(s, 1, "scale");
  Colors(s, 3, true);
}

// Channel k of colours, without the last axis.
tw_edge Channel(const tw::Grad& g, tw_edge colors, int64_t k) {
  return g.op("StridedSlice", {colors, Ints(g, {0, k}), Ints(g, {0, k + 1}), Ints(g, {1, 1})},
              {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}});
}
tw_edge Colors(const tw::Grad& g, tw_edge a, tw_edge b, tw_edge c) { return g.op("Pack", {a, b, c}, {{"axis", -1}}); }

// Builds formulas on channels.
struct Formula {
  const tw::Grad& g;
  tw_edge add(tw_edge x, tw_edge y) const { return g.op("AddV2", {x, y}); }
  tw_edge sub(tw_edge x, tw_edge y) const { return g.op("Sub", {x, y}); }
  tw_edge mul(tw_edge x, tw_edge y) const { return g.op("Mul", {x, y}); }
  tw_edge over(tw_edge x, tw_edge y) const { return g.op("DivNoNan", {x, y}); }
  tw_edge number(double v, tw_edge like) const { return Number(g, v, like); }
  tw_edge mask(tw_edge truth, tw_edge like) const { return CastTo(g, truth, TypeOf(g, like)); }
  tw_edge both(tw_edge a, tw_edge b) const { return g.op("LogicalAnd", {a, b}); }
  tw_edge without(tw_edge a) const { return g.op("LogicalNot", {a}); }
};

// v = max, s = range / v, h = (difference of the other two channels) / (6 range) + a constant. Only
// the largest and the smallest channel decide v and range.
void ToHsvGradient(const tw::Grad& g) {
  const Formula f{g};
  const tw_edge x = g.x(0), dy = g.dy();
  const tw_edge r = Channel(g, x, 0), gr = Channel(g, x, 1), b = Channel(g, x, 2);
  const tw_edge dh = Channel(g, dy, 0), dv = Channel(g, dy, 2);
  const tw_edge v = g.op("Maximum", {r, g.op("Maximum", {gr, b})}), low = g.op("Minimum", {r, g.op("Minimum", {gr, b})});
  const tw_edge ds = f.mul(Channel(g, dy, 1), f.mask(g.op("Greater", {v, f.number(0, v)}), v));
  const tw_edge range = f.sub(v, low), top_r = g.op("Equal", {r, v});
  const tw_edge top_g = f.both(f.without(top_r), g.op("Equal", {gr, v}));
  const tw_edge top_b = f.both(f.without(top_r), f.without(top_g));
  const tw_edge low_b = g.op("Equal", {b, low}), low_g = f.both(f.without(low_b), g.op("Equal", {gr, low}));
  const tw_edge low_r = f.both(f.without(low_b), f.without(low_g));
  const tw_edge is[3][2] = {
      {f.mask(top_r, x), f.mask(low_r, x)}, {f.mask(top_g, x), f.mask(low_g, x)}, {f.mask(top_b, x), f.mask(low_b, x)}};
  // s = 1 - low / v for v above 0, else 0.
  const tw_edge of_v = f.add(dv, f.mul(ds, f.over(low, f.mul(v, v)))), of_low = g.op("Neg", {f.over(ds, v)});
  // h = d / (6 range) + constant, where d is the difference that the largest channel selects.
  const tw_edge sixth = f.over(f.mul(dh, f.number(1.0 / 6, dh)), range);
  const tw_edge d = f.add(f.add(f.mul(is[0][0], f.sub(gr, b)), f.mul(is[1][0], f.sub(b, r))), f.mul(is[2][0], f.sub(r, gr)));
  const tw_edge of_range = g.op("Neg", {f.mul(sixth, f.over(d, range))});
  const tw_edge signs[3] = {f.sub(is[2][0], is[1][0]), f.sub(is[0][0], is[2][0]), f.sub(is[1][0], is[0][0])};  // of the channels in d
  tw_edge dx[3];
  for (int k = 0; k < 3; ++k) {
    dx[k] = f.mul(sixth, signs[k]);
    dx[k] = f.add(dx[k], f.mul(is[k][0], f.add(of_v, of_range)));
    dx[k] = f.add(dx[k], f.mul(is[k][1], f.sub(of_low, of_range)));
  }
  g.dx(0, Colors(g, dx[0], dx[1], dx[2]));
}

// Channel k is v (1 - s + s t_k(h)), where t_k is a function with slopes of 6, -6 and 0.
void ToRgbGradient(const tw::Grad& g) {
  const Formula f{g};
  const tw_edge x = g.x(0), dy = g.dy();
  const tw_edge h = Channel(g, x, 0), s = Channel(g, x, 1), v = Channel(g, x, 2), six = f.mul(h, f.number(6, h));
  const double centre[3] = {3, 2, 4}, sign[3] = {1, -1, -1}, constant[3] = {-1, 2, 2};
  tw_edge dh = 0, ds = 0, dv = 0;
  for (int k = 0; k < 3; ++k) {
    const tw_edge from = f.sub(six, f.number(centre[k], h)), dk = Channel(g, dy, k);
    const tw_edge t = f.add(f.mul(g.op("Abs", {from}), f.number(sign[k], h)), f.number(constant[k], h));
    const tw_edge zero = f.number(0, h), one = f.number(1, h);
    const tw_edge inside = f.mask(f.both(g.op("Greater", {t, zero}), g.op("Less", {t, one})), x);
    const tw_edge clipped = g.op("Minimum", {g.op("Maximum", {t, zero}), one});
    const tw_edge slope = f.mul(inside, f.mul(g.op("Sign", {from}), f.number(6 * sign[k], h)));
    const tw_edge of_t = f.mul(dk, f.mul(v, s));
    const tw_edge parts[3] = {f.mul(of_t, slope), f.mul(dk, f.mul(v, f.sub(clipped, one))),
                              f.mul(dk, f.add(f.sub(one, s), f.mul(s, clipped)))};
    dh = dh ? f.add(dh, parts[0]) : parts[0];
    ds = ds ? f.add(ds, parts[1]) : parts[1];
    dv = dv ? f.add(dv, parts[2]) : parts[2];
  }
  g.dx(0, Colors(g, dh, ds, dv));
}

// y = (x - mean) factor + mean: the matrix of x is symmetric.
void ContrastGradient(const tw::Grad& g) {
  g.dx(0, g.op("AdjustContrastv2", {g.dy(), g.x(1)}));
  const tw_edge x = g.x(0), mean = g.op("Mean", {x, Ints(g, {-3, -2})}, {{"keep_dims", true}});
  const tw_edge products = CastTo(g, g.op("Mul", {g.dy(), g.op("Sub", {x, mean})}), TW_FLOAT);
  g.dx(1, g.op("Sum", {g.op("Reshape", {products, Ints(g, {-1})}), Int(g, 0)}));
}

#define CONVERTS "(images: T) -> (output: T); T: " OPS_FLOATS " = float; doc \""
#define NO_BACKWARD "no_gradient \"convert the colours with RGBToHSV, change them and convert them back, for a gradient\"; "

}  // namespace

void register_color(tw::Plugin& p) {
  p.op<ToHsvGradient, ConvertRule>("RGBToHSV" CONVERTS "colours of red, green and blue as hue, saturation and value\"");
  p.op<ToRgbGradient, ConvertRule>("HSVToRGB" CONVERTS "colours of hue, saturation and value as red, green and blue\"");
  p.op<ContrastGradient, ContrastRule>(
      "AdjustContrastv2(images: T, contrast_factor: float) -> (output: T); T: {half, float} = float; doc \"moves each channel of each "
      "image "
      "away from its mean by a factor\"");
  p.op<nullptr, HueRule>("AdjustHue(images: T, delta: float) -> (output: T); T: {half, float} = float; " NO_BACKWARD
                         "doc \"adds to the hues of pixels, in turns\"");
  p.op<nullptr, SaturationRule>("AdjustSaturation(images: T, scale: float) -> (output: T); T: {half, float} = float; " NO_BACKWARD
                                "doc \"multiplies the saturations of pixels\"");
}

}  // namespace thalweg::ops
