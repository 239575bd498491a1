// Softmax and LogSoftmax over the last axis.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "logits");
  Set(s, 0, In(s, 0));
}

tw_edge RowSum(const tw::Grad& g, tw_edge e) { return g.op("Sum", {e, Ints(g, {-1})}, {{"keep_dims", true}}); }

void SoftmaxGradient(const tw::Grad& g) {
  const tw_edge mean = RowSum(g, g.op("Mul", {g.dy(), g.y()}));
  g.dx(0, g.op("Mul", {g.op("Sub", {g.dy(), mean}), g.y()}));
}

void LogSoftmaxGradient(const tw::Grad& g) {
  const tw_edge share = g.op("Mul", {RowSum(g, g.dy()), g.op("Exp", {g.y()})});
  g.dx(0, g.op("Sub", {g.dy(), share}));
}

}  // namespace

void register_softmax(tw::Plugin& p) {
  p.op<SoftmaxGradient, Rule>("Softmax(logits: T) -> (softmax: T); T: " OPS_FLOATS
                              "; ?data logits; doc \"exp(logits) / sum(exp(logits)) over the last axis\"");
  p.op<LogSoftmaxGradient, Rule>("LogSoftmax(logits: T) -> (logsoftmax: T); T: " OPS_FLOATS
                                 "; ?data logits; doc \"logits - log(sum(exp(logits))) over the last axis\"");
}

}  // namespace thalweg::ops
