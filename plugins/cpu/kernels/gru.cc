// GRU cells: a step and its gradient, with two products each.
#include "kernels/cell.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kGateCost = 60, kRowCost = 40, kGradCost = 8;  // of a row, per column, in units of ParallelFor

class Cell {
 public:
  explicit Cell(const tw::Node& n) : math_(n.host()) {}

  void operator()(tw::Frame frame, tw::In<float> x, tw::In<float> h_prev, tw::In<float> w_ru, tw::In<float> w_c, tw::In<float> b_ru,
                  tw::In<float> b_c, tw::Out<float> r, tw::Out<float> u, tw::Out<float> c, tw::Out<float> h) const {
    const int64_t batch = x.dim(0), input = x.dim(1), cell = h_prev.dim(1), inner = input + cell;
    const Floats both(frame, size_t(batch * inner)), gates(frame, size_t(batch * 2 * cell)), reset(frame, size_t(batch * cell));
    CellMath::Products multiply(math_, frame.f);
    Beside(frame.f, x.data(), input, h_prev.data(), cell, batch, both.data());
    multiply(FloatProduct(batch, 2 * cell, inner, both.data(), inner, false, w_ru.data(), 2 * cell, false, gates.data(), 2 * cell));
    ParallelFor(frame.f, batch, Cost(cell, kGateCost), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* product = gates.data() + row * 2 * cell;
        const int64_t at = row * cell;
        math_.table().gru_gates({{product, nullptr, b_ru.data()},
                                 {product + cell, nullptr, b_ru.data() + cell},
                                 h_prev.data() + at,
                                 r.data() + at,
                                 u.data() + at,
                                 reset.data() + at},
                                cell);
      }
    });
    Beside(frame.f, x.data(), input, reset.data(), cell, batch, both.data());
    multiply(FloatProduct(batch, cell, inner, both.data(), inner, false, w_c.data(), cell, false, gates.data(), cell));
    ParallelFor(frame.f, batch, Cost(cell, kRowCost), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * cell; at < end * cell; at += cell)
        math_.table().gru({{gates.data() + at, nullptr, b_c.data()}, h_prev.data() + at, u.data() + at, c.data() + at, h.data() + at},
                          cell);
    });
  }

 private:
  CellMath math_;
};

class CellGrad {
 public:
  explicit CellGrad(const tw::Node& n) : math_(n.host()) {}

  void operator()(tw::Frame frame, tw::In<float> x, tw::In<float> h_prev, tw::In<float> w_ru, tw::In<float> w_c, tw::In<float>,
                  tw::In<float>, tw::In<float> r, tw::In<float> u, tw::In<float> c, tw::In<float> dh, tw::Out<float> dx,
                  tw::Out<float> dh_prev, tw::Out<float> dc_bar, tw::Out<float> dru_bar) const {
    const int64_t batch = x.dim(0), input = x.dim(1), cell = h_prev.dim(1), inner = input + cell;
    const Floats through_c(frame, size_t(batch * inner)), through_ru(frame, size_t(batch * inner));
    const RecurrentTable& t = math_.table();
    const auto rows = [&](auto&& body) {
      ParallelFor(frame.f, batch, Cost(inner, kGradCost), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) body(row, row * cell, row * inner + input);
      });
    };
    CellMath::Products multiply(math_, frame.f);
    rows([&](int64_t row, int64_t at, int64_t) {
      t.gru_grad(
          {h_prev.data() + at, u.data() + at, c.data() + at, dh.data() + at, dc_bar.data() + at, dru_bar.data() + 2 * row * cell + cell},
          cell);
    });
    multiply(FloatProduct(batch, inner, cell, dc_bar.data(), cell, false, w_c.data(), cell, true, through_c.data(), inner));
    rows([&](int64_t row, int64_t at, int64_t state) {
      t.gru_reset_grad(through_c.data() + state, h_prev.data() + at, r.data() + at, dru_bar.data() + 2 * row * cell, cell);
    });
    multiply(FloatProduct(batch, inner, 2 * cell, dru_bar.data(), 2 * cell, false, w_ru.data(), 2 * cell, true, through_ru.data(), inner));
    rows([&](int64_t row, int64_t at, int64_t state) {
      t.gru_state_grad({h_prev.data() + at, r.data() + at, u.data() + at, dh.data() + at, through_c.data() + state,
                        through_ru.data() + state, dh_prev.data() + at},
                       cell);
      const float *a = through_c.data() + row * inner, *b = through_ru.data() + row * inner;
      for (int64_t k = 0; k < input; ++k) dx.data()[row * input + k] = a[k] + b[k];
    });
  }

 private:
  CellMath math_;
};

}  // namespace

void register_gru(tw::Plugin& p) {
  p.kernel<Cell>("GRUBlockCell @CPU");
  p.kernel<CellGrad>("GRUBlockCellGrad @CPU");
}

}  // namespace thalweg::cpu
