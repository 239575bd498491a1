/* Metrics: measures of a model over many batches. A metric keeps its sums in variables of the graph: its update adds one batch, its value
 * is computed from the sums, and its reset sets the sums to 0. The graph does not grow with the batches.
 *
 * A metric reads what it measures in the step that runs its update. Run the update as a target of a training step and it sees the values
 * that the loss of the step sees; read the value in a later step. Sums are double. An optimizer must not train the variables
 * `name`/total and so on; none of them has a gradient.
 *
 * Labels and classes are int32 or int64 and counted from 0. weights: one for each example, of any real or integer type; 0: each example
 * counts once. An example of weight 0 does not count; weights below 0 are not checked. A value without any example is NaN: 0 / 0.
 *
 * All functions work through a scope (scope.h), which keeps the failures; the record's fields are then 0. Errors: INVALID_ARGUMENT naming
 * the function, the prefix of the scope and the value. Create the variables' initializer (variable.h) afterwards, so that it covers the
 * sums. Threads: as the scope; concurrent steps may each run updates, whose additions are atomic for each variable. Everything here:
 * since 0.1.
 *
 *     tw_metric accuracy;
 *     tw_metric_accuracy(s, "accuracy", logits, labels, 0, &accuracy);
 *     init = tw_variable_initializer(s, "init");
 *     ... run accuracy.reset, then accuracy.update for each batch, then fetch accuracy.value */
#ifndef THALWEG_METRIC_H
#define THALWEG_METRIC_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A metric. The functions below set all fields. */
typedef struct tw_metric {
  uint32_t size, flags;
  tw_output value;            /* the measure over all batches since the last reset; double, a scalar unless said */
  const tw_operation* update; /* adds the batch of its step */
  const tw_operation* reset;  /* forgets all batches */
} tw_metric;

/* The weighted mean of `values`, of any real or integer type and any shape. weights: broadcast to the shape of values.
 * Variables: `name`/total, `name`/count. */
TW_EXPORT void tw_metric_mean(tw_scope* scope, const char* name, tw_output values, tw_output weights, tw_metric* out_metric);
/* exp of the weighted mean of `losses`, which are negative natural logarithms of probabilities, such as cross-entropies of words. Otherwise
 * as tw_metric_mean. */
TW_EXPORT void tw_metric_perplexity(tw_scope* scope, const char* name, tw_output losses, tw_output weights, tw_metric* out_metric);
/* The share of examples whose class is the label. predictions: scores [labels.., classes] of a floating type, of which the largest is the
 * class, the first of equal ones; or classes of the shape of the labels. labels: [..]. weights: [..].
 * Variables: `name`/total, `name`/count. */
TW_EXPORT void tw_metric_accuracy(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, tw_output weights,
                                  tw_metric* out_metric);
/* The share of examples whose label is among the k classes of the largest scores; ties at the k-th count as being among them, as in
 * TensorFlow's InTopK. scores: float [batch, classes]. labels: [batch]. weights: [batch]. k: above 0.
 * Variables: `name`/total, `name`/count. */
TW_EXPORT void tw_metric_top_k(tw_scope* scope, const char* name, tw_output scores, tw_output labels, int64_t k, tw_output weights,
                               tw_metric* out_metric);
/* For two classes: precision is true positives over predicted positives, recall is true positives over all positives. predictions: numbers,
 * of which those above the threshold are positive; or bools. labels: of the shape of predictions; positive if not 0; bool, integer or
 * floating. threshold: for numbers; finite. Without a predicted (or a true) positive the value is NaN. Variables: `name`/total,
 * `name`/count. */
TW_EXPORT void tw_metric_precision(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, double threshold,
                                   tw_output weights, tw_metric* out_metric);
TW_EXPORT void tw_metric_recall(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, double threshold,
                                tw_output weights, tw_metric* out_metric);
/* The area under the curve of true over false positive rates. scores: probabilities in [0, 1]; others count as 0 or 1, and a
 * step with NaN fails with INVALID_ARGUMENT. labels: as those of
 * tw_metric_precision, of the shape of scores. buckets: above 1; the scores are sorted into that many buckets of equal width, and the area
 * is that of the trapezoids between buckets: scores of one bucket count as equal. With scores that lie in different buckets it is the
 * probability that a positive example has a higher score than a negative one. Without a positive or a negative example the value is NaN.
 * Variables: `name`/positives and `name`/negatives, [buckets]. */
TW_EXPORT void tw_metric_auc(tw_scope* scope, const char* name, tw_output scores, tw_output labels, int64_t buckets, tw_output weights,
                             tw_metric* out_metric);
/* The confusion matrix: value [classes, classes] has in row i and column j the weight of the examples of label i that were predicted as j.
 * predictions: as those of tw_metric_accuracy. labels: [..], below `classes`; a step with another class or label fails with
 * INVALID_ARGUMENT. classes: above 0. Variable: `name`/counts. */
TW_EXPORT void tw_metric_confusion(tw_scope* scope, const char* name, tw_output predictions, tw_output labels, int64_t classes,
                                   tw_output weights, tw_metric* out_metric);

#ifdef __cplusplus
}
#endif
#endif
