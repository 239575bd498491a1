// Recurrent layers over a sequence. Their states are zero when a call begins.
#include <cstdint>
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

// The inputs of a sequence LSTM.
enum Lstm {
  kInput,
  kInputWeights,  // of the input gate, the forget gate, the cell and the output gate
  kRecurrentWeights = 5,
  kPeepholes = 9,  // of the input gate, the forget gate and the output gate
  kBiases = 12,
  kProjection = 16,
  kProjectionBias,
  kOutputState,
  kCellState,
  kNormalization,
};

// Weights [cell, in] of four gates side by side, [in, 4 cell], in the order of our op: input, forget, cell, output.
Value Side(Graph& g, Node& n, size_t first) {
  std::vector<Value> gates;
  for (size_t i = 0; i < 4; ++i) gates.push_back(n.in(first + i));
  gates.push_back(g.scalar(TW_INT32, 0));
  return g.transpose(g.op("ConcatV2", gates), {1, 0});
}

void SequenceLstm(Graph& g, Node& n) {
  enum { kActivation, kCellClip, kProjectionClip, kTimeMajor, kAsymmetric, kDiagonal };
  if (!n.has(kInputWeights)) n.unsupported("a cell whose input gate is coupled with the forget gate is not supported");
  if (n.has(kProjection)) n.unsupported("a projection of the output is not supported");
  if (n.has(kNormalization + 1)) n.unsupported("layer normalisation inside the cell is not supported");
  if (n.flag(kDiagonal)) n.unsupported("diagonal recurrent weights are not supported");
  if (n.byte(kActivation) != 4) n.unsupported("its activation is " + std::to_string(n.byte(kActivation)) + "; only 4, tanh, is supported");
  const bool peephole = n.has(kPeepholes + 1);
  Value x = n.in(kInput);
  if (x.rank() != 3) n.fail("its input has rank " + std::to_string(x.rank()) + "; 3 is needed");
  if (!n.flag(kTimeMajor)) x = g.transpose(x, {1, 0, 2});
  const Value w = g.op("ConcatV2", {Side(g, n, kInputWeights), Side(g, n, kRecurrentWeights), g.scalar(TW_INT32, 0)});
  std::vector<Value> biases;
  for (size_t i = 0; i < 4; ++i) biases.push_back(n.bias(kBiases + i));
  const int64_t cell = biases[0].dim(0);
  if (cell < 1 || cell > INT32_MAX) n.fail("the size of its cell is unknown");
  biases.push_back(g.scalar(TW_INT32, 0));
  const Value b = g.op("ConcatV2", biases);
  const Value sizes = g.shape(x);
  const Value steps = g.op("StridedSlice", {sizes, g.ints({0}), g.ints({1}), g.ints({1})}, {{"shrink_axis_mask", 1}});
  const Value batch = g.op("StridedSlice", {sizes, g.ints({1}), g.ints({2}), g.ints({1})});
  const Value zero = g.op("Fill", {g.op("ConcatV2", {batch, g.ints({cell}), g.scalar(TW_INT32, 0)}), g.like(x, 0)});
  Value none;  // no constant, since an argument may declare any size
  if (!peephole) none = g.op("Fill", {g.ints({cell}), g.scalar(TW_FLOAT, 0)});
  std::vector<Value> see;
  for (size_t i = 0; i < 3; ++i) see.push_back(peephole ? n.in(kPeepholes + i) : none);
  const std::vector<Value> all = g.ops("BlockLSTMV2", {g.cast(steps, TW_INT64), x, zero, zero, w, see[0], see[1], see[2], b},
                                       {{"cell_clip", n.f(kCellClip)}, {"use_peephole", peephole}}, 7);
  n.out(n.flag(kTimeMajor) ? all[6] : g.transpose(all[6], {1, 0, 2}));
}

constexpr Entry kTable[] = {{44, "UNIDIRECTIONAL_SEQUENCE_LSTM", &SequenceLstm}};

}  // namespace

Family recurrent_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
