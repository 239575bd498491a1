// Softmax cross-entropy of logits against a distribution or against the number of the right class.
// Output `backprop` is the gradient of the sum of the losses with respect to the logits, softmax -
// labels. The kernel computes it together with the loss.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void DenseRule(const tw::Shape& s) {
  const Dims unknown = {-1, -1};
  const Dims both = *Broadcast(In(s, 0).value_or(unknown), In(s, 1).value_or(unknown));
  if (both.size() != 2)
    Fail("'features' is " + tw::text(s.in(0)) + " and 'labels' " + tw::text(s.in(1)) + "; together they must be [batch, classes]");
  s.out(0, Dims{both[0]});
  s.out(1, both);
}

void SparseRule(const tw::Shape& s) {
  WantRank(s, 0, 2, "features");
  WantVector(s, 1, "labels");
  const int64_t batch =
      MergeSize(s, s.known(0) ? s.dim(0, 0) : -1, s.known(1) ? s.dim(1, 0) : -1, "the number of rows of 'features' and that of 'labels'");
  const int64_t classes = s.known(0) ? s.dim(0, 1) : -1;
  if (classes == 0 && batch != 0) Fail("'features' is " + tw::text(s.in(0)) + ", which has no classes");
  s.out(0, Dims{batch});
  s.out(1, Dims{batch, classes});
}

tw_edge AsColumn(const tw::Grad& g, tw_edge e) { return g.op("ExpandDims", {e, Int(g, -1)}); }

// Returns the gradient of the logits for an incoming gradient of `backprop` (second derivative). p:
// the softmax.
tw_edge ThroughSoftmax(const tw::Grad& g, tw_edge p) {
  const tw_edge mean = g.op("Sum", {g.op("Mul", {g.dy(1), p}), Ints(g, {-1})}, {{"keep_dims", true}});
  return g.op("Mul", {g.op("Sub", {g.dy(1), mean}), p});
}

void DenseGradient(const tw::Grad& g) {
  const MaybeDims features = ShapeIn(g, 0), labels = ShapeIn(g, 1);
  const bool same_classes = features && labels && features->size() == 2 && labels->size() == 2 && SameSize((*features)[1], (*labels)[1]);
  const tw_edge logits = same_classes ? g.x(0) : g.op("BroadcastTo", {g.x(0), ShapeOf(g, g.y(1))});
  const tw_edge loss = AsColumn(g, g.dy(0));
  tw_edge dx = g.op("Mul", {loss, g.y(1)}), dlabels = g.op("Neg", {g.op("Mul", {loss, g.op("LogSoftmax", {logits})})});
  if (g.has_dy(1)) {
    dx = g.op("AddV2", {dx, ThroughSoftmax(g, g.op("Softmax", {logits}))});
    dlabels = g.op("Sub", {dlabels, g.dy(1)});
  }
  BroadcastGradient(g, dx, dlabels);
}

void SparseGradient(const tw::Grad& g) {
  const tw_edge dx = g.op("Mul", {AsColumn(g, g.dy(0)), g.y(1)});
  g.dx(0, g.has_dy(1) ? g.op("AddV2", {dx, ThroughSoftmax(g, g.op("Softmax", {g.x(0)}))}) : dx);
}

}  // namespace

void register_cross_entropy(tw::Plugin& p) {
  p.op<DenseGradient, DenseRule>(
      "SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> (loss: T, backprop: T); T: " OPS_FLOATS
      "; ?data features labels; doc \"per row, -sum(labels * log(softmax(features))); rows of labels are distributions\"");
  p.op<SparseGradient, SparseRule>(
      "SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> (loss: T, backprop: T); T: " OPS_FLOATS "; Tlabels: " OPS_INDEX
      " = int64; ?data features; doc \"per row, -log(softmax(features))[label]\"");
}

}  // namespace thalweg::ops
