// LRN, local response normalisation (Krizhevsky, Sutskever, Hinton: "ImageNet classification with
// deep convolutional neural networks", 2012), and its backward op. LRN divides each element by
// a power of the squares around it along the last axis.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void CheckRadius(const tw::Shape& s) {
  const int64_t radius = s.i("depth_radius");
  if (radius < 0 || radius > INT32_MAX) Fail("'depth_radius' is " + tw::text(radius) + "; it must lie in [0, 2147483647]");
}

void Rule(const tw::Shape& s) {
  CheckRadius(s);
  WantRank(s, 0, 4, "input");
  s.out(0, In(s, 0).value_or(Dims(4, -1)));
}

void GradRule(const tw::Shape& s) {
  CheckRadius(s);
  WantRank(s, 0, 4, "input_grads");
  WantRank(s, 1, 4, "input_image");
  WantRank(s, 2, 4, "output_image");
  const MaybeDims image = Merge(s, In(s, 0), In(s, 1), "the shapes of 'input_grads' and 'input_image'");
  s.out(0, Merge(s, image, In(s, 2), "the shapes of 'input_image' and 'output_image'").value_or(Dims(4, -1)));
}

void Gradient(const tw::Grad& g) {
  g.dx(0, g.op("LRNGrad", {g.dy(), g.x(0), g.y()},
               {{"depth_radius", g.i("depth_radius")}, {"bias", g.f("bias")}, {"alpha", g.f("alpha")}, {"beta", g.f("beta")}}));
}

// The arithmetic of the second derivative.
class Terms {
 public:
  explicit Terms(const tw::Grad& g) : g_(g), band_(Band()) {}
  tw_edge Mul(tw_edge a, tw_edge b) const { return g_.op("Mul", {a, b}); }
  tw_edge Times(double factor, tw_edge e) const { return Mul(Number(g_, factor, e), e); }
  tw_edge Add(tw_edge a, tw_edge b) const { return g_.op("AddV2", {a, b}); }
  tw_edge Div(tw_edge a, tw_edge b) const { return g_.op("RealDiv", {a, b}); }
  tw_edge Power(tw_edge a, double exponent) const { return g_.op("Pow", {a, Number(g_, exponent, a)}); }
  // Sums the neighbours of each element along the last axis, as a product with a band matrix of
  // ones.
  tw_edge Around(tw_edge e) const {
    const tw_edge rows = g_.op("Reshape", {e, Concat(g_, {Ints(g_, {-1}), Tail(g_, g_.shape(1), 3)})});
    return g_.op("Reshape", {g_.op("MatMul", {rows, band_}), g_.shape(1)});
  }

 private:
  tw_edge Band() const {
    const tw_edge channels = g_.op("Reshape", {Tail(g_, g_.shape(1), 3), Ints(g_, {})});
    const tw_edge places = g_.op("Range", {Int(g_, 0), channels, Int(g_, 1)});
    const tw_edge apart = g_.op("Abs", {g_.op("Sub", {places, g_.op("ExpandDims", {places, Int(g_, 1)})})});
    return CastTo(g_, g_.op("LessEqual", {apart, Int(g_, g_.i("depth_radius"))}), g_.type_in(0));
  }

  const tw::Grad& g_;
  tw_edge band_;
};

// Let n = bias + alpha W(x^2), W the sum over neighbours. The backward op of (dy, x, y) computes
//   dx = dy n^-beta - 2 alpha beta x W(dy y / n);
// v is the incoming gradient of dx.
void GradGradient(const tw::Grad& g) {
  const Terms t(g);
  const double alpha = g.f("alpha"), beta = g.f("beta");
  const tw_edge v = g.dy(), dy = g.x(0), x = g.x(1), y = g.x(2);
  const tw_edge squares = t.Times(alpha, t.Around(g.op("Square", {x})));
  const tw_edge n = t.Add(Number(g, g.f("bias"), x), squares), power = t.Power(n, -beta);
  const tw_edge wvx = t.Around(t.Mul(v, x)), scaled = t.Times(-2 * alpha * beta, t.Div(wvx, n));
  g.dx(0, t.Add(t.Mul(v, power), t.Mul(scaled, y)));
  g.dx(2, t.Mul(scaled, dy));
  // dx depends on x directly and through n.
  const tw_edge ratio = t.Div(t.Mul(dy, y), n), direct = t.Times(-2 * alpha * beta, t.Mul(v, t.Around(ratio)));
  const tw_edge dn = t.Add(t.Times(-beta, t.Div(t.Mul(t.Mul(v, dy), power), n)), t.Times(2 * alpha * beta, t.Div(t.Mul(ratio, wvx), n)));
  g.dx(1, t.Add(direct, t.Times(2 * alpha, t.Mul(x, t.Around(dn)))));
}

#define ATTRS "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = float; "

}  // namespace

void register_lrn(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "LRN(input: T) -> (output: T); " ATTRS
      "?data input; doc \"input / (bias + alpha * sum of squares)^beta, summed over depth_radius neighbours on either side along the last "
      "axis\"");
  p.op<GradGradient, GradRule>("LRNGrad(input_grads: T, input_image: T, output_image: T) -> (output: T); " ATTRS "doc \"gradient of LRN\"");
}

}  // namespace thalweg::ops
