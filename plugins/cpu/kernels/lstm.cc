// LSTM cells and sequences of them. A sequence multiplies all its inputs at once, and in each step
// only the state. Its gradient keeps the gate gradients of every step, so the gradients of inputs
// and weights are one product each. Half is computed in float.
#include <array>
#include <string>

#include "kernels/cell.h"
#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The first column of the gates i, ci, f and o, in units of cells.
struct GateOrder {
  int64_t i, ci, f, o;
};
constexpr GateOrder kIcfo{0, 1, 2, 3}, kIfco{0, 2, 1, 3};

constexpr int64_t kRowCost = 150;  // of a cell's row, per column, in units of ParallelFor

struct Sizes {
  int64_t time, batch, input, cell;
  int64_t states() const { return batch * cell; }
};

// The parameters of a cell.
struct Parameters {
  const float *w, *wci, *wcf, *wco, *b;  // the middle three are NULL without peepholes
  float forget_bias, clip;
  GateOrder order;
};

// The seven states of a step, or of all steps.
struct States {
  float *i, *cs, *f, *o, *ci, *co, *h;
  States At(int64_t offset) const { return {i + offset, cs + offset, f + offset, o + offset, ci + offset, co + offset, h + offset}; }
};
struct ConstStates {
  const float *i, *cs, *f, *o, *ci, *co, *h;
};

// Computes the rows of a step. product: [batch, 4 cell]; more: the same shape, or NULL.
void Step(const CellMath& math, const tw_frame* f, const Sizes& s, const Parameters& by, const float* product, const float* more,
          const float* cs_prev, const States& to) {
  ParallelFor(f, s.batch, Cost(s.cell, kRowCost), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto gate = [&](int64_t place) {
        const int64_t column = place * s.cell, at = row * 4 * s.cell + column;
        return GateInput{product + at, more ? more + at : nullptr, by.b + column};
      };
      const States out = to.At(row * s.cell);
      math.table().lstm({gate(by.order.i), gate(by.order.ci), gate(by.order.f), gate(by.order.o), cs_prev + row * s.cell, by.wci, by.wcf,
                         by.wco, by.forget_bias, by.clip, out.i, out.cs, out.f, out.o, out.ci, out.co, out.h},
                        s.cell);
    }
  });
}

// The gradients that enter a step, and those from the next step, or NULL.
struct Arriving {
  const float *cs, *h, *more_cs, *more_h;
};

// Computes the rows of a step's gradient. gates: [batch, 4 cell].
void StepBack(const CellMath& math, const tw_frame* f, const Sizes& s, const Parameters& by, const ConstStates& made, int64_t offset,
              const float* cs_prev, const Arriving& in, float* gates, float* cs_prev_grad) {
  ParallelFor(f, s.batch, Cost(s.cell, 30), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * s.cell, step = offset + at;
      float* d = gates + row * 4 * s.cell;
      math.table().lstm_grad(
          {cs_prev + at, by.wci, by.wcf, by.wco, made.i + step, made.f + step, made.o + step, made.ci + step, made.co + step, in.cs + at,
           in.h + at, in.more_cs ? in.more_cs + at : nullptr, in.more_h ? in.more_h + at : nullptr, d + by.order.i * s.cell,
           d + by.order.ci * s.cell, d + by.order.f * s.cell, d + by.order.o * s.cell, cs_prev_grad + at},
          s.cell);
    }
  });
}

// Computes the gradients of the peepholes from the gate gradients of `rows` rows.
void PeepholesBack(const CellMath& math, const tw_frame* f, const Sizes& s, const GateOrder& order, int64_t rows, const float* gates,
                   const float* cs_prev, const float* cs, const std::array<float*, 3>& to) {
  const int64_t step = 4 * s.cell;
  math.SumProducts(f, gates + order.i * s.cell, step, cs_prev, s.cell, to[0], rows, s.cell);
  math.SumProducts(f, gates + order.f * s.cell, step, cs_prev, s.cell, to[1], rows, s.cell);
  math.SumProducts(f, gates + order.o * s.cell, step, cs, s.cell, to[2], rows, s.cell);
}

void Clear(float* to, int64_t n) {
  if (n > 0) std::memset(to, 0, size_t(n) * sizeof(float));
}

float Setting(const tw::Node& n, const char* name) { return n.find(name) ? float(n.f(name)) : 0; }

class Lstm {
 protected:
  Lstm(const tw::Node& n, const GateOrder& order)
      : math_(n.host()),
        peephole_(n.b("use_peephole")),
        forget_bias_(Setting(n, "forget_bias")),
        clip_(Setting(n, "cell_clip")),
        order_(order) {}

  template <class W, class P, class B>
  Parameters By(const W& w, const P& wci, const P& wcf, const P& wco, const B& b) const {
    const auto hole = [&](const P& p) { return peephole_ ? p.data() : nullptr; };
    return {w.data(), hole(wci), hole(wcf), hole(wco), b.data(), forget_bias_, clip_, order_};
  }

  CellMath math_;
  bool peephole_;
  float forget_bias_, clip_;
  GateOrder order_;
};

template <class T>
class Cell : Lstm {
 public:
  explicit Cell(const tw::Node& n) : Lstm(n, kIcfo) {}

  void operator()(tw::Frame frame, tw::In<T> x, tw::In<T> cs_prev, tw::In<T> h_prev, tw::In<T> w, tw::In<T> wci, tw::In<T> wcf,
                  tw::In<T> wco, tw::In<T> b, tw::Out<T> i, tw::Out<T> cs, tw::Out<T> f, tw::Out<T> o, tw::Out<T> ci, tw::Out<T> co,
                  tw::Out<T> h) const {
    const Sizes s{1, x.dim(0), x.dim(1), h_prev.dim(1)};
    const VectorTable& v = math_.vectors();
    const FloatIn<T> from_x(frame, v, x), from_cs(frame, v, cs_prev), from_h(frame, v, h_prev), from_w(frame, v, w), from_i(frame, v, wci),
        from_f(frame, v, wcf), from_o(frame, v, wco), from_b(frame, v, b);
    FloatOut<T> out[] = {FloatOut<T>(i), FloatOut<T>(cs), FloatOut<T>(f), FloatOut<T>(o), FloatOut<T>(ci), FloatOut<T>(co), FloatOut<T>(h)};
    const int64_t inner = s.input + s.cell, columns = 4 * s.cell;
    const Floats both(frame, size_t(s.batch * inner)), gates(frame, size_t(s.batch * columns));
    Beside(frame.f, from_x.data(), s.input, from_h.data(), s.cell, s.batch, both.data());
    CellMath::Products multiply(math_, frame.f);
    multiply(FloatProduct(s.batch, columns, inner, both.data(), inner, false, from_w.data(), columns, false, gates.data(), columns));
    Step(math_, frame.f, s, By(from_w, from_i, from_f, from_o, from_b), gates.data(), nullptr, from_cs.data(),
         {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data(), out[6].data()});
    for (const FloatOut<T>& y : out) y.Store(v);
  }
};

template <class T>
class CellGrad : Lstm {
 public:
  explicit CellGrad(const tw::Node& n) : Lstm(n, kIcfo) {}

  void operator()(tw::Frame frame, tw::In<T>, tw::In<T> cs_prev, tw::In<T>, tw::In<T> w, tw::In<T> wci, tw::In<T> wcf, tw::In<T> wco,
                  tw::In<T> b, tw::In<T> i, tw::In<T> cs, tw::In<T> f, tw::In<T> o, tw::In<T> ci, tw::In<T> co, tw::In<T> cs_grad,
                  tw::In<T> h_grad, tw::Out<T> cs_prev_grad, tw::Out<T> dicfo, tw::Out<T> wci_grad, tw::Out<T> wcf_grad,
                  tw::Out<T> wco_grad) const {
    const Sizes s{1, cs_prev.dim(0), 0, cs_prev.dim(1)};
    const VectorTable& v = math_.vectors();
    const FloatIn<T> from_prev(frame, v, cs_prev), from_wci(frame, v, wci), from_wcf(frame, v, wcf), from_wco(frame, v, wco),
        from_i(frame, v, i), from_cs(frame, v, cs), from_f(frame, v, f), from_o(frame, v, o), from_ci(frame, v, ci), from_co(frame, v, co),
        dcs(frame, v, cs_grad), dh(frame, v, h_grad);
    FloatOut<T> prev(cs_prev_grad), gates(dicfo), holes[] = {FloatOut<T>(wci_grad), FloatOut<T>(wcf_grad), FloatOut<T>(wco_grad)};
    const Parameters by = By(dh, from_wci, from_wcf, from_wco, dh);  // weights and bias are not used here
    StepBack(math_, frame.f, s, by, {from_i.data(), from_cs.data(), from_f.data(), from_o.data(), from_ci.data(), from_co.data(), nullptr},
             0, from_prev.data(), {dcs.data(), dh.data(), nullptr, nullptr}, gates.data(), prev.data());
    if (peephole_) {
      PeepholesBack(math_, frame.f, s, order_, s.batch, gates.data(), from_prev.data(), from_cs.data(),
                    {holes[0].data(), holes[1].data(), holes[2].data()});
    } else {
      Clear(holes[0].data(), int64_t(wci.size()));
      Clear(holes[1].data(), int64_t(wcf.size()));
      Clear(holes[2].data(), int64_t(wco.size()));
    }
    static_cast<void>(w), static_cast<void>(b);
    prev.Store(v);
    gates.Store(v);
    for (const FloatOut<T>& y : holes) y.Store(v);
  }
};

int64_t LengthOf(const tw::In<int64_t>& seq_len_max, int64_t time) {
  if (seq_len_max.size() != 1) Invalid("seq_len_max " + DimsText(seq_len_max.v) + " must be a scalar");
  const int64_t length = seq_len_max[0];
  if (length < 0 || length > time)
    Invalid("seq_len_max is " + tw::text(length) + "; it must be in [0, " + tw::text(time) + "], the steps of 'x'");
  return length;
}

template <class T, const GateOrder& kOrder>
class Sequence : Lstm {
 public:
  explicit Sequence(const tw::Node& n) : Lstm(n, kOrder) {}

  void operator()(tw::Frame frame, tw::In<int64_t> seq_len_max, tw::In<T> x, tw::In<T> cs_prev, tw::In<T> h_prev, tw::In<T> w,
                  tw::In<T> wci, tw::In<T> wcf, tw::In<T> wco, tw::In<T> b, tw::Out<T> i, tw::Out<T> cs, tw::Out<T> f, tw::Out<T> o,
                  tw::Out<T> ci, tw::Out<T> co, tw::Out<T> h) const {
    const Sizes s{x.dim(0), x.dim(1), x.dim(2), h_prev.dim(1)};
    const int64_t length = LengthOf(seq_len_max, s.time), columns = 4 * s.cell;
    const VectorTable& v = math_.vectors();
    const FloatIn<T> from_x(frame, v, x), from_cs(frame, v, cs_prev), from_h(frame, v, h_prev), from_w(frame, v, w), from_i(frame, v, wci),
        from_f(frame, v, wcf), from_o(frame, v, wco), from_b(frame, v, b);
    FloatOut<T> out[] = {FloatOut<T>(i), FloatOut<T>(cs), FloatOut<T>(f), FloatOut<T>(o), FloatOut<T>(ci), FloatOut<T>(co), FloatOut<T>(h)};
    const States all{out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data(), out[6].data()};
    const Floats of_x(frame, size_t(length * s.batch * columns)), of_h(frame, size_t(s.batch * columns));
    CellMath::Products multiply(math_, frame.f);
    multiply(FloatProduct(length * s.batch, columns, s.input, from_x.data(), s.input, false, from_w.data(), columns, false, of_x.data(),
                          columns));
    const float *cs_before = from_cs.data(), *h_before = from_h.data();
    for (int64_t t = 0; t < length; ++t) {
      tw::check(frame.f->host->run->cancelled(frame.f));
      multiply(FloatProduct(s.batch, columns, s.cell, h_before, s.cell, false, from_w.data() + s.input * columns, columns, false,
                            of_h.data(), columns));
      const States now = all.At(t * s.states());
      Step(math_, frame.f, s, By(from_w, from_i, from_f, from_o, from_b), of_x.data() + t * s.batch * columns, of_h.data(), cs_before, now);
      cs_before = now.cs;
      h_before = now.h;
    }
    for (FloatOut<T>& y : out) Clear(y.data() + length * s.states(), (s.time - length) * s.states());
    for (const FloatOut<T>& y : out) y.Store(v);
  }
};

template <class T, const GateOrder& kOrder>
class SequenceGrad : Lstm {
 public:
  explicit SequenceGrad(const tw::Node& n) : Lstm(n, kOrder) {}

  void operator()(tw::Frame frame, tw::In<int64_t> seq_len_max, tw::In<T> x, tw::In<T> cs_prev, tw::In<T> h_prev, tw::In<T> w,
                  tw::In<T> wci, tw::In<T> wcf, tw::In<T> wco, tw::In<T> b, tw::In<T> i, tw::In<T> cs, tw::In<T> f, tw::In<T> o,
                  tw::In<T> ci, tw::In<T> co, tw::In<T> h, tw::In<T> cs_grad, tw::In<T> h_grad, tw::Out<T> x_grad, tw::Out<T> cs_prev_grad,
                  tw::Out<T> h_prev_grad, tw::Out<T> w_grad, tw::Out<T> wci_grad, tw::Out<T> wcf_grad, tw::Out<T> wco_grad,
                  tw::Out<T> b_grad) const {
    const Sizes s{x.dim(0), x.dim(1), x.dim(2), h_prev.dim(1)};
    const int64_t length = LengthOf(seq_len_max, s.time);
    const VectorTable& v = math_.vectors();
    const FloatIn<T> from_x(frame, v, x), from_cs(frame, v, cs_prev), from_h(frame, v, h_prev), from_w(frame, v, w),
        from_wci(frame, v, wci), from_wcf(frame, v, wcf), from_wco(frame, v, wco), from_b(frame, v, b), at_i(frame, v, i),
        at_cs(frame, v, cs), at_f(frame, v, f), at_o(frame, v, o), at_ci(frame, v, ci), at_co(frame, v, co), at_h(frame, v, h),
        dcs(frame, v, cs_grad), dh(frame, v, h_grad);
    FloatOut<T> dx(x_grad), dcs_prev(cs_prev_grad), dh_prev(h_prev_grad), dw(w_grad), db(b_grad),
        holes[] = {FloatOut<T>(wci_grad), FloatOut<T>(wcf_grad), FloatOut<T>(wco_grad)};
    const ConstStates made{at_i.data(), at_cs.data(), at_f.data(), at_o.data(), at_ci.data(), at_co.data(), at_h.data()};
    const int64_t columns = 4 * s.cell, rows = length * s.batch;
    const Floats gates(frame, size_t(rows * columns)), before(frame, size_t(rows * s.cell));
    Clear(dcs_prev.data(), s.states());
    Clear(dh_prev.data(), s.states());
    CellMath::Products multiply(math_, frame.f);
    for (int64_t t = length; t-- > 0;) {
      tw::check(frame.f->host->run->cancelled(frame.f));
      const int64_t at = t * s.states();
      float* now = gates.data() + t * s.batch * columns;
      StepBack(math_, frame.f, s, By(from_w, from_wci, from_wcf, from_wco, from_b), made, at,
               t > 0 ? made.cs + at - s.states() : from_cs.data(), {dcs.data() + at, dh.data() + at, dcs_prev.data(), dh_prev.data()}, now,
               dcs_prev.data());
      multiply(FloatProduct(s.batch, s.cell, columns, now, columns, false, from_w.data() + s.input * columns, columns, true, dh_prev.data(),
                            s.cell));
    }
    multiply(FloatProduct(rows, s.input, columns, gates.data(), columns, false, from_w.data(), columns, true, dx.data(), s.input));
    Clear(dx.data() + rows * s.input, (s.time - length) * s.batch * s.input);
    multiply(FloatProduct(s.input, columns, rows, from_x.data(), s.input, true, gates.data(), columns, false, dw.data(), columns));
    Shifted(from_h.data(), made.h, s, length, before.data());
    multiply(FloatProduct(s.cell, columns, rows, before.data(), s.cell, true, gates.data(), columns, false, dw.data() + s.input * columns,
                          columns));
    math_.SumProducts(frame.f, gates.data(), columns, nullptr, 0, db.data(), rows, columns);
    if (peephole_) {
      Shifted(from_cs.data(), made.cs, s, length, before.data());
      PeepholesBack(math_, frame.f, s, order_, rows, gates.data(), before.data(), made.cs,
                    {holes[0].data(), holes[1].data(), holes[2].data()});
    } else {
      Clear(holes[0].data(), int64_t(wci.size()));
      Clear(holes[1].data(), int64_t(wcf.size()));
      Clear(holes[2].data(), int64_t(wco.size()));
    }
    for (const FloatOut<T>* y : {&dx, &dcs_prev, &dh_prev, &dw, &db, &holes[0], &holes[1], &holes[2]}) y->Store(v);
  }

 private:
  // Copies the states before each step: the first state, then those of all steps but the last.
  static void Shifted(const float* first, const float* all, const Sizes& s, int64_t length, float* to) {
    if (length == 0 || s.states() == 0) return;
    std::memcpy(to, first, size_t(s.states()) * sizeof(float));
    std::memcpy(to + s.states(), all, size_t((length - 1) * s.states()) * sizeof(float));
  }
};

}  // namespace

void register_lstm(tw::Plugin& p) {
  p.kernel<Cell<float>, Cell<half>>("LSTMBlockCell @CPU");
  p.kernel<CellGrad<float>, CellGrad<half>>("LSTMBlockCellGrad @CPU");
  p.kernel<Sequence<float, kIcfo>, Sequence<half, kIcfo>>("BlockLSTM @CPU");
  p.kernel<SequenceGrad<float, kIcfo>, SequenceGrad<half, kIcfo>>("BlockLSTMGrad @CPU");
  p.kernel<Sequence<float, kIfco>, Sequence<half, kIfco>>("BlockLSTMV2 @CPU");
  p.kernel<SequenceGrad<float, kIfco>, SequenceGrad<half, kIfco>>("BlockLSTMGradV2 @CPU");
}

}  // namespace thalweg::cpu
