// Scaled dot-product attention and its gradient. The forward op also returns the logarithm of each
// row's sum of exponentials. From it the gradient op recomputes the softmax rows block by block, so
// that no matrix [queries, keys] is ever kept. MatMul, Softmax and MatMul compute the same value
// but keep two such matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// First inputs of both ops; there is at most one bias.
enum : uint32_t { kQuery, kKey, kValue, kBias };

MaybeDims Batch(const MaybeDims& dims) {
  if (!dims) return std::nullopt;
  return Sub(*dims, 0, dims->size() - 2);
}
int64_t FromEnd(const MaybeDims& dims, size_t k) { return dims ? (*dims)[dims->size() - k] : -1; }

struct Sizes {
  MaybeDims batch;
  int64_t queries, keys, width;  // width: elements of a value
  MaybeDims And(std::initializer_list<int64_t> last) const {
    if (!batch) return std::nullopt;
    return Join(*batch, Dims(last));
  }
};

// Rejects a bias that does not broadcast to the shape of the scores.
void WantBias(const tw::Shape& s, const Sizes& sizes) {
  const uint32_t n = s.many(kBias);
  if (n > 1) Fail("'bias' stands for " + std::to_string(n) + " tensors; there may be one, add the others to it");
  const MaybeDims scores = sizes.And({sizes.queries, sizes.keys});
  if (n == 0 || !scores || !s.known(kBias)) return;
  const Dims bias = *In(s, kBias);
  bool fits = bias.size() <= scores->size();
  for (size_t k = 1; fits && k <= bias.size(); ++k) {
    const int64_t own = bias[bias.size() - k], whole = FromEnd(scores, k);
    fits = own == 1 || !Known(own) || !Known(whole) || own == whole;
  }
  if (!fits)
    Fail("'bias' is " + Text(bias) + ", which does not broadcast to the scores' " + Text(scores) + "; give it sizes like these, or 1");
}

Sizes WantOperands(const tw::Shape& s) {
  WantRankAtLeast(s, kQuery, 2, "query");
  WantRankAtLeast(s, kKey, 2, "key");
  WantRankAtLeast(s, kValue, 2, "value");
  const MaybeDims q = In(s, kQuery), k = In(s, kKey), v = In(s, kValue);
  const MaybeDims both = Merge(s, Batch(q), Batch(k), "the axes before the last two of 'query' and 'key'");
  MergeSize(s, FromEnd(q, 1), FromEnd(k, 1), "the last axes of 'query' and 'key'");
  Sizes sizes;
  sizes.batch = Merge(s, both, Batch(v), "the axes before the last two of 'query' and 'value'");
  sizes.queries = FromEnd(q, 2);
  sizes.keys =
      MergeSize(s, FromEnd(k, 2), FromEnd(v, 2), "the number of keys and that of values, the last axis but one of 'key' and 'value'");
  sizes.width = FromEnd(v, 1);
  if (!std::isfinite(s.f("scale"))) Fail("'scale' is " + Text(s.f("scale")) + "; it must be a finite number, or 0 for 1 / sqrt(depth)");
  WantBias(s, sizes);
  return sizes;
}

void Rule(const tw::Shape& s) {
  const Sizes sizes = WantOperands(s);
  Set(s, 0, sizes.And({sizes.queries, sizes.width}));
  Set(s, 1, sizes.And({sizes.queries}));
}

void GradRule(const tw::Shape& s) {
  Sizes sizes = WantOperands(s);
  const uint32_t output = kBias + s.many(kBias), logsumexp = output + 1, grad = output + 2;
  const MaybeDims result = sizes.And({sizes.queries, sizes.width});
  Merge(s, Merge(s, result, In(s, output), "the shape that 'output' has and that it must have"), In(s, grad),
        "the shapes of 'output' and 'grad_output'");
  Merge(s, sizes.And({sizes.queries}), In(s, logsumexp), "the shape that 'logsumexp' must have and that it has");
  for (uint32_t i = 0; i < kBias; ++i) Set(s, i, In(s, i));
}

// Builds the gradients that the kernels do not compute (those of the bias and second derivatives)
// from other ops. All arithmetic uses the wider of the two element types.
class Composed {
 public:
  Composed(const tw::Grad& g, uint32_t logsumexp_type)
      : g_(g), type_(g.type_in(kQuery) == TW_DOUBLE ? g.type_in(kQuery) : logsumexp_type) {}

  tw_edge Wide(tw_edge e) const { return CastTo(g_, e, type_); }
  tw_edge Mul(tw_edge a, tw_edge b) const { return g_.op("Mul", {a, b}); }
  tw_edge Add(tw_edge a, tw_edge b) const { return g_.op("AddV2", {a, b}); }
  tw_edge Sub(tw_edge a, tw_edge b) const { return g_.op("Sub", {a, b}); }
  tw_edge Neg(tw_edge a) const { return g_.op("Neg", {a}); }
  tw_edge Product(tw_edge a, tw_edge b) const { return g_.op("BatchMatMulV2", {a, b}); }
  tw_edge ProductTurned(tw_edge a, tw_edge b) const { return g_.op("BatchMatMulV2", {a, b}, {{"adj_y", true}}); }
  tw_edge TurnedProduct(tw_edge a, tw_edge b) const { return g_.op("BatchMatMulV2", {a, b}, {{"adj_x", true}}); }
  tw_edge RowSums(tw_edge e) const { return g_.op("Sum", {e, Ints(g_, {-1})}, {{"keep_dims", true}}); }
  tw_edge Column(tw_edge e) const { return g_.op("ExpandDims", {e, Int(g_, -1)}); }
  tw_edge Scaled(tw_edge e) const { return Mul(e, Scale()); }

  tw_edge Scale() const {
    if (const double given = g_.f("scale"); given != 0) return g_.scalar(given, type_);
    const MaybeDims dims = ShapeIn(g_, kQuery);
    if (dims && Known(dims->back())) return g_.scalar(1 / std::sqrt(std::max<double>(1, double(dims->back()))), type_);
    const tw_edge depth = g_.op("Maximum", {g_.op("Prod", {Tail(g_, g_.shape(kQuery), -1), Ints(g_, {0})}), Int(g_, 1)});
    return g_.op("Rsqrt", {Wide(depth)});
  }

  // Returns exp(scores - logsumexp), the rows of softmax. A row that is masked entirely has
  // logsumexp -infinity and becomes 0. Masked scores are also set to 0 before the exponential,
  // which could overflow there.
  tw_edge Shares(tw_edge logsumexp) const {
    tw_edge scores = Scaled(ProductTurned(Wide(g_.x(kQuery)), Wide(g_.x(kKey))));
    if (HasBias()) scores = Add(scores, Wide(g_.x(kBias)));
    const double lowest = type_ == TW_DOUBLE ? std::numeric_limits<double>::lowest() : double(std::numeric_limits<float>::lowest());
    const tw_edge shift = g_.op("Maximum", {Wide(logsumexp), g_.scalar(lowest, type_)});
    return Seen(g_.op("Exp", {Seen(Sub(scores, Column(shift)))}));
  }

  bool HasBias() const { return g_.c->in_at[kBias + 1] > g_.c->in_at[kBias]; }
  void SetBias(tw_edge scores) const {
    if (HasBias()) g_.dx(kBias, CastTo(g_, SumTo(g_, scores, kBias, DimsOf(g_, scores)), g_.type_in(kBias)));
  }

 private:
  tw_edge Seen(tw_edge scores) const { return g_.b("is_causal") ? g_.op("MatrixBandPart", {scores, Int(g_, -1), Int(g_, 0)}) : scores; }

  const tw::Grad& g_;
  const uint32_t type_;
};

// Passes on a gradient of logsumexp, which reaches the scores as each row's softmax times it. One
// more column does so: 0 in the values, -1 in the output, and this gradient in the gradient of the
// output. The gradient op subtracts the product of the last two.
struct OneColumnMore {
  tw_edge value, output, grad_output;
};
OneColumnMore WithLogSumExp(const tw::Grad& g) {
  const uint32_t type = g.type_in(kValue);
  const auto beside = [&](tw_edge e, tw_edge column) { return g.op("ConcatV2", {e, column, Int(g, -1)}); };
  const tw_edge column = CastTo(g, g.op("ExpandDims", {g.dy(1), Int(g, -1)}), type);
  const tw_edge zeros = g.op("Fill", {Concat(g, {Head(g, g.shape(kValue), -1), Ints(g, {1})}), g.scalar(0, type)});
  return {beside(g.x(kValue), zeros), beside(g.y(0), g.op("Neg", {g.op("OnesLike", {column})})), beside(g.dy(0), column)};
}
tw_edge WithoutLastColumn(const tw::Grad& g, tw_edge e) {
  return g.op("StridedSlice", {e, Ints(g, {0, 0}), Ints(g, {0, -1}), Ints(g, {1, 1})}, {{"ellipsis_mask", 1}, {"begin_mask", 2}});
}

// Returns the logsumexp from which the softmax is recomputed. For double inputs it must be double:
// near scores of 1e9 a float is off by tens, and so would the exponents be. If the forward node
// returned float, this emits the op once more.
tw_edge Logarithms(const tw::Grad& g) {
  if (g.type_in(kQuery) != TW_DOUBLE || g.type_out(1) == TW_DOUBLE) return g.y(1);
  std::vector<tw_edge> in = {g.x(kQuery), g.x(kKey), g.x(kValue)};
  if (g.c->in_at[kBias + 1] > g.c->in_at[kBias]) in.push_back(g.x(kBias));
  return g.out(
      g.op("ScaledDotProductAttention", in, {{"is_causal", g.b("is_causal")}, {"scale", g.f("scale")}, tw::Attr::Type("U", TW_DOUBLE)}), 1);
}

void Gradient(const tw::Grad& g) {
  const Composed c(g, g.type_out(1));
  const tw_edge logarithms = Logarithms(g);
  const bool more = g.has_dy(1);
  const OneColumnMore of = more ? WithLogSumExp(g) : OneColumnMore{g.x(kValue), g.y(0), g.dy(0)};
  std::vector<tw_edge> in = {g.x(kQuery), g.x(kKey), of.value};
  if (c.HasBias()) in.push_back(g.x(kBias));
  in.insert(in.end(), {of.output, logarithms, of.grad_output});
  const tw_edge back = g.op("ScaledDotProductAttentionGrad", in, {{"is_causal", g.b("is_causal")}, {"scale", g.f("scale")}});
  g.dx(kQuery, back);
  g.dx(kKey, g.out(back, 1));
  g.dx(kValue, more ? WithoutLastColumn(g, g.out(back, 2)) : g.out(back, 2));
  if (!c.HasBias()) return;
  const tw_edge dy = c.Wide(of.grad_output), row = c.RowSums(c.Mul(dy, c.Wide(of.output)));
  c.SetBias(c.Mul(c.Shares(logarithms), c.Sub(c.ProductTurned(dy, c.Wide(of.value)), row)));
}

// Let P be the softmax, dP = dy v', D = <dy y> and dS = P (dP - D), where <> sums a row. The
// gradient op computes
//   dq = scale dS k,  dk = scale dS' q,  dv = P' dy.
// The incoming gradients of dq, dk and dv are called a, b and c. The gradient of dS is
// G = scale (a k' + q b'), and that of the scores is T = P (G (dP - D) + dy c').
void GradGradient(const tw::Grad& g) {
  const uint32_t y_at = g.c->in_at[kBias + 1], logsumexp_at = y_at + 1, dy_at = y_at + 2;
  const Composed m(g, g.type_in(logsumexp_at));
  const auto set = [&](uint32_t i, tw_edge e) { g.dx(i, CastTo(g, e, g.type_in(i))); };
  const auto plus = [&](tw_edge a, tw_edge b) { return !a ? b : !b ? a : m.Add(a, b); };
  const tw_edge q = m.Wide(g.x(kQuery)), k = m.Wide(g.x(kKey)), v = m.Wide(g.x(kValue)), y = m.Wide(g.x(y_at)), dy = m.Wide(g.x(dy_at));
  const tw_edge shares = m.Shares(g.x(logsumexp_at));
  tw_edge to_shares = 0, dq = 0, dk = 0, ddy = 0;
  if (g.has_dy(0) || g.has_dy(1)) {
    const tw_edge a = m.Wide(g.dy(0)), b = m.Wide(g.dy(1));
    const tw_edge to_slopes = m.Scaled(m.Add(m.ProductTurned(a, k), m.ProductTurned(q, b))), passed = m.Mul(shares, to_slopes);
    const tw_edge apart = m.Sub(m.ProductTurned(dy, v), m.RowSums(m.Mul(dy, y))), slopes = m.Mul(shares, apart);
    const tw_edge to_row = m.Neg(m.RowSums(passed));
    to_shares = m.Mul(to_slopes, apart);
    dq = m.Product(slopes, b);
    dk = m.TurnedProduct(slopes, a);
    ddy = m.Add(m.Product(passed, v), m.Mul(to_row, y));
    set(kValue, m.TurnedProduct(passed, dy));
    set(y_at, m.Mul(to_row, dy));
  }
  if (g.has_dy(2)) {
    const tw_edge c = m.Wide(g.dy(2));
    to_shares = plus(to_shares, m.ProductTurned(dy, c));
    ddy = plus(ddy, m.Product(shares, c));
  }
  if (!to_shares) return;
  const tw_edge to_scores = m.Mul(shares, to_shares);
  set(kQuery, m.Scaled(plus(dq, m.Product(to_scores, k))));
  set(kKey, m.Scaled(plus(dk, m.TurnedProduct(to_scores, q))));
  set(logsumexp_at, g.op("Neg", {g.op("Sum", {to_scores, Ints(g, {-1})})}));
  set(dy_at, ddy);
  m.SetBias(to_scores);
}

#define OPERANDS "query: T, key: T, value: T, bias: T * N"
#define CLAUSES \
  "T: " OPS_FLOATS "; U: {float, double} = float; N: int >= 0; is_causal: bool = false; scale: float = 0.0; ?data query key value; "

}  // namespace

void register_attention(tw::Plugin& p) {
  p.op<Gradient, Rule>("ScaledDotProductAttention(" OPERANDS ") -> (output: T, logsumexp: U); " CLAUSES
                       "doc \"softmax(scale query key' + bias) value, and the logarithm of each row's sum of exponentials\"");
  p.op<GradGradient, GradRule>("ScaledDotProductAttentionGrad(" OPERANDS
                               ", output: T, logsumexp: U, grad_output: T) -> (grad_query: T, grad_key: T, grad_value: T); " CLAUSES
                               "doc \"gradient of ScaledDotProductAttention from its results\"");
}

}  // namespace thalweg::ops
