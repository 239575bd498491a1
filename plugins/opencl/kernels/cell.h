// Shared parts of recurrent cells: products, matrices beside each other, and the text of an LSTM
// step. All values are float.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_CELL_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_CELL_H_

#include <cstdio>

#include "kernels/copy.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace thalweg::opencl {

constexpr uint32_t kFloat = TW_FLOAT;

inline std::vector<uint32_t> Floats(size_t n) { return std::vector<uint32_t>(n, kFloat); }

inline std::string Literal(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9ef", v);
  return text;
}

constexpr const char* kSigmoid = "FUNCTION float sigmoid(float v) { return 1 / (1 + exp(-v)); }\n";

// The columns of a matrix [rows, columns] from `first` on; the dims of the call give their number.
inline Operand Columns(Place at, Size columns, Size first) { return {at.After(first), {columns, 1}}; }
inline Operand Row(Place at) { return {at, {0, 1}}; }

class Cell {
 public:
  explicit Cell(const tw::Node& n) : copy_(n, kFloat), matmul_(n, kFloat) {}

 protected:
  struct Sizes {
    Size batch, input, cell;
  };
  static Sizes SizesOf(const tw_view* x, const tw_view* state) { return {x->dims[0], x->dims[1], state->dims[1]}; }
  Temporary Memory(Size elements) const { return Temporary(copy_.device(), uint64_t(elements) * sizeof(float)); }

  void Beside(const tw_frame* f, const Sizes& s, Place left, Place right, Place to) const {
    const Size all = s.input + s.cell;
    const Together together(f);
    copy_.Run(f, {s.batch, s.input}, left, {s.input, 1}, to, {all, 1});
    copy_.Run(f, {s.batch, s.cell}, right, {s.cell, 1}, to.After(s.input), {all, 1});
  }

  Copy copy_;
  MatMul matmul_;
};

// Returns the statements of an LSTM step from the pre-activations of the gates, for Elementwise
// with kSigmoid. In: x0 i, x1 ci, x2 f, x3 o, x4 the previous state and, with peepholes, x5 wci, x6
// wcf, x7 wco. Out: y0 i, y1 cs, y2 f, y3 o, y4 ci, y5 co, y6 h.
inline std::string LstmStep(const tw::Node& n) {
  const bool peephole = n.b("use_peephole");
  const double clip = n.f("cell_clip"), bias = n.find("forget_bias") ? n.f("forget_bias") : 0;
  std::string text = peephole ? "y0 = sigmoid(x0 + x4 * x5); " : "y0 = sigmoid(x0); ";
  text += "y4 = tanh(x1); y2 = sigmoid(x2 + " + Literal(bias) + (peephole ? " + x4 * x6); " : "); ");
  text += "y1 = y4 * y0 + y2 * x4; ";
  if (clip > 0)
    text += "y1 = y1 < -" + Literal(clip) + " ? -" + Literal(clip) + " : y1 > " + Literal(clip) + " ? " + Literal(clip) + " : y1; ";
  text += peephole ? "y3 = sigmoid(x3 + y1 * x7); " : "y3 = sigmoid(x3); ";
  return text + "y5 = tanh(y1); y6 = y3 * y5;";
}

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_CELL_H_
