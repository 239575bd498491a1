// FusedBatchNorm in its three versions, and their backward ops. The op normalises each channel to
// mean 0 and variance 1, then applies the learned scale and offset. While training it uses the mean
// and variance of the batch, otherwise the given ones. V2 takes 16-bit images with float
// parameters. V3 also takes volumes and has one more output, which is empty here.
//
// The reserved outputs are the mean and the (biased) variance from which y was computed. Unlike in
// TensorFlow, all outputs are differentiable with respect to all inputs, so that second derivatives
// need no special rule.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Layout {
  size_t rank, channels;
};
Layout LayoutOf(const tw::Attrs& a) {
  const std::string_view format = a.s("data_format");
  const size_t rank = format.size();
  return {rank, format[1] == 'C' ? 1 : rank - 1};
}

void WantRankOfFormat(const tw::Shape& s, uint32_t i, const Layout& l, const char* name) {
  if (s.known(i) && s.rank(i) != static_cast<int32_t>(l.rank))
    Fail("'" + std::string(name) + "' is " + tw::text(s.in(i)) + " but data_format " + std::string(s.s("data_format")) + " has " +
         std::to_string(l.rank) + " axes");
}

// Merges the channels of an image with the length of a vector input.
int64_t MergeChannels(const tw::Shape& s, int64_t channels, uint32_t i, const char* name) {
  WantVector(s, i, name);
  const int64_t entries = s.known(i) ? s.dim(i, 0) : -1;
  return MergeSize(s, channels, entries, "the number of channels of 'x' and of entries of '" + std::string(name) + "'");
}

// Returns the image's shape after checking that the named vectors have one entry per channel.
Dims ImageRule(const tw::Shape& s, const MaybeDims& image, uint32_t first, const std::vector<const char*>& names) {
  const Layout l = LayoutOf(s);
  Dims out = image.value_or(Dims(l.rank, -1));
  for (const char* name : names) out[l.channels] = MergeChannels(s, out[l.channels], first++, name);
  return out;
}

void Rule(const tw::Shape& s) {
  const Layout l = LayoutOf(s);
  WantRankOfFormat(s, 0, l, "x");
  WantVector(s, 3, "mean");
  WantVector(s, 4, "variance");
  const bool unused = s.b("is_training") && s.f("exponential_avg_factor") == 1;  // then mean and variance may have any length
  const Dims y =
      unused ? ImageRule(s, In(s, 0), 1, {"scale", "offset"}) : ImageRule(s, In(s, 0), 1, {"scale", "offset", "mean", "variance"});
  s.out(0, y);
  for (uint32_t o = 1; o < 5; ++o) s.out(o, Dims{y[l.channels]});
  if (s.c->n_out == 6) s.out(5, Dims{0});
}

void GradRule(const tw::Shape& s) {
  const Layout l = LayoutOf(s);
  WantRankOfFormat(s, 0, l, "y_backprop");
  WantRankOfFormat(s, 1, l, "x");
  const MaybeDims image = Merge(s, In(s, 0), In(s, 1), "the shapes of 'y_backprop' and 'x'");
  const Dims x = ImageRule(s, image, 2, {"scale", "reserve_space_1", "reserve_space_2"});
  s.out(0, x);
  s.out(1, Dims{x[l.channels]});
  s.out(2, Dims{x[l.channels]});
  s.out(3, Dims{0});
  s.out(4, Dims{0});
}

// The arithmetic of the gradients. All of it is in float, per channel or per element.
class Channels {
 public:
  explicit Channels(const tw::Grad& g) : g_(g), layout_(LayoutOf(g)) {
    for (size_t axis = 0; axis < layout_.rank; ++axis)
      if (axis != layout_.channels) axes_.push_back(static_cast<int64_t>(axis));
  }
  tw_edge Sum(tw_edge e) const { return g_.op("Sum", {e, Ints(g_, axes_)}); }
  tw_edge Mean(tw_edge e) const { return g_.op("Mean", {e, Ints(g_, axes_)}); }
  // Reshapes a vector with one entry per channel so that it broadcasts against the image.
  tw_edge Wide(tw_edge e) const {
    if (layout_.channels + 1 == layout_.rank) return e;
    Dims dims(layout_.rank - 1, 1);
    dims[0] = -1;
    return g_.op("Reshape", {e, Ints(g_, dims)});
  }
  tw_edge Mul(tw_edge a, tw_edge b) const { return g_.op("Mul", {a, b}); }
  tw_edge Add(tw_edge a, tw_edge b) const { return g_.op("AddV2", {a, b}); }
  tw_edge Sub(tw_edge a, tw_edge b) const { return g_.op("Sub", {a, b}); }
  tw_edge Neg(tw_edge a) const { return g_.op("Neg", {a}); }
  tw_edge Times(double factor, tw_edge a) const { return Mul(Number(g_, factor, a), a); }
  tw_edge Float(tw_edge e) const { return CastTo(g_, e, TW_FLOAT); }
  // 1 / sqrt(variance + epsilon)
  tw_edge Rate(tw_edge variance) const { return g_.op("Rsqrt", {Add(variance, Number(g_, g_.f("epsilon"), variance))}); }
  // The number of elements per channel.
  tw_edge Count(uint32_t image, tw_edge per_channel) const {
    const MaybeDims dims = ShapeIn(g_, image);
    if (!AllKnown(dims)) return g_.op("RealDiv", {Float(g_.op("Size", {g_.x(image)})), Float(g_.op("Size", {per_channel}))});
    double count = 1;
    for (int64_t axis : axes_) count *= static_cast<double>((*dims)[static_cast<size_t>(axis)]);
    return g_.scalar(count, TW_FLOAT);
  }

 private:
  const tw::Grad& g_;
  Layout layout_;
  Dims axes_;
};

// Returns a, b or their sum; 0 stands for no gradient.
tw_edge Plus(const tw::Grad& g, tw_edge a, tw_edge b) { return !a ? b : !b ? a : g.op("AddV2", {a, b}); }

void Set(const tw::Grad& g, uint32_t i, tw_edge e) {
  if (e) g.dx(i, CastTo(g, e, g.type_in(i)));
}

// Returns the incoming gradient of output o times `factor`, or 0 if there is none.
tw_edge Arriving(const tw::Grad& g, const Channels& c, uint32_t o, double factor = 1) {
  if (!g.has_dy(o) || factor == 0) return 0;
  return factor == 1 ? c.Float(g.dy(o)) : c.Times(factor, c.Float(g.dy(o)));
}

struct ParameterGradients {
  tw_edge x = 0, mean = 0, variance = 0;
};

// The gradients through y. One backward op computes them; the gradients of a given mean and
// variance follow from its results.
ParameterGradients ThroughResult(const tw::Grad& g, const Channels& c, const std::string& op, bool training) {
  ParameterGradients d;
  if (!g.has_dy(0)) return d;
  const tw_edge mean = c.Float(training ? g.y(3) : g.x(3)), variance = c.Float(training ? g.y(4) : g.x(4)), scale = c.Float(g.x(1));
  std::vector<tw_edge> in = {g.dy(), g.x(0), scale, mean, variance};
  if (op.ends_with("V3")) in.push_back(c.Float(g.y(5)));
  const tw_edge back = g.op(op, in, {{"epsilon", g.f("epsilon")}, {"data_format", g.s("data_format")}, {"is_training", training}});
  const tw_edge dscale = g.out(back, 1), doffset = g.out(back, 2);
  d.x = back;
  Set(g, 1, dscale);
  Set(g, 2, doffset);
  if (training) return d;
  const tw_edge rate = c.Rate(variance), scaled = c.Mul(scale, rate);
  d.mean = c.Neg(c.Mul(doffset, scaled));
  d.variance = c.Times(-0.5, c.Mul(dscale, c.Mul(scaled, rate)));
  return d;
}

// The gradient through the batch statistics. The reserved outputs hold them unchanged; the other
// two outputs mix them into the given ones by `factor`, with the variance unbiased.
tw_edge ThroughStatistics(const tw::Grad& g, const Channels& c, double factor) {
  if (!g.has_dy(1) && !g.has_dy(2) && !g.has_dy(3) && !g.has_dy(4)) return 0;
  const tw_edge count = c.Count(0, g.x(1)), one = Number(g, 1, count);
  const tw_edge dmean = Plus(g, Arriving(g, c, 1, factor), Arriving(g, c, 3));
  tw_edge dvariance = Arriving(g, c, 2, factor);
  if (dvariance) dvariance = c.Mul(dvariance, g.op("RealDiv", {count, g.op("Maximum", {c.Sub(count, one), one})}));
  dvariance = Plus(g, dvariance, Arriving(g, c, 4));
  tw_edge dx = 0;
  if (dvariance) {
    const tw_edge offset = c.Sub(c.Float(g.x(0)), c.Wide(c.Float(g.y(3))));
    dx = c.Mul(c.Wide(c.Times(2, dvariance)), offset);
  }
  if (dmean) dx = Plus(g, c.Wide(dmean), dx);
  if (!dx) return 0;
  dx = g.op("RealDiv", {dx, count});
  return dvariance ? dx : g.op("BroadcastTo", {dx, g.shape(0)});
}

template <const char* kBackward>
void Gradient(const tw::Grad& g) {
  const Channels c(g);
  const bool training = g.b("is_training");
  const double factor = g.f("exponential_avg_factor");
  ParameterGradients d = ThroughResult(g, c, kBackward, training);
  if (training) {
    if (const tw_edge more = ThroughStatistics(g, c, factor)) d.x = d.x ? c.Add(c.Float(d.x), more) : more;
    d.mean = Arriving(g, c, 1, 1 - factor);
    d.variance = Arriving(g, c, 2, 1 - factor);
  } else {
    d.mean = Plus(g, d.mean, Plus(g, Arriving(g, c, 1), Arriving(g, c, 3)));
    d.variance = Plus(g, d.variance, Plus(g, Arriving(g, c, 2), Arriving(g, c, 4)));
  }
  Set(g, 0, d.x);
  Set(g, 3, d.mean);
  Set(g, 4, d.variance);
}

// Let u = x - mean, r = 1 / sqrt(variance + epsilon), <> the sum over a channel and M its mean. The
// backward op computes
//   dx = scale r (dy - M(dy) - u r^2 M(dy u)), dscale = r <dy u>, doffset = <dy>;
// with given statistics dx has no means. v, s and o are the incoming gradients of these three.
void GradGradient(const tw::Grad& g) {
  const Channels c(g);
  const bool training = g.b("is_training");
  const tw_edge dy = c.Float(g.x(0)), u = c.Sub(c.Float(g.x(1)), c.Wide(c.Float(g.x(3)))), scale = g.x(2), r = c.Rate(c.Float(g.x(4)));
  const tw_edge r2 = c.Mul(r, r);
  tw_edge ddy = 0, dx = 0, dscale = 0, dr = 0;
  if (g.has_dy(0)) {
    const tw_edge v = c.Float(g.dy(0)), scaled = c.Mul(scale, r);
    tw_edge inner = v, product = c.Sum(c.Mul(v, dy)), thrice = product;
    if (training) {
      const tw_edge vu = c.Mul(v, u), mean_dyu = c.Mean(c.Mul(dy, u)), mean_vu = c.Mean(vu);
      inner = c.Sub(c.Sub(v, c.Wide(c.Mean(v))), c.Mul(u, c.Wide(c.Mul(r2, mean_vu))));
      dx = c.Neg(c.Mul(c.Wide(c.Mul(scaled, r2)), c.Add(c.Mul(v, c.Wide(mean_dyu)), c.Mul(dy, c.Wide(mean_vu)))));
      product = c.Sub(product, c.Mul(c.Sum(v), c.Mean(dy)));
      const tw_edge bent = c.Mul(r2, c.Mul(c.Sum(vu), mean_dyu));
      thrice = c.Sub(product, c.Times(3, bent));
      product = c.Sub(product, bent);
    }
    ddy = c.Mul(c.Wide(scaled), inner);
    dscale = c.Mul(r, product);
    dr = c.Mul(scale, thrice);
  }
  if (g.has_dy(1)) {
    const tw_edge s = c.Float(g.dy(1)), sr = c.Wide(c.Mul(s, r));
    ddy = Plus(g, ddy, c.Mul(sr, u));
    dx = Plus(g, dx, c.Mul(sr, dy));
    dr = Plus(g, dr, c.Mul(s, c.Sum(c.Mul(dy, u))));
  }
  if (g.has_dy(2)) {
    const tw_edge o = c.Wide(c.Float(g.dy(2)));
    ddy = ddy ? c.Add(ddy, o) : g.op("BroadcastTo", {o, g.shape(0)});
  }
  Set(g, 0, ddy);
  Set(g, 1, dx);
  Set(g, 2, dscale);
  if (dx) Set(g, 3, c.Neg(c.Sum(dx)));
  if (dr) Set(g, 4, c.Times(-0.5, c.Mul(c.Mul(r, r2), dr)));
}

constexpr char kGrad[] = "FusedBatchNormGrad", kGradV2[] = "FusedBatchNormGradV2", kGradV3[] = "FusedBatchNormGradV3";

// u: type of the parameters and of the reserved outputs. types: the clauses that declare T and U.
std::string Forward(const std::string& name, const std::string& u, const std::string& more, const std::string& types,
                    const std::string& formats) {
  return name + "(x: T, scale: " + u + ", offset: " + u + ", mean: " + u + ", variance: " + u + ") -> (y: T, batch_mean: " + u +
         ", batch_variance: " + u + ", reserve_space_1: " + u + ", reserve_space_2: " + u + more + "); " + types +
         "epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; data_format: " + formats +
         " = \"NHWC\"; is_training: bool = true; ?axes x y data_format; ?data x scale offset mean variance; doc \"(x - mean) / "
         "sqrt(variance + epsilon) * scale + offset per "
         "channel, with the "
         "statistics of the batch while training\"";
}
std::string Backward(const std::string& name, const std::string& scale, const std::string& u, const std::string& more_in,
                     const std::string& reserved, const std::string& types, const std::string& formats) {
  return name + "(y_backprop: T, x: T, scale: " + scale + ", reserve_space_1: " + u + ", reserve_space_2: " + u + more_in +
         ") -> (x_backprop: T, scale_backprop: " + u + ", offset_backprop: " + u + ", " + reserved + "); " + types +
         "epsilon: float = 0.0001; data_format: " + formats +
         " = \"NHWC\"; is_training: bool = true; ?axes y_backprop x x_backprop data_format; doc \"gradient of FusedBatchNorm from the mean "
         "and variance that it used; the last two "
         "results are empty\"";
}

}  // namespace

void register_fused_batch_norm(tw::Plugin& p) {
  const std::string images = "{\"NHWC\", \"NCHW\"}", volumes = "{\"NHWC\", \"NCHW\", \"NDHWC\", \"NCDHW\"}";
  const std::string one = "T: {float}; ", floats = "T: {half, bfloat16, float}; U: {float}; ";
  p.op<Gradient<kGrad>, Rule>(Forward("FusedBatchNorm", "T", "", one, images));
  p.op<Gradient<kGradV2>, Rule>(Forward("FusedBatchNormV2", "U", "", floats, images));
  p.op<Gradient<kGradV3>, Rule>(
      Forward("FusedBatchNormV3", "U", ", reserve_space_3: U", "T: {half, bfloat16, float}; U: {bfloat16, float}; ", volumes));
  const std::string reserved = "reserve_space_3: U, reserve_space_4: U";
  p.op<GradGradient, GradRule>(Backward(kGrad, "T", "T", "", "reserve_space_3: T, reserve_space_4: T", one, images));
  p.op<GradGradient, GradRule>(Backward(kGradV2, "float", "U", "", reserved, floats, images));
  p.op<GradGradient, GradRule>(
      Backward(kGradV3, "float", "U", ", reserve_space_3: U", "reserve_space_4: U, reserve_space_5: U", floats, volumes));
}

}  // namespace thalweg::ops
