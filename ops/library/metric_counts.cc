// The metrics that count examples by class or by score: confusion matrix, area under the curve.
#include "ops/library/metric.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

tw_output Flat(tw_scope* scope, tw_output x) { return tw_scope_op2(scope, "Reshape", x, Longs(scope, {-1})); }

// The sum of the weights at each number below `count`.
tw_output SumsAt(tw_scope* scope, tw_output weights, tw_output numbers, int64_t count) {
  return tw_scope_op3(scope, "UnsortedSegmentSum", Flat(scope, weights), Flat(scope, numbers), Long(scope, count));
}

}  // namespace

void tw_metric_confusion(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, int64_t classes, tw_output weights,
                         tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_confusion", name, out_metric, [&]() -> tw_metric {
    static const char kFunction[] = "tw_metric_confusion";
    if (!CheckSize(scope, kFunction, "classes", classes) || !CheckSize(scope, kFunction, "classes * classes", classes * classes)) return {};
    const tw_output column = Predicted(scope, kFunction, predictions);
    const tw_output row = SameShape(scope, kFunction, "labels", Classes(scope, kFunction, "labels", labels), column);
    const tw_output each = WeightsLike(scope, kFunction, weights, CastTo(scope, column, TW_DOUBLE));
    const tw_output start = tw_scope_op2(scope, "Mul", Below(scope, row, classes), Long(scope, classes));
    const tw_output cell = tw_scope_op2(scope, "Add", start, Below(scope, column, classes));
    const Sum counts = MakeSum(scope, name, "counts", {classes, classes});
    const tw_output added =
        tw_scope_op2(scope, "Reshape", SumsAt(scope, each, cell, classes * classes), Longs(scope, {classes, classes}));
    return FromSums(scope, counts.value, {counts}, {added});
  });
}

void tw_metric_auc(tw_scope* scope, const char* name, tw_output scores, tw_output labels, int64_t buckets, tw_output weights,
                   tw_metric* out_metric) {
  MakeMetric(scope, "tw_metric_auc", name, out_metric, [&]() -> tw_metric {
    static const char kFunction[] = "tw_metric_auc";
    if (!CheckSize(scope, kFunction, "buckets", buckets)) return {};
    const auto number = [&](double x) { return tw_scope_scalar(scope, TW_DOUBLE, x); };
    const uint32_t dtype = Describe(scope, scores).dtype;
    if (buckets < 2) FailIn(scope, kFunction, "buckets is 1; there must be at least 2");
    if (Good(scope) && !IsReal(dtype))
      FailIn(scope, kFunction, std::string("scores are ") + tw_dtype_name(dtype) + "; they must be half, bfloat16, float or double");
    if (!Good(scope)) return {};
    const tw_output exact = CastTo(scope, scores, TW_DOUBLE);
    const tw_output up = tw_scope_op2(scope, "Mul", exact, number(double(buckets)));
    const tw_output inside = tw_scope_op3(scope, "ClipByValue", tw_scope_op1(scope, "Floor", up), number(0), number(double(buckets - 1)));
    const tw_output bucket = Below(scope, CastTo(scope, inside, TW_INT64), buckets);  // refuses NaN
    const tw_output truth = SameShape(scope, kFunction, "labels", CastTo(scope, labels, TW_DOUBLE), exact);
    const tw_output positive = CastTo(scope, tw_scope_op2(scope, "NotEqual", truth, number(0)), TW_DOUBLE);
    const tw_output each = WeightsLike(scope, kFunction, weights, positive);
    const tw_output true_weights = tw_scope_op2(scope, "Mul", each, positive);
    const Sum positives = MakeSum(scope, name, "positives", {buckets}), negatives = MakeSum(scope, name, "negatives", {buckets});
    const tw_output added_positives = SumsAt(scope, true_weights, bucket, buckets);
    const tw_output added_negatives = SumsAt(scope, tw_scope_op2(scope, "Sub", each, true_weights), bucket, buckets);

    // Of each pair of a positive and a negative example: 1 where the positive one's bucket is higher, 1/2 where they share it.
    OpenOp below(scope, "Cumsum");
    tw_op_add_input(below, negatives.value);
    tw_op_add_input(below, tw_scope_scalar(scope, TW_INT32, 0));
    tw_op_set_bool(below, "exclusive", 1);
    const tw_output wins = tw_scope_op2(scope, "Add", below.End(), tw_scope_op2(scope, "Mul", negatives.value, number(0.5)));
    const tw_output won = Total(scope, tw_scope_op2(scope, "Mul", positives.value, wins));
    const tw_output pairs = tw_scope_op2(scope, "Mul", Total(scope, positives.value), Total(scope, negatives.value));
    return FromSums(scope, tw_scope_op2(scope, "Div", won, pairs), {positives, negatives}, {added_positives, added_negatives});
  });
}
