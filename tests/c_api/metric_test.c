/* Metrics over several batches against their definitions in double, and their errors. tests/python/metrics_test.py compares them with
 * NumPy on random data. */
#include "check.h"

enum { kBatches = 3, kRows = 5, kClasses = 4 };

static tw_graph* graph;
static tw_scope* s;

static void begin(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
}

#define REFUSED(part)                                     \
  do {                                                    \
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, part); \
    tw_graph_destroy(graph);                              \
  } while (0)

/* Feeds of the metrics: scores, labels, weights. */
static tw_output scores, labels, weights;

static void begin_feeds(int64_t classes) {
  begin();
  const int64_t dims[] = {-1, classes};
  scores = tw_scope_placeholder(s, "scores", TW_FLOAT, dims, classes ? 2 : 1);
  labels = tw_scope_placeholder(s, "labels", TW_INT32, dims, 1);
  weights = tw_scope_placeholder(s, "weights", TW_FLOAT, dims, 1);
}

static float score_at(int batch, int i) { return (float)(0.5 + 0.5 * sin(2.1 * i + 5.3 * batch)); }
static int32_t label_at(int batch, int i, int classes) { return (int32_t)((3 * i + batch) % classes); }
static float weight_at(int batch, int i) { return (float)((i + batch) % 3); }

/* Runs the update for each batch, twice with a reset between, and writes the value, of n numbers. */
static void measure(const tw_metric* metric, int columns, int classes, double* out, int n) {
  const tw_operation* init = tw_variable_initializer(s, "init");
  tw_session* session = NULL;
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  const uint64_t operations = tw_graph_count(graph);
  for (int round = 0; round < 2; ++round) {
    run(session, metric->reset);
    for (int batch = 0; batch < kBatches; ++batch) {
      float x[kRows * kClasses], w[kRows];
      int32_t y[kRows];
      for (int i = 0; i < kRows * columns; ++i) x[i] = score_at(batch, i);
      for (int i = 0; i < kRows; ++i) y[i] = label_at(batch, i, classes), w[i] = weight_at(batch, i);
      const int64_t dims[] = {kRows, columns};
      tw_tensor* fed[] = {floats(dims, columns > 1 ? 2 : 1, x), NULL, floats(dims, 1, w)};
      OK(tw_tensor_create_copy(TW_INT32, dims, 1, y, sizeof y, &fed[1]));
      const tw_output feeds[] = {scores, labels, weights};
      const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 3, .targets = &metric->update, .n_targets = 1};
      OK(tw_session_run(session, &what, fed, NULL, NULL));
      for (int i = 0; i < 3; ++i) tw_tensor_release(fed[i]);
    }
    tw_tensor* value = fetch(session, 0, NULL, metric->value);
    CHECK(value && tw_tensor_dtype(value) == TW_DOUBLE && tw_tensor_count(value) == (uint64_t)n);
    for (int i = 0; value && i < n; ++i) out[i] = ((const double*)tw_tensor_data(value))[i];
    tw_tensor_release(value);
  }
  CHECK(tw_graph_count(graph) == operations); /* the graph does not grow with the batches */
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static int best_class(int batch, int row) {
  int best = 0;
  for (int c = 1; c < kClasses; ++c) best = score_at(batch, row * kClasses + c) > score_at(batch, row * kClasses + best) ? c : best;
  return best;
}

static void MeansAndPerplexitiesAreOverAllBatches(void) {
  for (int kind = 0; kind < 2; ++kind) {
    begin_feeds(0);
    tw_metric metric;
    (kind ? tw_metric_perplexity : tw_metric_mean)(s, "m", scores, weights, &metric);
    double got = 0, total = 0, count = 0;
    measure(&metric, 1, 2, &got, 1);
    for (int b = 0; b < kBatches; ++b) {
      for (int i = 0; i < kRows; ++i) total += (double)weight_at(b, i) * score_at(b, i), count += weight_at(b, i);
    }
    CHECK(near(got, kind ? exp(total / count) : total / count, 1e-12));
  }
}

static void AccuracyCountsEqualClasses(void) {
  for (int weighted = 0; weighted < 2; ++weighted) {
    begin_feeds(kClasses);
    tw_metric metric;
    tw_metric_accuracy(s, "m", scores, labels, weighted ? weights : 0, &metric);
    double got = 0, right = 0, count = 0;
    measure(&metric, kClasses, kClasses, &got, 1);
    for (int b = 0; b < kBatches; ++b) {
      for (int i = 0; i < kRows; ++i) {
        const double w = weighted ? weight_at(b, i) : 1;
        right += w * (best_class(b, i) == label_at(b, i, kClasses)), count += w;
      }
    }
    CHECK(right > 0 && right < count && near(got, right / count, 1e-12));
  }
}

static void TopKCountsLabelsAmongTheLargestScores(void) {
  begin_feeds(kClasses);
  tw_metric metric;
  tw_metric_top_k(s, "m", scores, labels, 2, 0, &metric);
  double got = 0, right = 0;
  measure(&metric, kClasses, kClasses, &got, 1);
  for (int b = 0; b < kBatches; ++b) {
    for (int i = 0; i < kRows; ++i) {
      int larger = 0;
      for (int c = 0; c < kClasses; ++c)
        larger += score_at(b, i * kClasses + c) > score_at(b, i * kClasses + label_at(b, i, kClasses));
      right += larger < 2;
    }
  }
  CHECK(right > 0 && right < kBatches * kRows && near(got, right / (kBatches * kRows), 1e-12));
}

static void PrecisionAndRecallCountTruePositives(void) {
  for (int kind = 0; kind < 2; ++kind) {
    begin_feeds(0);
    tw_metric metric;
    (kind ? tw_metric_recall : tw_metric_precision)(s, "m", scores, labels, 0.6, weights, &metric);
    double got = 0, both = 0, among = 0;
    measure(&metric, 1, 2, &got, 1);
    for (int b = 0; b < kBatches; ++b) {
      for (int i = 0; i < kRows; ++i) {
        const int predicted = score_at(b, i) > 0.6, positive = label_at(b, i, 2);
        both += weight_at(b, i) * (predicted && positive);
        among += weight_at(b, i) * (kind ? positive : predicted);
      }
    }
    CHECK(both > 0 && both < among && near(got, both / among, 1e-12));
  }
}

static void TheAreaIsTheShareOfPairsInOrder(void) {
  begin_feeds(0);
  tw_metric metric;
  tw_metric_auc(s, "m", scores, labels, 1000, weights, &metric);
  double got = 0, won = 0, pairs = 0;
  measure(&metric, 1, 2, &got, 1);
  for (int i = 0; i < kBatches * kRows; ++i) {
    for (int k = 0; k < kBatches * kRows; ++k) {
      const int bi = i / kRows, bk = k / kRows, ri = i % kRows, rk = k % kRows;
      if (!label_at(bi, ri, 2) || label_at(bk, rk, 2)) continue;
      const double w = (double)weight_at(bi, ri) * weight_at(bk, rk);
      const int a = (int)(1000 * (double)score_at(bi, ri)), b = (int)(1000 * (double)score_at(bk, rk));
      pairs += w, won += w * (a > b ? 1 : a == b ? 0.5 : 0);
    }
  }
  CHECK(won > 0 && won < pairs && near(got, won / pairs, 1e-12));
}

static void ConfusionHasARowForEachLabel(void) {
  begin_feeds(kClasses);
  tw_metric metric;
  tw_metric_confusion(s, "m", scores, labels, kClasses, weights, &metric);
  double got[kClasses * kClasses], wanted[kClasses * kClasses] = {0};
  measure(&metric, kClasses, kClasses, got, kClasses * kClasses);
  for (int b = 0; b < kBatches; ++b) {
    for (int i = 0; i < kRows; ++i) wanted[label_at(b, i, kClasses) * kClasses + best_class(b, i)] += weight_at(b, i);
  }
  for (int i = 0; i < kClasses * kClasses; ++i) CHECK(got[i] == wanted[i]);
}

static void AValueWithoutExamplesIsNoNumber(void) {
  begin_feeds(0);
  tw_metric metric;
  tw_metric_mean(s, "m", scores, 0, &metric);
  const tw_operation* init = tw_variable_initializer(s, "init");
  tw_session* session = NULL;
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  tw_tensor* value = fetch(session, 0, NULL, metric.value);
  CHECK(value && isnan(*(const double*)tw_tensor_data(value)));
  tw_tensor_release(value);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* The code and message of one update with these scores and labels. */
static tw_status* update_with(const tw_metric* metric, float score, int32_t label) {
  const tw_operation* init = tw_variable_initializer(s, "init");
  tw_session* session = NULL;
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, init);
  const int64_t one = 1;
  tw_tensor* fed[] = {floats(&one, 1, &score), NULL};
  OK(tw_tensor_create_copy(TW_INT32, &one, 1, &label, sizeof label, &fed[1]));
  const tw_output feeds[] = {scores, labels};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .targets = &metric->update, .n_targets = 1};
  tw_status* status = tw_session_run(session, &what, fed, NULL, NULL);
  tw_tensor_release(fed[0]);
  tw_tensor_release(fed[1]);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return status;
}

static void ClassesBeyondTheMatrixFail(void) {
  for (int32_t label = -1; label < 4; label += 4) {
    begin_feeds(0);
    tw_metric metric;
    tw_metric_confusion(s, "m", labels, labels, 3, 0, &metric);
    FAILS(update_with(&metric, 0, label), TW_INVALID_ARGUMENT, "");
  }
  begin_feeds(0);
  tw_metric metric;
  tw_metric_auc(s, "m", scores, labels, 10, 0, &metric);
  FAILS(update_with(&metric, NAN, 1), TW_INVALID_ARGUMENT, "");
}

static void WrongMetricsAreRefused(void) {
  tw_metric metric;
  begin_feeds(kClasses);
  tw_metric_accuracy(s, "m", scores, scores, 0, &metric);
  CHECK(!metric.value && !metric.update && !metric.reset);
  REFUSED("tw_metric_accuracy: labels are float");
  begin_feeds(kClasses);
  tw_metric_accuracy(s, "m", scores, tw_scope_op2(s, "ExpandDims", labels, tw_scope_scalar(s, TW_INT32, 1)), 0, &metric);
  REFUSED("labels have shape [?, 1], and the predictions are for [?]");
  begin_feeds(0);
  tw_metric_top_k(s, "m", scores, labels, 1, 0, &metric);
  REFUSED("they must be float [batch, classes]");
  begin_feeds(kClasses);
  tw_metric_top_k(s, "m", scores, labels, 0, 0, &metric);
  REFUSED("k is 0");
  begin_feeds(0);
  tw_metric_auc(s, "m", scores, labels, 1, 0, &metric);
  REFUSED("buckets is 1");
  begin_feeds(0);
  tw_metric_precision(s, "m", scores, labels, INFINITY, 0, &metric);
  REFUSED("threshold is inf");
  begin_feeds(0);
  tw_metric_confusion(s, "m", labels, labels, 0, 0, &metric);
  REFUSED("classes is 0");
  begin_feeds(0);
  tw_metric_mean(s, NULL, scores, 0, &metric);
  REFUSED("name is NULL");
  begin_feeds(0);
  tw_metric_mean(s, "m", scores, 0, NULL);
  REFUSED("out_metric is NULL");
}

MAIN(TEST(MeansAndPerplexitiesAreOverAllBatches), TEST(AccuracyCountsEqualClasses), TEST(TopKCountsLabelsAmongTheLargestScores),
     TEST(PrecisionAndRecallCountTruePositives), TEST(TheAreaIsTheShareOfPairsInOrder), TEST(ConfusionHasARowForEachLabel),
     TEST(AValueWithoutExamplesIsNoNumber), TEST(ClassesBeyondTheMatrixFail), TEST(WrongMetricsAreRefused))
