// Connectionist temporal classification: its loss, and decoders of its outputs. Labels and decoded
// sequences are sparse matrices of [batch, time].
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kInputs, kLabelsIndices, kLabelsValues, kLengths };

// Returns the shape of `inputs`, [time, batch, classes], merged with the lengths at input `lengths`.
Dims Sequences(const tw::Shape& s, uint32_t lengths) {
  WantRank(s, kInputs, 3, "inputs");
  WantVector(s, lengths, "sequence_length");
  Dims in = In(s, kInputs).value_or(Dims{-1, -1, -1});
  if (s.known(lengths)) in[1] = MergeSize(s, in[1], s.dim(lengths, 0), "the batch size of 'inputs' and the entries of 'sequence_length'");
  if (in[2] == 0) Fail("'inputs' is " + Text(in) + "; the last axis must have a class for the blank at least");
  return in;
}

void LossRule(const tw::Shape& s) {
  const Dims in = Sequences(s, kLengths);
  WantRank(s, kLabelsIndices, 2, "labels_indices");
  WantVector(s, kLabelsValues, "labels_values");
  if (s.known(kLabelsIndices)) {
    const int64_t columns = s.dim(kLabelsIndices, 1);
    if (Known(columns) && columns != 2)
      Fail("'labels_indices' is " + tw::text(s.in(kLabelsIndices)) + "; its rows are pairs [batch, time], so it must be [?, 2]");
    if (s.known(kLabelsValues))
      MergeSize(s, s.dim(kLabelsIndices, 0), s.dim(kLabelsValues, 0), "the rows of 'labels_indices' and the entries of 'labels_values'");
  }
  s.out(0, {in[1]});
  s.out(1, in);
}

// Output 1 is the derivative of the loss for the inputs. It is a value of the forward pass, so its
// own derivative is not available.
void LossGradient(const tw::Grad& g) {
  if (g.has_dy(1)) throw tw::Error{TW_UNIMPLEMENTED, "a gradient arrives at output 'gradient', and only that at 'loss' can be followed"};
  const tw_edge slopes = g.op("PreventGradient", {g.y(1)}, {{"message", "the CTC loss has no second derivative"}});
  g.dx(kInputs, g.op("Mul", {g.op("ExpandDims", {g.dy(0), Int(g, -1)}), slopes}));
}

void GreedyRule(const tw::Shape& s) {
  const Dims in = Sequences(s, 1);
  const int64_t blank = s.i("blank_index"), classes = in[2];
  if (Known(classes) && (blank < -classes || blank >= classes))
    Fail("'blank_index' is " + tw::text(blank) + " for " + tw::text(classes) + " classes; it must be in [-classes, classes)");
  s.out(0, {-1, 2});
  s.out(1, {-1});
  s.out(2, {2});
  s.out(3, {in[1], 1});
}

void BeamRule(const tw::Shape& s) {
  const Dims in = Sequences(s, 1);
  const int64_t width = s.i("beam_width"), paths = s.i("top_paths");
  if (paths > width)
    Fail("'top_paths' is " + tw::text(paths) + " and 'beam_width' " + tw::text(width) + "; a beam has no more paths than its width");
  const uint32_t n = (s.c->n_out - 1) / 3;
  for (uint32_t p = 0; p < n; ++p) {
    s.out(p, {-1, 2});
    s.out(n + p, {-1});
    s.out(2 * n + p, {2});
  }
  s.out(3 * n, {in[1], paths});
}

#define CTC_LABELS "labels_indices: int64, labels_values: int32, sequence_length: int32) -> "
#define CTC_HOW                                                                   \
  "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; " \
  "ignore_longer_outputs_than_inputs: bool = false; "
#define CTC_NO_GRADIENT "no_gradient \"a decoded sequence changes in jumps\"; "

}  // namespace

void register_ctc(tw::Plugin& p) {
  p.op<LossGradient, LossRule>("CTCLoss(inputs: T, " CTC_LABELS "(loss: T, gradient: T); " CTC_HOW
                               "T: {float, double} = float; ?data inputs; "
                               "doc \"minus the logarithm of the probability of labels, and its gradient; the blank is the last class\"");
  p.op<LossGradient, LossRule>("CTCLossV2(inputs: float, " CTC_LABELS "(loss: float, gradient: float); " CTC_HOW
                               "?data inputs; doc \"CTCLoss with class 0 as the blank\"");
  p.op<nullptr, GreedyRule>(
      "CTCGreedyDecoder(inputs: T, sequence_length: int32) -> "
      "(decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T); "
      "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float; " CTC_NO_GRADIENT
      "doc \"the most likely class of each step, without blanks\"");
  p.op<nullptr, BeamRule>(
      "CTCBeamSearchDecoder(inputs: T, sequence_length: int32) -> "
      "(decoded_indices: int64 * top_paths, decoded_values: int64 * top_paths, decoded_shape: int64 * top_paths, log_probability: T); "
      "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float; " CTC_NO_GRADIENT
      "doc \"the most likely sequences that a beam search finds; the blank is the last class\"");
}

}  // namespace thalweg::ops
