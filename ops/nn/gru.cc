// GRU cells: one op computes a whole step with its matrix products; another computes its gradient.
#include "ops/nn/recurrent.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Inputs x, h_prev, w_ru, w_c, b_ru, b_c.
CellSizes WantGru(const tw::Shape& s) {
  const CellSizes sizes = WantCell(s, 0, {{1, "h_prev"}});
  WantWeights(s, sizes, 2, "w_ru", 2);
  WantWeights(s, sizes, 3, "w_c", 1);
  WantBias(s, sizes, 4, "b_ru", 2);
  WantBias(s, sizes, 5, "b_c", 1);
  return sizes;
}

void Rule(const tw::Shape& s) {
  const CellSizes sizes = WantGru(s);
  for (uint32_t o = 0; o < 4; ++o) s.out(o, Dims{sizes.batch, sizes.cell});
}

void GradRule(const tw::Shape& s) {
  const CellSizes sizes = WantGru(s);
  const Dims state = {sizes.batch, sizes.cell};
  for (const auto& [i, name] : {std::pair{6u, "r"}, {7u, "u"}, {8u, "c"}, {9u, "d_h"}}) WantShape(s, i, name, state);
  s.out(0, Dims{sizes.batch, sizes.input});
  s.out(1, state);
  s.out(2, state);
  s.out(3, Dims{sizes.batch, s.calc('*', sizes.cell, 2)});
}

struct Backward {
  tw_edge x, h_prev, c_bar, ru_bar;
};

// The backward op composed of single ops, for steps in which the gates r, u and c also have
// incoming gradients.
Backward Unfused(const Sums& m) {
  const tw::Grad& g = m.g;
  const tw_edge h_prev = g.x(1), r = g.y(0), u = g.y(1), c = g.y(2), dh = g.dy(3);
  Backward d{};
  d.c_bar = m.Tanh(c, m.Add(g.dy(2), m.Mul(dh, m.Less(1, u))));
  const tw_edge u_bar = m.Sigmoid(u, m.Add(g.dy(1), m.Mul(dh, m.Sub(h_prev, c))));
  const auto [x_c, hr] = m.Cut(m.Product(d.c_bar, g.x(3), false, true), 0, 1);
  const tw_edge r_bar = m.Sigmoid(r, m.Add(g.dy(0), m.Mul(hr, h_prev)));
  d.ru_bar = m.Beside({r_bar, u_bar});
  const auto [x_ru, h_ru] = m.Cut(m.Product(d.ru_bar, g.x(2), false, true), 0, 1);
  d.x = m.Add(x_c, x_ru);
  d.h_prev = m.Add(h_ru, m.Add(m.Mul(hr, r), m.Mul(dh, u)));
  return d;
}

Backward Fused(const tw::Grad& g) {
  std::vector<tw_edge> in;
  for (uint32_t k = 0; k < 6; ++k) in.push_back(g.x(k));
  for (uint32_t o = 0; o < 3; ++o) in.push_back(g.y(o));
  in.push_back(g.dy(3));
  const tw_edge back = g.op("GRUBlockCellGrad", in);
  return {back, g.out(back, 1), g.out(back, 2), g.out(back, 3)};
}

void Gradient(const tw::Grad& g) {
  const Sums m{g};
  const Backward d = g.has_dy(0) || g.has_dy(1) || g.has_dy(2) ? Unfused(m) : Fused(g);
  g.dx(0, d.x);
  g.dx(1, d.h_prev);
  g.dx(2, m.Product(m.Beside({g.x(0), g.x(1)}), d.ru_bar, true));
  g.dx(3, m.Product(m.Beside({g.x(0), m.Mul(g.x(1), g.y(0))}), d.c_bar, true));
  g.dx(4, g.op("BiasAddGrad", {d.ru_bar}));
  g.dx(5, g.op("BiasAddGrad", {d.c_bar}));
}

// Let e = d_c_bar, p = d_r_bar, q = d_u_bar, m = e w_c' and n = [p q] w_ru', the last two cut into
// [x, h]. The backward op computes
//   e = d_h (1 - u) (1 - c^2),  q = d_h (h_prev - c) u (1 - u),  p = m_h h_prev r (1 - r),
//   d_x = m_x + n_x,  d_h_prev = n_h + m_h r + d_h u.
// to_NAME is the total gradient that reaches NAME.
void GradGradient(const tw::Grad& g) {
  const Sums m{g};
  const tw_edge h_prev = g.x(1), w_ru = g.x(2), w_c = g.x(3), r = g.x(6), u = g.x(7), c = g.x(8), dh = g.x(9), e = g.y(2), to_h = g.dy(1);
  const tw_edge hr = m.Cut(m.Product(e, w_c, false, true), 0, 1).second;
  const tw_edge to_n = m.Beside({g.dy(0), to_h}), to_pq = m.Add(g.dy(3), m.Product(to_n, w_ru));
  const std::vector<tw_edge> pq = m.Parts(to_pq, 2);
  const tw_edge through_p = m.Sigmoid(r, pq[0]), through_q = m.Sigmoid(u, pq[1]), q_dh = m.Mul(pq[1], dh);
  const tw_edge to_m = m.Beside({g.dy(0), m.Add(m.Mul(to_h, r), m.Mul(through_p, h_prev))});
  const tw_edge to_e = m.Add(g.dy(2), m.Product(to_m, w_c)), through_e = m.Tanh(c, to_e);
  const auto bend = [&](tw_edge y, tw_edge v) { return m.Mul(m.Less(1, m.Times(2, y)), v); };
  const tw_edge rest = m.Less(1, u), past = m.Sub(h_prev, c);
  g.dx(1, m.Add(m.Mul(through_p, hr), m.Mul(through_q, dh)));
  g.dx(2, m.Product(to_n, g.y(3), true));
  g.dx(3, m.Product(to_m, e, true));
  g.dx(6, m.Add(m.Mul(to_h, hr), bend(r, m.Mul(m.Mul(pq[0], hr), h_prev))));
  g.dx(7, m.Sub(m.Add(m.Mul(to_h, dh), bend(u, m.Mul(q_dh, past))), m.Mul(through_e, dh)));
  g.dx(8, m.Sub(m.Times(-2, m.Mul(m.Mul(c, to_e), m.Mul(dh, rest))), m.Mul(through_q, dh)));
  g.dx(9, m.Add(m.Add(m.Mul(to_h, u), m.Mul(through_e, rest)), m.Mul(through_q, past)));
}

}  // namespace

void register_gru(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T) -> (r: T, u: T, c: T, h: T); T: {float}; "
      "?data x h_prev w_ru w_c b_ru b_c; doc \"one step of a GRU cell\"");
  p.op<GradGradient, GradRule>(
      "GRUBlockCellGrad(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T) -> (d_x: T, d_h_prev: T, "
      "d_c_bar: T, d_r_bar_u_bar: T); T: {float}; doc \"gradient of one step of a GRU cell for its inputs and its gates\"");
}

}  // namespace thalweg::ops
