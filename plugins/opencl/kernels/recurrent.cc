// LSTMBlockCell, GRUBlockCell and their gradients in float: one product for all gates, then
// element-wise steps.
#include "kernels/cell.h"
#include "kernels/reduce.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

// Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b. Outputs: i, cs, f, o, ci, co, h. The columns of
// the gates are in the order i, ci, f, o.
class LstmCell : Cell {
 public:
  explicit LstmCell(const tw::Node& n)
      : Cell(n),
        peephole_(n.b("use_peephole")),
        bias_(n, Floats(2), Floats(1), "", "y0 = x0 + x1;"),
        step_(n, Floats(peephole_ ? 8 : 5), Floats(7), kSigmoid, LstmStep(n)) {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Sizes s = SizesOf(f->in[0], f->in[1]);
    if (s.batch * s.cell == 0) return;
    const Size inner = s.input + s.cell, gates = 4 * s.cell;
    const Temporary both = Memory(s.batch * inner), product = Memory(s.batch * gates);
    Beside(f, s, At(f->in[0]), At(f->in[2]), both.place());
    matmul_.Run(f, {s.batch, gates, inner}, RowMajor(both.place(), inner), RowMajor(At(f->in[3]), gates), product.place(), gates);
    bias_.Run(f, {s.batch, gates}, {Columns(product.place(), gates, 0), Row(At(f->in[7]))}, {product.place()});
    std::vector<Operand> in;
    for (Size k = 0; k < 4; ++k) in.push_back(Columns(product.place(), gates, k * s.cell));
    in.push_back(Columns(At(f->in[1]), s.cell, 0));
    for (uint32_t k = 4; peephole_ && k < 7; ++k) in.push_back(Row(At(f->in[k])));
    std::vector<Place> out;
    for (uint32_t k = 0; k < 7; ++k) out.push_back(At(f->out[k]));
    step_.Run(f, {s.batch, s.cell}, in, out);
  }

 private:
  bool peephole_;
  Elementwise bias_, step_;
};

// Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad. Outputs:
// cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad.
class LstmCellGrad : Cell {
 public:
  explicit LstmCellGrad(const tw::Node& n)
      : Cell(n),
        peephole_(n.b("use_peephole")),
        // Inputs: o, h_grad, co, cs_grad and wco. Outputs: the gradients of the output gate and of
        // the cell's state.
        arrive_(n, Floats(peephole_ ? 5 : 4), Floats(2), "",
                std::string("y0 = x0 * (1 - x0) * x1 * x2; y1 = x3 + (1 - x2 * x2) * x1 * x0") + (peephole_ ? " + y0 * x4;" : ";")),
        // Inputs: the gradient of the state, i, f, ci and cs_prev.
        gates_(n, Floats(5), Floats(4), "",
               "y0 = x1 * (1 - x1) * x0 * x3; y1 = (1 - x3 * x3) * x0 * x1; y2 = x2 * (1 - x2) * x0 * x4; y3 = x0 * x2;"),
        back_(n, Floats(5), Floats(1), "", "y0 = x0 + x1 * x3 + x2 * x4;"),
        product_(n, Floats(2), Floats(1), "", "y0 = x0 * x1;"),
        sum_(n, kSum, kFloat, kFloat) {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *const *in = f->in, *const *out = f->out;
    const Sizes s = SizesOf(in[0], in[1]);
    const Dims dims = {s.batch, s.cell};
    if (!peephole_ || Count(dims) == 0)
      for (uint32_t k = 2; k < 5; ++k) copy_.Zero(f, Size(out[k]->count), At(out[k]));
    if (Count(dims) == 0) return;
    const auto whole = [&](Place at) { return Columns(at, s.cell, 0); };
    const Temporary di = Memory(Count(dims)), dci = Memory(Count(dims)), df = Memory(Count(dims)), dout = Memory(Count(dims)),
                    dcs = Memory(Count(dims));
    std::vector<Operand> arriving = {whole(At(in[11])), whole(At(in[15])), whole(At(in[13])), whole(At(in[14]))};
    if (peephole_) arriving.push_back(Row(At(in[6])));
    arrive_.Run(f, dims, arriving, {dout.place(), dcs.place()});
    gates_.Run(f, dims, {whole(dcs.place()), whole(At(in[8])), whole(At(in[10])), whole(At(in[12])), whole(At(in[1]))},
               {di.place(), dci.place(), df.place(), At(out[0])});
    const Place gates[] = {di.place(), dci.place(), df.place(), dout.place()};
    for (Size k = 0; k < 4; ++k) copy_.Run(f, dims, gates[k], {s.cell, 1}, At(out[1]).After(k * s.cell), {4 * s.cell, 1});
    if (!peephole_) return;
    back_.Run(f, dims, {whole(At(out[0])), whole(di.place()), whole(df.place()), Row(At(in[4])), Row(At(in[5]))}, {At(out[0])});
    const Place from[] = {di.place(), df.place(), dout.place()}, by[] = {At(in[1]), At(in[1]), At(in[9])};
    for (uint32_t k = 0; k < 3; ++k) {
      product_.Run(f, dims, {whole(from[k]), whole(by[k])}, {dcs.place()});
      sum_.Run(f, dims, {true, false}, dcs.place(), At(out[2 + k]));
    }
  }

 private:
  bool peephole_;
  Elementwise arrive_, gates_, back_, product_;
  Reduce sum_;
};

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c. Outputs: r, u, c, h.
class GruCell : Cell {
 public:
  explicit GruCell(const tw::Node& n)
      : Cell(n),
        // Inputs: the products for r and u, their biases, h_prev.
        gates_(n, Floats(5), Floats(3), kSigmoid, "y0 = sigmoid(x0 + x2); y1 = sigmoid(x1 + x3); y2 = y0 * x4;"),
        // Inputs: the product for c, its bias, u, h_prev.
        step_(n, Floats(4), Floats(2), "", "y0 = tanh(x0 + x1); y1 = x2 * x3 + (1 - x2) * y0;") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *const *in = f->in, *const *out = f->out;
    const Sizes s = SizesOf(in[0], in[1]);
    const Dims dims = {s.batch, s.cell};
    if (Count(dims) == 0) return;
    const Size inner = s.input + s.cell;
    const Temporary both = Memory(s.batch * inner), product = Memory(s.batch * 2 * s.cell), reset = Memory(Count(dims));
    Beside(f, s, At(in[0]), At(in[1]), both.place());
    matmul_.Run(f, {s.batch, 2 * s.cell, inner}, RowMajor(both.place(), inner), RowMajor(At(in[2]), 2 * s.cell), product.place(),
                2 * s.cell);
    gates_.Run(f, dims,
               {Columns(product.place(), 2 * s.cell, 0), Columns(product.place(), 2 * s.cell, s.cell), Row(At(in[4])),
                Row(At(in[4]).After(s.cell)), Columns(At(in[1]), s.cell, 0)},
               {At(out[0]), At(out[1]), reset.place()});
    Beside(f, s, At(in[0]), reset.place(), both.place());
    matmul_.Run(f, {s.batch, s.cell, inner}, RowMajor(both.place(), inner), RowMajor(At(in[3]), s.cell), product.place(), s.cell);
    step_.Run(f, dims, {Columns(product.place(), s.cell, 0), Row(At(in[5])), Columns(At(out[1]), s.cell, 0), Columns(At(in[1]), s.cell, 0)},
              {At(out[2]), At(out[3])});
  }

 private:
  Elementwise gates_, step_;
};

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h. Outputs: d_x, d_h_prev, d_c_bar,
// d_r_bar_u_bar.
class GruCellGrad : Cell {
 public:
  explicit GruCellGrad(const tw::Node& n)
      : Cell(n),
        // Inputs: dh, u, c, h_prev.
        step_(n, Floats(4), Floats(2), "", "y0 = x0 * (1 - x1) * (1 - x2 * x2); y1 = x0 * (x3 - x2) * x1 * (1 - x1);"),
        // Inputs: the gradient through c, h_prev, r.
        reset_(n, Floats(3), Floats(1), "", "y0 = x0 * x1 * x2 * (1 - x2);"),
        // Inputs: the gradient through r and u, the one through c, r, dh, u.
        state_(n, Floats(5), Floats(1), "", "y0 = x0 + x1 * x2 + x3 * x4;"),
        sum_(n, Floats(2), Floats(1), "", "y0 = x0 + x1;") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *const *in = f->in, *const *out = f->out;
    const Sizes s = SizesOf(in[0], in[1]);
    const Dims dims = {s.batch, s.cell};
    if (Count(dims) == 0) return copy_.Zero(f, Size(out[0]->count), At(out[0]));
    const Size inner = s.input + s.cell;
    const auto whole = [&](Place at) { return Columns(at, s.cell, 0); };
    const Temporary through_c = Memory(s.batch * inner), through_ru = Memory(s.batch * inner), du = Memory(Count(dims)),
                    dr = Memory(Count(dims));
    const Place h_prev = At(in[1]), r = At(in[6]), u = At(in[7]), c = At(in[8]), dh = At(in[9]), dc = At(out[2]), dru = At(out[3]);
    step_.Run(f, dims, {whole(dh), whole(u), whole(c), whole(h_prev)}, {dc, du.place()});
    matmul_.Run(f, {s.batch, inner, s.cell}, RowMajor(dc, s.cell), Transposed(RowMajor(At(in[3]), s.cell)), through_c.place(), inner);
    const Operand state_c = Columns(through_c.place(), inner, s.input);
    reset_.Run(f, dims, {state_c, whole(h_prev), whole(r)}, {dr.place()});
    copy_.Run(f, dims, dr.place(), {s.cell, 1}, dru, {2 * s.cell, 1});
    copy_.Run(f, dims, du.place(), {s.cell, 1}, dru.After(s.cell), {2 * s.cell, 1});
    matmul_.Run(f, {s.batch, inner, 2 * s.cell}, RowMajor(dru, 2 * s.cell), Transposed(RowMajor(At(in[2]), 2 * s.cell)), through_ru.place(),
                inner);
    state_.Run(f, dims, {Columns(through_ru.place(), inner, s.input), state_c, whole(r), whole(dh), whole(u)}, {At(out[1])});
    sum_.Run(f, {s.batch, s.input}, {Columns(through_c.place(), inner, 0), Columns(through_ru.place(), inner, 0)}, {At(out[0])});
  }

 private:
  Elementwise step_, reset_, state_, sum_;
};

std::string Types(int in, int out) {
  std::string text = "(float";
  for (int k = 1; k < in; ++k) text += ", float";
  text += " -> float";
  for (int k = 1; k < out; ++k) text += ", float";
  return text + ") @OPENCL";
}

}  // namespace

void register_recurrent(tw::Plugin& p) {
  p.kernel<LstmCell>("LSTMBlockCell" + Types(8, 7));
  p.kernel<LstmCellGrad>("LSTMBlockCellGrad" + Types(16, 5));
  p.kernel<GruCell>("GRUBlockCell" + Types(6, 4));
  p.kernel<GruCellGrad>("GRUBlockCellGrad" + Types(10, 4));
}

}  // namespace thalweg::opencl
