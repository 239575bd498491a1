// LSTM cells and sequences of them; one op computes a step, or all steps, with the matrix products.
// The columns of the weights belong to the input gate, the new content, the forget gate and the
// output gate, in that order. In BlockLSTMV2 the forget gate comes before the new content.
#include "ops/nn/recurrent.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr int64_t kGates = 4;
// Outputs of the forward ops.
enum : uint32_t { kI, kCs, kF, kO, kCi, kCo, kH, kOutputs };

// Inputs from `first` on: x, cs_prev, h_prev, w, wci, wcf, wco, b.
CellSizes WantLstm(const tw::Shape& s, uint32_t first, bool sequence) {
  const CellSizes sizes = WantCell(s, first, {{first + 1, "cs_prev"}, {first + 2, "h_prev"}}, sequence);
  WantWeights(s, sizes, first + 3, "w", kGates);
  const char* const peepholes[] = {"wci", "wcf", "wco"};
  for (uint32_t k = 0; k < 3; ++k) {
    WantVector(s, first + 4 + k, peepholes[k]);
    if (s.b("use_peephole")) WantBias(s, sizes, first + 4 + k, peepholes[k], 1);
  }
  WantBias(s, sizes, first + 7, "b", kGates);
  return sizes;
}

void WantOutputs(const tw::Shape& s, uint32_t first, std::initializer_list<const char*> names, const Dims& dims) {
  for (const char* name : names) WantShape(s, first++, name, dims);
}

void CellRule(const tw::Shape& s) {
  const CellSizes sizes = WantLstm(s, 0, false);
  for (uint32_t o = 0; o < kOutputs; ++o) s.out(o, Dims{sizes.batch, sizes.cell});
}

void CellGradRule(const tw::Shape& s) {
  const CellSizes sizes = WantLstm(s, 0, false);
  const Dims state = {sizes.batch, sizes.cell};
  WantOutputs(s, 8, {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"}, state);
  s.out(0, state);
  s.out(1, Dims{sizes.batch, s.calc('*', sizes.cell, kGates)});
  for (uint32_t k = 0; k < 3; ++k) Set(s, 2 + k, In(s, 4 + k));
}

Dims SequenceShape(const tw::Shape& s, const CellSizes& sizes) { return {s.known(1) ? s.dim(1, 0) : -1, sizes.batch, sizes.cell}; }

void CheckLength(const tw::Shape& s) {
  const std::optional<int64_t> length = ScalarValue(s, 0, "seq_len_max");
  const int64_t time = s.known(1) ? s.dim(1, 0) : -1;
  if (length && (*length < 0 || (Known(time) && *length > time)))
    Fail("'seq_len_max' is " + tw::text(*length) + "; it must be in [0, " + (Known(time) ? tw::text(time) : "steps of 'x'") + "]");
}

void SequenceRule(const tw::Shape& s) {
  const CellSizes sizes = WantLstm(s, 1, true);
  CheckLength(s);
  for (uint32_t o = 0; o < kOutputs; ++o) s.out(o, SequenceShape(s, sizes));
}

void SequenceGradRule(const tw::Shape& s) {
  const CellSizes sizes = WantLstm(s, 1, true);
  CheckLength(s);
  WantOutputs(s, 9, {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"}, SequenceShape(s, sizes));
  for (uint32_t k = 0; k < 8; ++k) Set(s, k, In(s, k + 1));
}

// Returns the gradients of the pre-activations (before sigmoid or tanh) of i, ci, f and o that come
// from the gate outputs themselves. Empty if no gate output has an incoming gradient.
std::vector<tw_edge> AtGates(const Sums& m) {
  const tw::Grad& g = m.g;
  if (!g.has_dy(kI) && !g.has_dy(kCi) && !g.has_dy(kF) && !g.has_dy(kO)) return {};
  return {m.Sigmoid(g.y(kI), g.dy(kI)), m.Tanh(g.y(kCi), g.dy(kCi)), m.Sigmoid(g.y(kF), g.dy(kF)), m.Sigmoid(g.y(kO), g.dy(kO))};
}

// The gradient ignores the clipping of the state, as in TensorFlow.
void CellGradient(const tw::Grad& g) {
  const Sums m{g};
  const bool peephole = g.b("use_peephole");
  const std::vector<tw_edge> gates = AtGates(m);
  const tw_edge cs_prev = g.x(1), wci = g.x(4), wcf = g.x(5), wco = g.x(6);
  tw_edge dcs = g.dy(kCs);
  if (g.has_dy(kCo)) dcs = m.Add(dcs, m.Tanh(g.y(kCo), g.dy(kCo)));
  if (!gates.empty() && peephole) dcs = m.Add(dcs, m.Mul(gates[3], wco));
  std::vector<tw_edge> in;
  for (uint32_t k = 0; k < 8; ++k) in.push_back(g.x(k));
  for (uint32_t o : {kI, kCs, kF, kO, kCi, kCo}) in.push_back(g.y(o));
  in.insert(in.end(), {dcs, g.dy(kH)});
  const tw_edge back = g.op("LSTMBlockCellGrad", in, {{"use_peephole", peephole}});
  tw_edge dcs_prev = back, dgates = g.out(back, 1), dwci = g.out(back, 2), dwcf = g.out(back, 3), dwco = g.out(back, 4);
  if (!gates.empty()) dgates = m.Add(dgates, m.Beside(gates));
  if (!gates.empty() && peephole) {
    dcs_prev = m.Add(dcs_prev, m.Add(m.Mul(gates[0], wci), m.Mul(gates[2], wcf)));
    dwci = m.Add(dwci, m.Rows(m.Mul(gates[0], cs_prev)));
    dwcf = m.Add(dwcf, m.Rows(m.Mul(gates[2], cs_prev)));
    dwco = m.Add(dwco, m.Rows(m.Mul(gates[3], g.y(kCs))));
  }
  const auto [dx, dh_prev] = m.Cut(m.Product(dgates, g.x(3), false, true), 0, 2);
  g.dx(0, dx);
  g.dx(1, dcs_prev);
  g.dx(2, dh_prev);
  g.dx(3, m.Product(m.Beside({g.x(0), g.x(2)}), dgates, true));
  g.dx(4, dwci);
  g.dx(5, dwcf);
  g.dx(6, dwco);
  g.dx(7, g.op("BiasAddGrad", {dgates}));
}

// With s' the slope of a gate, the backward op computes
//   do = o' h_grad co,  dcs = co' h_grad o + cs_grad + wco do,  di = i' dcs ci,  dci = ci' dcs i,
//   df = f' dcs cs_prev,  cs_prev_grad = dcs f + wci di + wcf df,
//   wci_grad = <di cs_prev>,  wcf_grad = <df cs_prev>,  wco_grad = <do cs>,
// where <> sums over rows. to_i, to_ci, to_f, to_o and to_cs are the total gradients that reach
// di, dci, df, do and dcs.
void CellGradGradient(const tw::Grad& g) {
  const Sums m{g};
  const bool peephole = g.b("use_peephole");
  const tw_edge cs_prev = g.x(1), wci = g.x(4), wcf = g.x(5), wco = g.x(6), i = g.x(8), cs = g.x(9), f = g.x(10), o = g.x(11), ci = g.x(12),
                co = g.x(13), cs_grad = g.x(14), h_grad = g.x(15), at_cs_prev = g.dy(0);
  const std::vector<tw_edge> at_gates = m.Parts(g.dy(1), kGates);
  const tw_edge h_co = m.Mul(h_grad, co), h_o = m.Mul(h_grad, o), dout = m.Sigmoid(o, h_co);
  tw_edge dcs = m.Add(m.Tanh(co, h_o), cs_grad), to_i = at_gates[0], to_ci = at_gates[1], to_f = at_gates[2], to_o = at_gates[3];
  if (peephole) {
    dcs = m.Add(dcs, m.Mul(dout, wco));
    to_i = m.Add(to_i, m.Add(m.Mul(at_cs_prev, wci), m.Mul(cs_prev, g.dy(2))));
    to_f = m.Add(to_f, m.Add(m.Mul(at_cs_prev, wcf), m.Mul(cs_prev, g.dy(3))));
    to_o = m.Add(to_o, m.Mul(cs, g.dy(4)));
  }
  const tw_edge through_i = m.Sigmoid(i, to_i), through_ci = m.Tanh(ci, to_ci), through_f = m.Sigmoid(f, to_f);
  const tw_edge to_cs = m.Add(m.Add(m.Mul(through_i, ci), m.Mul(through_ci, i)), m.Add(m.Mul(through_f, cs_prev), m.Mul(at_cs_prev, f)));
  if (peephole) to_o = m.Add(to_o, m.Mul(to_cs, wco));
  const tw_edge di = m.Mul(m.Sigmoid(i, dcs), ci), df = m.Mul(m.Sigmoid(f, dcs), cs_prev);
  // The derivative of y - y^2 (slope of a sigmoid) is 1 - 2 y; that of 1 - y^2 (slope of tanh) is
  // -2 y.
  const auto bend = [&](tw_edge y, tw_edge e) { return m.Mul(m.Less(1, m.Times(2, y)), e); };
  g.dx(8, m.Add(bend(i, m.Mul(m.Mul(to_i, dcs), ci)), m.Mul(through_ci, dcs)));
  g.dx(12, m.Sub(m.Mul(through_i, dcs), m.Times(2, m.Mul(m.Mul(ci, to_ci), m.Mul(dcs, i)))));
  g.dx(10, m.Add(bend(f, m.Mul(m.Mul(to_f, dcs), cs_prev)), m.Mul(at_cs_prev, dcs)));
  g.dx(11, m.Add(m.Mul(m.Tanh(co, to_cs), h_grad), bend(o, m.Mul(to_o, h_co))));
  g.dx(13, m.Sub(m.Mul(m.Sigmoid(o, to_o), h_grad), m.Times(2, m.Mul(m.Mul(co, to_cs), h_o))));
  g.dx(14, to_cs);
  g.dx(15, m.Add(m.Mul(m.Tanh(co, to_cs), o), m.Mul(m.Sigmoid(o, to_o), co)));
  tw_edge dcs_prev = m.Mul(through_f, dcs);
  if (peephole) {
    dcs_prev = m.Add(dcs_prev, m.Add(m.Mul(di, g.dy(2)), m.Mul(df, g.dy(3))));
    g.dx(4, m.Rows(m.Mul(at_cs_prev, di)));
    g.dx(5, m.Rows(m.Mul(at_cs_prev, df)));
    g.dx(6, m.Rows(m.Mul(to_cs, dout)));
    g.dx(9, m.Mul(dout, g.dy(4)));
  }
  g.dx(1, dcs_prev);
}

template <const char* kBackward>
void SequenceGradient(const tw::Grad& g) {
  for (const auto& [o, name] : {std::pair{kI, "i"}, {kF, "f"}, {kO, "o"}, {kCi, "ci"}, {kCo, "co"}})
    if (g.has_dy(o))
      throw tw::Error{TW_UNIMPLEMENTED, "a gradient arrives at output '" + std::string(name) +
                                            "', and only those at 'cs' and 'h' can be followed; unroll LSTMBlockCell instead"};
  std::vector<tw_edge> in;
  for (uint32_t k = 0; k < 9; ++k) in.push_back(g.x(k));
  for (uint32_t o = 0; o < kOutputs; ++o) in.push_back(g.y(o));
  in.insert(in.end(), {g.dy(kCs), g.dy(kH)});
  const tw_edge back = g.op(kBackward, in, {{"use_peephole", g.b("use_peephole")}});
  for (uint32_t k = 0; k < 8; ++k) g.dx(k + 1, k == 0 ? back : g.out(back, k));
}

constexpr char kGrad[] = "BlockLSTMGrad", kGradV2[] = "BlockLSTMGradV2";

#define LSTM_IN "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
#define LSTM_OUT "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"
#define LSTM_TYPES "use_peephole: bool = false; T: {half, float}; ?data x cs_prev h_prev w wci wcf wco b; "
#define LSTM_GRAD_TYPES "use_peephole: bool; T: {half, float}; "

std::string Backward(const std::string& name) {
  return name +
         "(seq_len_max: int64, " LSTM_IN ", " LSTM_OUT
         ", cs_grad: T, h_grad: T) -> (x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, "
         "b_grad: T); " LSTM_GRAD_TYPES
         "no_gradient \"second derivatives are those of cells: unroll LSTMBlockCell\"; "
         "doc \"gradient of the sequence of LSTM cells from what arrives at cs and h\"";
}

}  // namespace

void register_lstm(tw::Plugin& p) {
  p.op<CellGradient, CellRule>("LSTMBlockCell(" LSTM_IN ") -> (" LSTM_OUT "); forget_bias: float = 1.0; cell_clip: float = 3.0; " LSTM_TYPES
                               "doc \"one step of an LSTM cell\"");
  p.op<CellGradGradient, CellGradRule>(
      "LSTMBlockCellGrad(" LSTM_IN
      ", i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T) -> (cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, "
      "wco_grad: T); " LSTM_GRAD_TYPES "doc \"gradient of one step of an LSTM cell for its state, its gates and its peepholes\"");
  p.op<SequenceGradient<kGrad>, SequenceRule>("BlockLSTM(seq_len_max: int64, " LSTM_IN ") -> (" LSTM_OUT
                                              "); forget_bias: float = 1.0; cell_clip: float = 3.0; " LSTM_TYPES
                                              "doc \"an LSTM cell over a sequence; gates in the order i, ci, f, o\"");
  p.op<SequenceGradient<kGradV2>, SequenceRule>("BlockLSTMV2(seq_len_max: int64, " LSTM_IN ") -> (" LSTM_OUT
                                                "); cell_clip: float = 0.0; " LSTM_TYPES
                                                "doc \"an LSTM cell over a sequence; gates in the order i, f, ci, o\"");
  p.op<nullptr, SequenceGradRule>(Backward(kGrad));
  p.op<nullptr, SequenceGradRule>(Backward(kGradV2));
}

}  // namespace thalweg::ops
