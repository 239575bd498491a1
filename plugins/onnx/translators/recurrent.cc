// RNN, GRU and LSTM over sequences. An LSTM in its usual form is one node of ours, BlockLSTMV2; everything else is a loop over steps.
// Sequences that end early are computed to the common end; what lies behind their ends is cut off afterwards. A reverse direction reverses
// each sequence before and after.
#include <algorithm>
#include <functional>
#include <iterator>

#include "matmul.h"
#include "while.h"

namespace thalweg::onnx {
namespace {

using Function = std::function<Value(Builder& b, const Value& x)>;

Value Mul(Builder& b, const Value& x, double y) { return y == 1 ? x : b.op("Mul", {x, b.like(x, y)}); }
Value Plus(Builder& b, const Value& x, double y) { return y == 0 ? x : b.op("AddV2", {x, b.like(x, y)}); }

// The function of that name, lower case; alpha and beta: as far as it has them.
Function FunctionOf(Node& n, const std::string& name, double alpha, double beta) {
  if (name == "sigmoid") return [](Builder& b, const Value& x) { return b.op("Sigmoid", {x}); };
  if (name == "tanh") return [](Builder& b, const Value& x) { return b.op("Tanh", {x}); };
  if (name == "relu") return [](Builder& b, const Value& x) { return b.op("Relu", {x}); };
  if (name == "softplus") return [](Builder& b, const Value& x) { return b.op("Softplus", {x}); };
  if (name == "softsign") return [](Builder& b, const Value& x) { return b.op("Softsign", {x}); };
  if (name == "affine") return [=](Builder& b, const Value& x) { return Plus(b, Mul(b, x, alpha), beta); };
  if (name == "leakyrelu") return [=](Builder& b, const Value& x) { return b.op("LeakyRelu", {x}, {{"alpha", alpha}}); };
  if (name == "scaledtanh") return [=](Builder& b, const Value& x) { return Mul(b, b.op("Tanh", {Mul(b, x, beta)}), alpha); };
  if (name == "hardsigmoid") {
    return [=](Builder& b, const Value& x) {
      const Value line = Plus(b, Mul(b, x, alpha), beta);
      return b.op("Maximum", {b.op("Minimum", {line, b.like(x, 1)}), b.like(x, 0)});
    };
  }
  if (name == "thresholdedrelu") {
    return [=](Builder& b, const Value& x) { return b.op("SelectV2", {b.op("Greater", {x, b.like(x, alpha)}), x, b.like(x, 0)}); };
  }
  if (name == "elu") {
    return [=](Builder& b, const Value& x) {
      const Value below = Mul(b, b.op("Expm1", {b.op("Minimum", {x, b.like(x, 0)})}), alpha);
      return b.op("SelectV2", {b.op("Greater", {x, b.like(x, 0)}), x, below});
    };
  }
  n.fail("activation '" + name + "' is unknown");
}

std::pair<double, double> Defaults(const std::string& name) {
  if (name == "leakyrelu") return {0.01, 0};
  if (name == "hardsigmoid") return {0.2, 0.5};
  if (name == "elu") return {1, 0};
  if (name == "thresholdedrelu") return {1, 0};
  return {1, 1};  // Affine and ScaledTanh have none of their own
}

// The cell: what it is called, and one step of a sequence.
struct Cell {
  int64_t gates;
  std::vector<std::string> functions;  // by default
};

struct Direction {
  Value x;       // [time, batch, input], in the order in which it is read
  Value w, r;    // [input, gates hidden], [hidden, gates hidden]
  Value wb, rb;  // [gates hidden]; absent: none
  Value h, c;    // [batch, hidden]
  Value p;       // [3 hidden] of an LSTM; absent: none
  std::vector<Function> f;
};

struct Recurrence {
  int64_t hidden = 0;
  double clip = 0;    // 0: none
  bool flag = false;  // linear_before_reset of a GRU, input_forget of an LSTM
  bool usual = true;  // the default activations
  uint32_t dtype = 0;
};

Value Clip(Builder& b, const Recurrence& r, const Value& x) {
  return r.clip == 0 ? x : b.op("Maximum", {b.op("Minimum", {x, b.like(x, r.clip)}), b.like(x, -r.clip)});
}

// Columns [k hidden, (k + 1) hidden) of a matrix, or that part of a vector.
Value Gate(Builder& b, const Recurrence& r, const Value& v, int64_t k) {
  const bool vector = v.rank() == 1;
  const std::vector<int64_t> begin = vector ? std::vector<int64_t>{k * r.hidden} : std::vector<int64_t>{0, k * r.hidden};
  const std::vector<int64_t> end = vector ? std::vector<int64_t>{(k + 1) * r.hidden} : std::vector<int64_t>{0, (k + 1) * r.hidden};
  return b.op("StridedSlice", {v, b.ints(begin), b.ints(end), b.ints(std::vector<int64_t>(begin.size(), 1))},
              {{"end_mask", vector ? 0 : 1}});
}

Value Add(Builder& b, const Value& x, const Value& y) { return y ? b.op("AddV2", {x, y}) : x; }

// States [time, batch, hidden] of h, and of c if the cell has it.
struct States {
  Value h, c;
};
// One step: given the inputs' share of the gates [batch, gates hidden] and the states, returns the next states.
using Step = std::function<std::vector<Value>(Builder& b, const Value& share, const std::vector<Value>& states)>;

States Run(Builder& b, Node& n, const Direction& d, const std::vector<Value>& initial, const Step& step) {
  const Value share = Add(b, MatMulOf(b, n, d.x, d.w), d.wb);
  const Value steps = b.cast(b.size(d.x, 0), TW_INT32);
  std::vector<Value> first = {b.scalar(TW_INT32, 0)};
  first.insert(first.end(), initial.begin(), initial.end());
  for (size_t i = 0; i < initial.size(); ++i) first.push_back(NewList(b, initial[i].dtype()));
  const size_t count = initial.size();
  const LoopPart go = [&](Builder& body, const std::vector<Value>& v) { return std::vector<Value>{body.op("Less", {v[0], steps})}; };
  const LoopPart each = [&](Builder& body, const std::vector<Value>& v) {
    const Value now = body.op("GatherV2", {share, v[0], body.scalar(TW_INT32, 0)});
    const std::vector<Value> next = step(body, now, {v.begin() + 1, v.begin() + 1 + static_cast<int64_t>(count)});
    std::vector<Value> out = {body.op("AddV2", {v[0], body.scalar(TW_INT32, 1)})};
    out.insert(out.end(), next.begin(), next.end());
    for (size_t i = 0; i < count; ++i) out.push_back(body.op("TensorListPushBack", {v[1 + count + i], next[i]}));
    return out;
  };
  const std::vector<Value> last = RunWhile(b, first, go, each);
  States states;
  states.h = Stacked(b, last[1 + count], initial[0].dtype(), initial[0].shape());
  if (count > 1) states.c = Stacked(b, last[2 + count], initial[1].dtype(), initial[1].shape());
  return states;
}

States RunRnn(Builder& b, Node& n, const Recurrence& r, const Direction& d) {
  Direction shared = d;
  if (d.rb) shared.wb = b.op("AddV2", {d.wb, d.rb});
  return Run(b, n, shared, {d.h}, [&](Builder& body, const Value& share, const std::vector<Value>& s) {
    return std::vector<Value>{d.f[0](body, Clip(body, r, body.op("AddV2", {share, body.op("MatMul", {s[0], d.r})})))};
  });
}

// Gates z, r, h.
States RunGru(Builder& b, Node& n, const Recurrence& r, const Direction& d) {
  const Value r_zr = b.op("StridedSlice", {d.r, b.ints({0, 0}), b.ints({0, 2 * r.hidden}), b.ints({1, 1})}, {{"end_mask", 1}});
  const Value r_h = Gate(b, r, d.r, 2);
  const Value b_h = d.rb ? Gate(b, r, d.rb, 2) : Value();
  const Value b_zr = d.rb ? b.slice0(d.rb, 0, 2 * r.hidden) : Value();
  return Run(b, n, d, {d.h}, [&](Builder& body, const Value& share, const std::vector<Value>& s) {
    const Value& h = s[0];
    const Value both = Add(body, body.op("MatMul", {h, r_zr}), b_zr);
    const Value z = d.f[0](body, Clip(body, r, body.op("AddV2", {Gate(body, r, share, 0), Gate(body, r, both, 0)})));
    const Value reset = d.f[0](body, Clip(body, r, body.op("AddV2", {Gate(body, r, share, 1), Gate(body, r, both, 1)})));
    Value content;
    if (r.flag) {
      content = body.op("Mul", {reset, Add(body, body.op("MatMul", {h, r_h}), b_h)});
    } else {
      content = Add(body, body.op("MatMul", {body.op("Mul", {reset, h}), r_h}), b_h);
    }
    content = d.f[1](body, Clip(body, r, body.op("AddV2", {Gate(body, r, share, 2), content})));
    // (1 - z) content + z h
    return std::vector<Value>{body.op("AddV2", {content, body.op("Mul", {z, body.op("Sub", {h, content})})})};
  });
}

// Columns of gates i, o, f, c in the order i, f, c, o of BlockLSTMV2.
Value Reordered(Builder& b, const Recurrence& r, const Value& v) {
  return b.concat({Gate(b, r, v, 0), Gate(b, r, v, 2), Gate(b, r, v, 3), Gate(b, r, v, 1)}, v.rank() - 1);
}

States BlockLstm(Builder& b, const Recurrence& r, const Direction& d) {
  const Value w = b.concat({Reordered(b, r, d.w), Reordered(b, r, d.r)}, 0);
  const Value none = b.constant(Tensor(r.dtype, {r.hidden}));
  const Value bias = d.wb ? Reordered(b, r, b.op("AddV2", {d.wb, d.rb})) : b.constant(Tensor(r.dtype, {4 * r.hidden}));
  const Value wci = d.p ? Gate(b, r, d.p, 0) : none, wcf = d.p ? Gate(b, r, d.p, 2) : none, wco = d.p ? Gate(b, r, d.p, 1) : none;
  const std::vector<Value> out = b.ops("BlockLSTMV2", {b.size(d.x, 0), d.x, d.c, d.h, w, wci, wcf, wco, bias},
                                       {{"cell_clip", 0.0}, {"use_peephole", static_cast<bool>(d.p)}}, 7);
  return {out[6], out[1]};
}

// Gates i, o, f, c.
States RunLstm(Builder& b, Node& n, const Recurrence& r, const Direction& d) {
  if (r.usual && r.clip == 0 && !r.flag && (r.dtype == TW_FLOAT || r.dtype == TW_HALF)) return BlockLstm(b, r, d);
  Direction shared = d;
  if (d.rb) shared.wb = b.op("AddV2", {d.wb, d.rb});
  return Run(b, n, shared, {d.h, d.c}, [&](Builder& body, const Value& share, const std::vector<Value>& s) {
    const Value &h = s[0], &c = s[1];
    const Value gates = body.op("AddV2", {share, body.op("MatMul", {h, d.r})});
    const auto gate = [&](int64_t k, int64_t peephole, const Value& state) {
      Value v = Gate(body, r, gates, k);
      if (d.p && peephole >= 0) v = body.op("AddV2", {v, body.op("Mul", {Gate(body, r, d.p, peephole), state})});
      return Clip(body, r, v);
    };
    const Value in = d.f[0](body, gate(0, 0, c));
    const Value forget = r.flag ? body.op("Sub", {body.like(in, 1), in}) : d.f[0](body, gate(2, 2, c));
    const Value content = d.f[1](body, gate(3, -1, c));
    const Value state = body.op("AddV2", {body.op("Mul", {forget, c}), body.op("Mul", {in, content})});
    const Value out = d.f[0](body, gate(1, 1, state));
    return std::vector<Value>{body.op("Mul", {out, d.f[2](body, state)}), state};
  });
}

// ---- What the three share ----

std::string Lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return s;
}

using RunCell = States (*)(Builder&, Node&, const Recurrence&, const Direction&);

// [.., direction, ..] along axis 0.
Value Of(Builder& b, const Value& v, int64_t direction) {
  return b.op("GatherV2", {v, b.scalar(TW_INT32, static_cast<double>(direction)), b.scalar(TW_INT32, 0)});
}

// The state after the last step of each sequence, and after none the initial one. all: [time, batch, hidden].
Value LastOf(Builder& b, const Value& all, const Value& initial, const Value& lengths) {
  if (!lengths)
    return b.op("GatherV2", {all, b.cast(b.op("Sub", {b.size(all, 0), b.scalar(TW_INT64, 1)}), TW_INT32), b.scalar(TW_INT32, 0)});
  const Value with = b.concat({b.unsqueeze(initial, {0}), all}, 0);  // place k: after k steps
  const Value rows = b.transpose(with, {1, 0, 2});
  return b.squeeze(b.op("GatherV2", {rows, b.unsqueeze(lengths, {1}), b.scalar(TW_INT32, 1)}, {{"batch_dims", 1}}), {1});
}

void Recurrent(Builder& b, Node& n, const Cell& cell, RunCell run, bool has_c) {
  Value x = n.in(0);
  const int64_t layout = n.i("layout", 0);
  if (layout) x = b.transpose(x, {1, 0, 2});
  Recurrence r;
  r.dtype = x.dtype();
  r.clip = n.f("clip", 0);
  r.flag = n.i("linear_before_reset", 0) || n.i("input_forget", 0);
  const Value &w = n.in(1), &recurrent = n.in(2);
  r.hidden = n.i("hidden_size", recurrent.dim(2));
  if (r.hidden < 1 || r.hidden > (1 << 24)) n.unsupported("the hidden size is unknown");
  if (recurrent.rank() != 3 || w.rank() != 3 || x.rank() != 3) n.fail("input, weights and recurrent weights need rank 3");
  const std::string direction = Lower(n.s("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") n.fail("'direction' is '" + direction + "'");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  std::vector<std::string> names = n.strings("activations");
  const size_t per = cell.functions.size();
  if (names.empty()) {
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), cell.functions.begin(), cell.functions.end());
  }
  if (names.size() != per * directions)
    n.fail("'activations' has " + std::to_string(names.size()) + " entries, not " + std::to_string(per * directions));
  const std::vector<double> alphas = n.floats("activation_alpha"), betas = n.floats("activation_beta");
  std::vector<Function> functions;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = Lower(names[i]);
    r.usual &= name == Lower(cell.functions[i % per]);
    const auto [alpha, beta] = Defaults(name);
    functions.push_back(FunctionOf(n, name, i < alphas.size() ? alphas[i] : alpha, i < betas.size() ? betas[i] : beta));
  }
  const Value lengths = n.has(4) ? b.cast(n.in(4), TW_INT32) : Value();
  const Value zeros = b.op("Fill", {b.concat({b.unsqueeze(b.size(x, 1), {0}), b.ints({r.hidden})}, 0), b.like(x, 0)});
  const auto initial = [&](size_t input, int64_t d) {
    if (!n.has(input)) return zeros;
    return Of(b, layout ? b.transpose(n.in(input), {1, 0, 2}) : n.in(input), d);
  };
  std::vector<Value> ys, hs, cs;
  for (size_t i = 0; i < directions; ++i) {
    const auto at = static_cast<int64_t>(i);
    const bool reverse = direction == "reverse" || i == 1;
    const auto turned = [&](const Value& v) {
      if (!reverse) return v;
      if (!lengths) return b.op("ReverseV2", {v, b.ints({0}, TW_INT32)});
      return b.op("ReverseSequence", {v, lengths}, {{"seq_dim", 0}, {"batch_dim", 1}});
    };
    Direction d;
    d.x = turned(x);
    d.w = b.transpose(Of(b, w, at), {1, 0});
    d.r = b.transpose(Of(b, recurrent, at), {1, 0});
    if (n.has(3)) {
      const Value both = Of(b, n.in(3), at);
      d.wb = b.slice0(both, 0, cell.gates * r.hidden);
      d.rb = b.slice0(both, cell.gates * r.hidden, 2 * cell.gates * r.hidden);
    }
    d.h = initial(5, at);
    if (has_c) d.c = initial(6, at);
    if (has_c && n.has(7)) d.p = Of(b, n.in(7), at);
    d.f.assign(functions.begin() + static_cast<int64_t>(i * per), functions.begin() + static_cast<int64_t>((i + 1) * per));
    const States states = run(b, n, r, d);
    hs.push_back(LastOf(b, states.h, d.h, lengths));
    if (has_c && n.wants(2)) cs.push_back(LastOf(b, states.c, d.c, lengths));
    Value y = states.h;
    if (lengths) {  // zeros behind the end of a sequence
      const Value places = b.op("Range", {b.scalar(TW_INT32, 0), b.cast(b.size(x, 0), TW_INT32), b.scalar(TW_INT32, 1)});
      const Value inside = b.op("Less", {b.unsqueeze(places, {1, 2}), b.unsqueeze(lengths, {0, 2})});
      y = b.op("SelectV2", {inside, y, b.like(y, 0)});
    }
    ys.push_back(turned(y));
  }
  const Value y = b.op("Pack", ys, {{"axis", 1}});  // [time, directions, batch, hidden]
  n.out(0, layout ? b.transpose(y, {2, 0, 1, 3}) : y);
  n.out(1, b.op("Pack", hs, {{"axis", layout ? 1 : 0}}));
  if (!cs.empty()) n.out(2, b.op("Pack", cs, {{"axis", layout ? 1 : 0}}));
}

void Rnn(Builder& b, Node& n) { Recurrent(b, n, {1, {"Tanh"}}, &RunRnn, false); }
void Gru(Builder& b, Node& n) { Recurrent(b, n, {3, {"Sigmoid", "Tanh"}}, &RunGru, false); }
void Lstm(Builder& b, Node& n) { Recurrent(b, n, {4, {"Sigmoid", "Tanh", "Tanh"}}, &RunLstm, true); }

constexpr Entry kRecurrent[] = {
    {"GRU", 1, kLatest, &Gru},
    {"LSTM", 1, kLatest, &Lstm},
    {"RNN", 1, kLatest, &Rnn},
};

}  // namespace

Family RecurrentTranslators() { return {std::begin(kRecurrent), std::end(kRecurrent)}; }

}  // namespace thalweg::onnx
