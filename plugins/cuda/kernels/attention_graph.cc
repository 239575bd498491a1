// Attention in half precision as graphs of cuDNN: forward with the statistics of softmax, and
// gradients from these statistics. The graphs equal those of cuDNN's C++ layer, operation by
// operation, because the engines match these.
#include <limits>
#include <utility>

#include "kernels/attention.h"
#include "kernels/dnn_call.h"

namespace thalweg::opencl {
namespace {

using Operation = DnnCall::Operation;

// The common parts of both graphs.
class AttentionGraph {
 public:
  using Axes = DnnCall::Axes;
  explicit AttentionGraph(const AttentionCall& c) : c_(c), scores_(Of(c.queries, c.keys)), rows_(Of(c.queries, 1)) {}

  Axes Of(Size rows, Size columns) const { return {c_.batch / c_.heads, c_.heads, rows, columns}; }
  uint32_t Matrix(const Place& at, Size rows, Size columns) {
    const Axes axes = Of(rows, columns);
    return call.Stored(c_.type, axes, cuda::Dense(axes), at);
  }
  uint32_t Turned(const Place& at, Size rows, Size columns) {
    Axes axes = Of(rows, columns), steps = cuda::Dense(axes);
    std::swap(axes[2], axes[3]), std::swap(steps[2], steps[3]);
    return call.Stored(c_.type, axes, steps, at);
  }
  uint32_t PerRow(const Place& at) { return call.Stored(TW_FLOAT, rows_, cuda::Dense(rows_), at); }
  uint32_t Inside(const Axes& axes, uint32_t type = TW_FLOAT) { return call.Inside(type, axes, cuda::Dense(axes)); }
  const Axes& scores() const { return scores_; }
  const Axes& rows() const { return rows_; }

  // Each returns the tensor that it makes, with these axes.
  uint32_t Make(Operation::What what, const Axes& axes, uint32_t x, uint32_t b = 0) {
    const uint32_t made = Inside(axes);
    call.Compute(what, b ? std::array<uint32_t, 8>{x, b, made} : std::array<uint32_t, 8>{x, made});
    return made;
  }
  // Sets the scores of keys after the query to the lowest number, whose exponential is 0. Every
  // query sees at least one key.
  uint32_t Masked(uint32_t scores) {
    if (!c_.causal) return scores;
    const uint32_t row = Inside(scores_, TW_INT32), column = Inside(scores_, TW_INT32), seen = Inside(scores_, TW_BOOL);
    const uint32_t lowest = call.Number(std::numeric_limits<float>::lowest()), made = Inside(scores_);
    call.Compute(Operation::kRowIndex, {scores, row});
    call.Compute(Operation::kColumnIndex, {scores, column});
    call.Compute(Operation::kNotLess, {row, column, seen});
    call.Compute(Operation::kSelect, {scores, lowest, seen, made});
    return made;
  }
  // Transposes the matrices [queries, keys], in the element type of the tensors.
  uint32_t TurnedScores(uint32_t x) {
    Axes axes = scores_, steps = cuda::Dense(scores_);
    std::swap(axes[2], axes[3]), std::swap(steps[2], steps[3]);
    const uint32_t made = call.Inside(c_.type, axes, steps);
    call.Compute(Operation::kTurn, {x, made});
    return made;
  }

  DnnCall call;

 private:
  const AttentionCall& c_;
  const Axes scores_, rows_;
};

// Returns true if there may be engines.
bool Fits(const AttentionCall& c) {
  constexpr Size kMultiple = 8;
  return (c.type == TW_HALF || c.type == TW_BFLOAT16) && c.depth > 0 && c.width > 0 && c.depth % kMultiple == 0 && c.width % kMultiple == 0;
}

}  // namespace

bool AttendsByLibrary(Device& device, const tw_frame* f, const AttentionCall& c) {
  if (!Fits(c)) return false;
  AttentionGraph g(c);
  const uint32_t query = g.Matrix(c.query, c.queries, c.depth), key = g.Turned(c.key, c.keys, c.depth),
                 scale = g.call.Number(float(c.scale));
  const uint32_t product = g.Make(Operation::kProduct, g.scores(), query, key);
  const uint32_t scores = g.Masked(g.Make(Operation::kMultiply, g.scores(), product, scale));
  const uint32_t most = g.Make(Operation::kLargest, g.rows(), scores);
  const uint32_t grown = g.Make(Operation::kExponential, g.scores(), g.Make(Operation::kSubtract, g.scores(), scores, most));
  const uint32_t sum = g.Make(Operation::kSum, g.rows(), grown), logarithm = g.Make(Operation::kLogarithm, g.rows(), sum);
  g.call.Compute(Operation::kAdd, {most, logarithm, g.PerRow(c.logsumexp)});
  const uint32_t shares = g.Inside(g.scores(), c.type);
  g.call.Compute(Operation::kDivide, {grown, sum, shares});
  g.call.Compute(Operation::kProduct, {shares, g.Matrix(c.value, c.keys, c.width), g.Matrix(c.output, c.queries, c.width)});
  return g.call.Run(device, f, "cuDNN attention");
}

bool AttentionGradientsByLibrary(Device& device, const tw_frame* f, const AttentionCall& c) {
  constexpr Size kWholeTiles = 128;  // up to cuDNN 9.15, without a padding mask, gradients for other numbers of keys are wrong
  if (!Fits(c) || c.keys % kWholeTiles != 0) return false;
  AttentionGraph g(c);
  const uint32_t query = g.Matrix(c.query, c.queries, c.depth), key = g.Turned(c.key, c.keys, c.depth);
  const uint32_t value = g.Turned(c.value, c.keys, c.width), output = g.Matrix(c.output, c.queries, c.width);
  const uint32_t grad_output = g.Matrix(c.grad_output, c.queries, c.width), sums = g.PerRow(c.logsumexp);
  const uint32_t scale = g.call.Number(float(c.scale)), one = g.call.Number(1);
  // The product of each row's gradient and output, summed. The engines need it in memory.
  const Temporary dots_memory(device, uint64_t(c.batch) * uint64_t(c.queries) * sizeof(float));
  const uint32_t dots = g.PerRow(dots_memory.place());
  const uint32_t both = g.Make(Operation::kMultiply, g.Of(c.queries, c.width), grad_output, output);
  g.call.Compute(Operation::kMultiply, {g.Make(Operation::kSum, g.rows(), both), one, dots});

  const uint32_t product = g.Make(Operation::kProduct, g.scores(), query, key);
  const uint32_t scores = g.Make(Operation::kMultiply, g.scores(), product, scale);
  const uint32_t shares = g.Make(Operation::kExponential, g.scores(), g.Masked(g.Make(Operation::kSubtract, g.scores(), scores, sums)));
  g.call.Compute(Operation::kProduct, {g.TurnedScores(shares), grad_output, g.Matrix(c.grad_value, c.keys, c.width)});

  const uint32_t to_shares = g.Make(Operation::kProduct, g.scores(), grad_output, value);
  const uint32_t apart = g.Make(Operation::kSubtract, g.scores(), to_shares, dots);
  const uint32_t slopes = g.Make(Operation::kMultiply, g.scores(), g.Make(Operation::kMultiply, g.scores(), apart, shares), scale);
  g.call.Compute(Operation::kProduct, {g.TurnedScores(slopes), query, g.Matrix(c.grad_key, c.keys, c.depth)});

  const DnnCall::Axes keys = g.Of(c.keys, c.depth);
  const uint32_t rows_of_keys = g.Inside(keys, c.type);
  g.call.Compute(Operation::kTurn, {key, rows_of_keys});
  g.call.Compute(Operation::kProduct, {slopes, rows_of_keys, g.Matrix(c.grad_query, c.queries, c.depth)});
  return g.call.Run(device, f, "cuDNN gradient of attention");
}

}  // namespace thalweg::opencl
