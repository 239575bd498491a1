// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: classes lie on axis 1, labels have the shape without it.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

// The loss of logarithms of probabilities [batch, classes, places...].
Value Likelihood(Builder& b, Node& n, const Value& log_p, const Value& target, const Value& weight) {
  const Value labels = b.cast(target, TW_INT64);
  const bool ignores = n.has_attr("ignore_index");
  const Value zero = b.like(log_p, 0);
  Value safe = labels, counted;
  if (ignores) {
    counted = b.op("NotEqual", {labels, b.constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{n.i("ignore_index")}).Reshaped({}))});
    safe = b.op("SelectV2", {counted, labels, b.scalar(TW_INT64, 0)});
  }
  // Classes last, so that a gather with batches picks one number for each label.
  std::vector<int64_t> perm = {0};
  for (int i = 2; i < log_p.rank(); ++i) perm.push_back(i);
  perm.push_back(1);
  const Value rows = b.transpose(log_p, perm);
  const auto batches = static_cast<int64_t>(log_p.rank()) - 1;
  Value loss =
      b.op("Neg", {b.squeeze(b.op("GatherV2", {rows, b.unsqueeze(safe, {batches}), b.scalar(TW_INT32, static_cast<double>(batches))},
                                  {{"batch_dims", batches}}),
                             {batches})});
  Value each;  // the weight of each label
  if (weight) each = b.op("GatherV2", {weight, safe, b.scalar(TW_INT32, 0)});
  if (ignores) each = b.op("SelectV2", {counted, each ? each : b.like(log_p, 1), zero});
  if (each) loss = b.op("Mul", {loss, each});
  if (ignores) loss = b.op("SelectV2", {counted, loss, zero});
  const std::string reduction = n.s("reduction", "mean");
  if (reduction == "none") return loss;
  std::vector<int64_t> all;
  for (int64_t i = 0; i < batches; ++i) all.push_back(i);
  if (reduction == "sum") return b.op("Sum", {loss, b.ints(all)});
  if (reduction != "mean") n.fail("'reduction' is '" + reduction + "'");
  if (!each) return b.op("Mean", {loss, b.ints(all)});
  return b.op("RealDiv", {b.op("Sum", {loss, b.ints(all)}), b.op("Sum", {b.broadcast(each, b.shape(loss)), b.ints(all)})});
}

void CheckRank(Node& n) {
  if (n.in(0).rank() < 0) n.unsupported("the rank of the input is unknown");
  if (n.in(0).rank() < 2) n.fail("the input has rank " + std::to_string(n.in(0).rank()) + "; at least 2 is needed");
}

void NegativeLogLikelihoodLoss(Builder& b, Node& n) {
  CheckRank(n);
  n.out(Likelihood(b, n, n.in(0), n.in(1), n.maybe(2)));
}

void SoftmaxCrossEntropyLoss(Builder& b, Node& n) {
  CheckRank(n);
  const Value& x = n.in(0);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < x.rank(); ++i) perm.push_back(i);
  std::swap(perm[1], perm.back());
  const Value log_p = b.transpose(b.op("LogSoftmax", {b.transpose(x, perm)}), perm);
  n.out(0, Likelihood(b, n, log_p, n.in(1), n.maybe(2)));
  n.out(1, log_p);
}

constexpr Entry kLoss[] = {
    {"NegativeLogLikelihoodLoss", 12, kLatest, &NegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", 12, kLatest, &SoftmaxCrossEntropyLoss},
};

}  // namespace

Family LossTranslators() { return {std::begin(kLoss), std::end(kLoss)}; }

}  // namespace thalweg::onnx
