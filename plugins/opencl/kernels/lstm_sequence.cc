// BlockLSTM, BlockLSTMV2 and their gradients in float. The inputs of all steps are multiplied at
// once, the state in each step. The gradients of the gates are kept, so that the gradients of
// inputs and weights are one product each.
#include "kernels/cell.h"
#include "kernels/reduce.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

// The offsets of the columns of the gates i, ci, f and o, in units of `cell`.
struct GateOrder {
  Size i, ci, f, o;
};
constexpr GateOrder kIcfo{0, 1, 2, 3}, kIfco{0, 2, 1, 3};

class Sequence : protected Cell {
 public:
  Sequence(const tw::Node& n, const GateOrder& order) : Cell(n), order_(order), peephole_(n.b("use_peephole")) {}

 protected:
  struct Lengths : Sizes {
    Size time, length;  // time: all steps; length: steps to compute
    Size gates() const { return 4 * cell; }
    Size states() const { return batch * cell; }  // per step
    Size rows() const { return length * batch; }
  };
  // x and `state` hold all steps; length: a host scalar.
  static Lengths LengthsOf(const tw_view* length, const tw_view* x, const tw_view* state) {
    std::vector<int64_t> given;
    tw::integers(length, &given);
    if (given.size() != 1) Invalid("seq_len_max " + tw::text(length->dims, length->rank) + " must be a scalar");
    if (given[0] < 0 || given[0] > x->dims[0])
      Invalid("seq_len_max is " + tw::text(given[0]) + "; it must be in [0, " + tw::text(x->dims[0]) + "], the steps of 'x'");
    return {{x->dims[1], x->dims[2], state->dims[1]}, x->dims[0], given[0]};
  }

  void Zero(const tw_frame* f, Size count, Place at) const {
    if (count > 0) copy_.Zero(f, count, at);
  }

  GateOrder order_;
  bool peephole_;
};

// Inputs: seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b. Outputs: i, cs, f, o, ci, co, h.
template <const GateOrder& kOrder>
class Forward : Sequence {
 public:
  explicit Forward(const tw::Node& n)
      : Sequence(n, kOrder),
        bias_(n, Floats(2), Floats(1), "", "y0 = x0 + x1;"),
        step_(n, Floats(peephole_ ? 8 : 5), Floats(7), kSigmoid, LstmStep(n)) {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* const* in = f->in;
    const Lengths s = LengthsOf(in[0], in[1], in[2]);
    for (uint32_t k = 0; k < 7; ++k) Zero(f, (s.time - s.length) * s.states(), At(f->out[k]).After(s.length * s.states()));
    if (s.rows() * s.cell == 0) return;
    const Temporary gates = Memory(s.rows() * s.gates());
    matmul_.Run(f, {s.rows(), s.gates(), s.input}, RowMajor(At(in[1]), s.input), RowMajor(At(in[4]), s.gates()), gates.place(), s.gates());
    bias_.Run(f, {s.rows(), s.gates()}, {Columns(gates.place(), s.gates(), 0), Row(At(in[8]))}, {gates.place()});
    const Matrix by_state = RowMajor(At(in[4]).After(s.input * s.gates()), s.gates());
    Place cs_before = At(in[2]), h_before = At(in[3]);
    for (Size t = 0; t < s.length; ++t) {
      tw::check(f->host->run->cancelled(f));
      const Place now = gates.place().After(t * s.batch * s.gates());
      matmul_.Run(f, {s.batch, s.gates(), s.cell}, RowMajor(h_before, s.cell), by_state, now, s.gates(), true);
      std::vector<Operand> from;
      for (Size gate : {order_.i, order_.ci, order_.f, order_.o}) from.push_back(Columns(now, s.gates(), gate * s.cell));
      from.push_back(Columns(cs_before, s.cell, 0));
      for (uint32_t k = 5; peephole_ && k < 8; ++k) from.push_back(Row(At(in[k])));
      std::vector<Place> to;
      for (uint32_t k = 0; k < 7; ++k) to.push_back(At(f->out[k]).After(t * s.states()));
      step_.Run(f, {s.batch, s.cell}, from, to);
      cs_before = to[1];
      h_before = to[6];
    }
  }

 private:
  Elementwise bias_, step_;
};

// Inputs: those of the op, its outputs i, cs, f, o, ci, co, h, then cs_grad and h_grad. Outputs:
// the gradients of x, cs_prev, h_prev, w, wci, wcf, wco and b.
template <const GateOrder& kOrder>
class Backward : Sequence {
 public:
  explicit Backward(const tw::Node& n)
      : Sequence(n, kOrder),
        back_(n, ProgramText({}, {"lstm.h"}), "lstm_back"),
        product_(n, Floats(2), Floats(1), "", "y0 = x0 * x1;"),
        sum_(n, kSum, kFloat, kFloat) {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *const *in = f->in, *const *out = f->out;
    const Lengths s = LengthsOf(in[0], in[1], in[2]);
    const Place dx = At(out[0]), dcs = At(out[1]), dh = At(out[2]), dw = At(out[3]);
    Zero(f, s.states(), dcs);
    Zero(f, s.states(), dh);
    const Temporary gates = Memory(s.rows() * s.gates()), before = Memory(s.rows() * s.cell);
    StepsBack(f, s, dcs, dh, gates.place());

    const Matrix all = RowMajor(gates.place(), s.gates());
    matmul_.Run(f, {s.rows(), s.input, s.gates()}, all, Transposed(RowMajor(At(in[4]), s.gates())), dx, s.input);
    Zero(f, (s.time - s.length) * s.batch * s.input, dx.After(s.rows() * s.input));
    matmul_.Run(f, {s.input, s.gates(), s.rows()}, Transposed(RowMajor(At(in[1]), s.input)), all, dw, s.gates());
    Shifted(f, s, At(in[3]), At(in[15]), before.place());
    matmul_.Run(f, {s.cell, s.gates(), s.rows()}, Transposed(RowMajor(before.place(), s.cell)), all, dw.After(s.input * s.gates()),
                s.gates());
    sum_.Run(f, {s.rows(), s.gates()}, {true, false}, gates.place(), At(out[7]));
    if (!peephole_) {
      for (uint32_t k = 4; k < 7; ++k) Zero(f, Size(out[k]->count), At(out[k]));
      return;
    }
    Shifted(f, s, At(in[2]), At(in[10]), before.place());
    const Temporary products = Memory(s.rows() * s.cell);
    const Place states[] = {before.place(), before.place(), At(in[10])};
    const Size columns[] = {order_.i, order_.f, order_.o};
    for (uint32_t k = 0; k < 3; ++k) {
      product_.Run(f, {s.rows(), s.cell}, {Columns(gates.place(), s.gates(), columns[k] * s.cell), Columns(states[k], s.cell, 0)},
                   {products.place()});
      sum_.Run(f, {s.rows(), s.cell}, {true, false}, products.place(), At(out[4 + k]));
    }
  }

 private:
  // Runs from the last step to the first. dcs and dh end as the gradients of the initial states;
  // `gates` gets the gradients of the gates of all steps.
  void StepsBack(const tw_frame* f, const Lengths& s, Place dcs, Place dh, Place gates) const {
    const tw_view* const* in = f->in;
    const Matrix by_state = Transposed(RowMajor(At(in[4]).After(s.input * s.gates()), s.gates()));
    for (Size t = s.length; t-- > 0;) {
      tw::check(f->host->run->cancelled(f));
      const auto now = [&](uint32_t k) { return At(in[k]).After(t * s.states()); };
      const std::vector<Place> made = {now(9), now(11), now(12), now(13), now(14)};  // i, f, o, ci, co
      const Place state = t > 0 ? At(in[10]).After((t - 1) * s.states()) : At(in[2]), to = gates.After(t * s.batch * s.gates());
      back_.RunTasks(f, s.states(), Size(30), made, state, now(16), now(17), At(in[5]), At(in[6]), At(in[7]), dh, dcs, to, s.batch, s.cell,
                     order_.f, order_.ci, Size(peephole_));
      matmul_.Run(f, {s.batch, s.cell, s.gates()}, RowMajor(to, s.gates()), by_state, dh, s.cell);
    }
  }

  // Copies the states before each step: the initial one, then those of all steps except the last.
  void Shifted(const tw_frame* f, const Lengths& s, Place first, Place all, Place to) const {
    if (s.rows() * s.cell == 0) return;
    copy_.Dense(f, s.states(), first, to);
    copy_.Dense(f, (s.length - 1) * s.states(), all, to.After(s.states()));
  }

  Kernel back_;
  Elementwise product_;
  Reduce sum_;
};

std::string Types(int in, int out) {
  std::string text = "(int64";
  for (int k = 1; k < in; ++k) text += ", float";
  text += " -> float";
  for (int k = 1; k < out; ++k) text += ", float";
  return text + ") @OPENCL; host seq_len_max";
}

}  // namespace

void register_lstm_sequence(tw::Plugin& p) {
  p.kernel<Forward<kIcfo>>("BlockLSTM" + Types(9, 7));
  p.kernel<Forward<kIfco>>("BlockLSTMV2" + Types(9, 7));
  p.kernel<Backward<kIcfo>>("BlockLSTMGrad" + Types(18, 8));
  p.kernel<Backward<kIfco>>("BlockLSTMGradV2" + Types(18, 8));
}

}  // namespace thalweg::opencl
