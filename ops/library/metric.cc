// Helpers of metrics, and the metrics that are means: mean, perplexity, accuracy, top k, precision, recall.
#include "ops/library/metric.h"

#include <cmath>

#include "thalweg/op.h"

using namespace thalweg::library;

namespace thalweg::library {

namespace {

tw_output Flat(tw_scope* scope, tw_output x) { return tw_scope_op2(scope, "Reshape", x, Longs(scope, {-1})); }

tw_output ShapeOf(tw_scope* scope, tw_output x) { return Typed(scope, "Shape", {x}, "out_type", TW_INT64); }

bool IsInteger(uint32_t dtype) {
  return dtype == TW_INT32 || dtype == TW_INT64 || dtype == TW_INT16 || dtype == TW_INT8 || dtype == TW_UINT8 || dtype == TW_UINT16;
}

}  // namespace

Sum MakeSum(tw_scope* scope, const char* name, const char* part, const std::vector<int64_t>& dims) {
  const tw_output zero = tw_scope_scalar(scope, TW_DOUBLE, 0);
  const tw_output initial = dims.empty() ? zero : tw_scope_op2(scope, "Fill", Longs(scope, dims), zero);
  const tw_output variable = tw_variable_create(scope, PartName(name, part).c_str(), initial);
  return {variable, tw_variable_read(scope, variable), dims};
}

tw_metric FromSums(tw_scope* scope, tw_output value, const std::vector<Sum>& sums, const std::vector<tw_output>& added) {
  std::vector<const tw_operation*> updates, resets;
  for (size_t i = 0; i < sums.size(); ++i) {
    const tw_output zero = tw_scope_scalar(scope, TW_DOUBLE, 0);
    const tw_output zeros = sums[i].dims.empty() ? zero : tw_scope_op2(scope, "Fill", Longs(scope, sums[i].dims), zero);
    updates.push_back(Update(scope, "AssignAddVariableOp", {sums[i].variable, added[i]}));
    resets.push_back(Update(scope, "AssignVariableOp", {sums[i].variable, zeros}));
  }
  if (!Good(scope)) return {};
  const auto n = uint32_t(sums.size());
  return {sizeof(tw_metric), 0, value, tw_scope_group(scope, nullptr, updates.data(), n),
          tw_scope_group(scope, nullptr, resets.data(), n)};
}

tw_output Total(tw_scope* scope, tw_output x) {
  return tw_scope_op2(scope, "Sum", Flat(scope, x), tw_scope_scalar(scope, TW_INT32, 0));
}

tw_output WeightsLike(tw_scope* scope, const char* function, tw_output weights, tw_output like) {
  if (!weights) return tw_scope_op1(scope, "OnesLike", like);
  const ValueInfo info = Describe(scope, weights), other = Describe(scope, like);
  if (Good(scope) && !IsReal(info.dtype) && !IsInteger(info.dtype) && info.dtype != TW_BOOL)
    FailIn(scope, function, std::string("weights are ") + tw_dtype_name(info.dtype) + "; they must be numbers");
  if (Good(scope) && info.shape.rank >= 0 && other.shape.rank >= 0 && info.shape.rank > other.shape.rank) {
    FailIn(scope, function,
           "weights have shape " + ShapeText(info.shape) + ", and the examples " + ShapeText(other.shape) + "; give one weight for each");
  }
  const tw_output numbers = CastTo(scope, weights, TW_DOUBLE);
  return Good(scope) ? tw_scope_op2(scope, "BroadcastTo", numbers, ShapeOf(scope, like)) : 0;
}

tw_metric Mean(tw_scope* scope, const char* name, tw_output values, tw_output weights) {
  const Sum total = MakeSum(scope, name, "total", {}), count = MakeSum(scope, name, "count", {});
  const tw_output weighted = tw_scope_op2(scope, "MulNoNan", values, weights);  // of weight 0, NaN does not count either
  const tw_output value = tw_scope_op2(scope, "Div", total.value, count.value);
  return FromSums(scope, value, {total, count}, {Total(scope, weighted), Total(scope, weights)});
}

tw_output Classes(tw_scope* scope, const char* function, const char* what, tw_output x) {
  const uint32_t dtype = Describe(scope, x).dtype;
  if (!Good(scope)) return 0;
  if (!IsInteger(dtype)) FailIn(scope, function, std::string(what) + " are " + tw_dtype_name(dtype) + "; they must be int32 or int64");
  return CastTo(scope, x, TW_INT64);
}

tw_output Predicted(tw_scope* scope, const char* function, tw_output predictions) {
  const ValueInfo info = Describe(scope, predictions);
  if (!Good(scope)) return 0;
  if (!IsReal(info.dtype)) return Classes(scope, function, "predictions", predictions);
  if (info.shape.rank < 1) {
    FailIn(scope, function, "predictions have shape " + ShapeText(info.shape) + "; scores have at least one axis, and their number is known");
    return 0;
  }
  return Typed(scope, "ArgMax", {predictions, tw_scope_scalar(scope, TW_INT32, info.shape.rank - 1)}, "output_type", TW_INT64);
}

tw_output SameShape(tw_scope* scope, const char* function, const char* what, tw_output x, tw_output like) {
  const ValueInfo a = Describe(scope, x), b = Describe(scope, like);
  if (!Good(scope)) return 0;
  bool equal = a.shape.rank >= 0 && a.shape.rank == b.shape.rank, differ = a.shape.rank >= 0 && b.shape.rank >= 0 && !equal;
  for (int32_t i = 0; i < a.shape.rank && a.shape.rank == b.shape.rank; ++i) {
    const int64_t m = a.shape.dims[i], n = b.shape.dims[i];
    if (m >= 0 && n >= 0 && m != n) differ = true;
    if (m < 0 || m != n) equal = false;
  }
  if (differ) {
    FailIn(scope, function,
           std::string(what) + " have shape " + ShapeText(a.shape) + ", and the predictions are for " + ShapeText(b.shape) +
               "; reshape one of them, so that each example has one label");
    return 0;
  }
  return equal ? x : tw_scope_op2(scope, "Reshape", x, ShapeOf(scope, like));
}

tw_output Below(tw_scope* scope, tw_output numbers, int64_t count) {
  const tw_output all = tw_scope_op3(scope, "Range", Long(scope, 0), Long(scope, count), Long(scope, 1));
  return tw_scope_op3(scope, "GatherV2", all, numbers, tw_scope_scalar(scope, TW_INT32, 0));  // which refuses other numbers
}

}  // namespace thalweg::library

namespace {

// Values of any number type as doubles.
tw_output Numbers(tw_scope* scope, const char* function, const char* what, tw_output x) {
  const uint32_t dtype = Describe(scope, x).dtype;
  if (Good(scope) && !IsReal(dtype) && dtype != TW_BOOL && !IsInteger(dtype))
    FailIn(scope, function, std::string(what) + " are " + tw_dtype_name(dtype) + "; they must be numbers");
  return CastTo(scope, x, TW_DOUBLE);
}

// Whether each label of two classes is not 0.
tw_output Positive(tw_scope* scope, const char* function, tw_output labels) {
  return tw_scope_op2(scope, "NotEqual", Numbers(scope, function, "labels", labels), tw_scope_scalar(scope, TW_DOUBLE, 0));
}

}  // namespace

void tw_metric_mean(tw_scope* scope, const char* name, tw_output values, tw_output weights, tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_mean", name, out_metric, [&] {
    const tw_output numbers = Numbers(scope, "tw_metric_mean", "values", values);
    return Mean(scope, name, numbers, WeightsLike(scope, "tw_metric_mean", weights, numbers));
  });
}

void tw_metric_perplexity(tw_scope* scope, const char* name, tw_output losses, tw_output weights, tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_perplexity", name, out_metric, [&] {
    const tw_output numbers = Numbers(scope, "tw_metric_perplexity", "losses", losses);
    tw_metric made = Mean(scope, name, numbers, WeightsLike(scope, "tw_metric_perplexity", weights, numbers));
    made.value = tw_scope_op1(scope, "Exp", made.value);
    return made;
  });
}

void tw_metric_accuracy(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, tw_output weights,
                        tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_accuracy", name, out_metric, [&] {
    static const char kFunction[] = "tw_metric_accuracy";
    const tw_output classes = Predicted(scope, kFunction, predictions);
    const tw_output wanted = SameShape(scope, kFunction, "labels", Classes(scope, kFunction, "labels", labels), classes);
    const tw_output right = CastTo(scope, tw_scope_op2(scope, "Equal", classes, wanted), TW_DOUBLE);
    return Mean(scope, name, right, WeightsLike(scope, kFunction, weights, right));
  });
}

void tw_metric_top_k(tw_scope* scope, const char* name, tw_output scores, tw_output labels, int64_t k, tw_output weights,
                     tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_top_k", name, out_metric, [&]() -> tw_metric {
    static const char kFunction[] = "tw_metric_top_k";
    const tw_output wanted = Classes(scope, kFunction, "labels", labels);
    const ValueInfo info = Describe(scope, scores);
    if (!CheckSize(scope, kFunction, "k", k)) return {};
    if (info.dtype != TW_FLOAT || (info.shape.rank >= 0 && info.shape.rank != 2)) {
      FailIn(scope, kFunction, std::string("scores are ") + tw_dtype_name(info.dtype) + " of shape " + ShapeText(info.shape) +
                                   "; they must be float [batch, classes]");
      return {};
    }
    const tw_output among = tw_scope_op3(scope, "InTopKV2", scores, wanted, Long(scope, k));
    const tw_output right = CastTo(scope, among, TW_DOUBLE);
    return Mean(scope, name, right, WeightsLike(scope, kFunction, weights, right));
  });
}

namespace {

// The share of true positives among the predicted positives, or among all positives.
tw_metric TruePositives(tw_scope* scope, const char* function, const char* name, tw_output predictions, tw_output labels, double threshold,
                        tw_output weights, bool of_predicted) {
  if (!std::isfinite(threshold)) FailIn(scope, function, "threshold is " + Text(threshold) + "; it must be finite");
  tw_output predicted = predictions;
  if (Describe(scope, predictions).dtype != TW_BOOL) {
    predicted = tw_scope_op2(scope, "Greater", Numbers(scope, function, "predictions", predictions),
                             tw_scope_scalar(scope, TW_DOUBLE, threshold));
  }
  const tw_output positive = SameShape(scope, function, "labels", Positive(scope, function, labels), predicted);
  const tw_output both = CastTo(scope, tw_scope_op2(scope, "LogicalAnd", predicted, positive), TW_DOUBLE);
  const tw_output among = CastTo(scope, of_predicted ? predicted : positive, TW_DOUBLE);
  const tw_output each = WeightsLike(scope, function, weights, among);
  return Mean(scope, name, both, tw_scope_op2(scope, "Mul", each, among));
}

}  // namespace

void tw_metric_precision(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, double threshold, tw_output weights,
                         tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_precision", name, out_metric,
             [&] { return TruePositives(scope, "tw_metric_precision", name, predictions, labels, threshold, weights, true); });
}

void tw_metric_recall(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, double threshold, tw_output weights,
                      tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_recall", name, out_metric,
             [&] { return TruePositives(scope, "tw_metric_recall", name, predictions, labels, threshold, weights, false); });
}
