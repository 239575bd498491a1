/* Clipping: the results for gradients of known norms, dense and sparse, of a long and a short
 * type. */
#include "check.h"

static tw_tensor* out[4];
static void evaluate(tw_graph* graph, const tw_output* values, uint32_t n) {
  tw_session* session = NULL;
  OK(tw_session_create(graph, NULL, 0, &session));
  const tw_signature what = {.size = sizeof what, .fetches = values, .n_fetches = n};
  OK(tw_session_run(session, &what, NULL, NULL, out));
  tw_session_destroy(session);
}
static double element(int k, int i) {
  const double value =
      out[k] ? tw_tensor_dtype(out[k]) == TW_DOUBLE ? ((const double*)tw_tensor_data(out[k]))[i] : ((const float*)tw_tensor_data(out[k]))[i]
             : NAN;
  return value;
}
static void forget(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) tw_tensor_release(out[i]);
}

/* (3, 4) dense, none, and (0, 12) for row 5: norms 5 and 12, total norm 13. */
typedef struct given {
  tw_graph* graph;
  tw_scope* scope;
  tw_gradient gradients[3];
} given;
static given new_given(void) {
  given g = {0};
  OK(tw_graph_create(NULL, &g.graph));
  g.scope = tw_scope_create(g.graph, NULL);
  const int64_t dims[] = {1, 2};
  const float dense[] = {3, 4}, sparse[] = {0, 12};
  const int32_t row = 5;
  tw_tensor *a = floats(dims, 2, dense), *b = floats(dims, 2, sparse);
  g.gradients[0].values = tw_scope_constant(g.scope, a);
  g.gradients[2] = (tw_gradient){tw_scope_constant(g.scope, b), tw_scope_ints(g.scope, &row, 1)};
  tw_tensor_release(a);
  tw_tensor_release(b);
  return g;
}

static void finish(given* g, const double* wanted) {
  CHECK(g->gradients[1].values == 0 && g->gradients[0].rows == 0 && g->gradients[2].rows != 0);
  OK(tw_scope_finish(g->scope));
  const tw_output values[] = {g->gradients[0].values, g->gradients[2].values};
  evaluate(g->graph, values, 2);
  for (int i = 0; i < 4; ++i) CHECK(near(element(i / 2, i % 2), wanted[i], 1e-6));
  forget(2);
  tw_graph_destroy(g->graph);
}

static void ElementsAreClippedIntoARange(void) {
  given g = new_given();
  tw_clip_by_value(g.scope, g.gradients, 3, 1, 3.5);
  finish(&g, (const double[]){3, 3.5, 1, 3.5});
}

static void EachGradientIsClippedByItsNorm(void) {
  given g = new_given();
  tw_clip_by_norm(g.scope, g.gradients, 3, 6);
  finish(&g, (const double[]){3, 4, 0, 6});
}

static void AllAreClippedByTheNormOfAll(void) {
  given g = new_given();
  const tw_output norm = tw_clip_by_global_norm(g.scope, g.gradients, 3, 6.5);
  const tw_output before = norm;
  finish(&g, (const double[]){1.5, 2, 0, 6});
  g = new_given();
  const tw_output again = tw_clip_by_global_norm(g.scope, g.gradients, 3, 100);
  CHECK(before && again);
  const tw_output values[] = {again, g.gradients[0].values};
  OK(tw_scope_finish(g.scope));
  evaluate(g.graph, values, 2);
  CHECK(near(element(0, 0), 13, 1e-12) && element(1, 0) == 3 && element(1, 1) == 4);
  forget(2);
  tw_graph_destroy(g.graph);
}

/* Row 5 gets [3, 4] and [5, 2], row 1 [6, 0]: together [8, 6] and [6, 0], whose norm is the root of 136. */
static void RowsThatRepeatCountAsTheirSum(void) {
  for (int kind = 0; kind < 3; ++kind) {
    given g = new_given();
    const int64_t dims[] = {3, 2};
    const float values[] = {3, 4, 6, 0, 5, 2};
    const int32_t rows[] = {5, 1, 5};
    tw_tensor* t = floats(dims, 2, values);
    tw_gradient sparse = {tw_scope_constant(g.scope, t), tw_scope_ints(g.scope, rows, 3)};
    tw_tensor_release(t);
    if (kind == 0) tw_clip_by_value(g.scope, &sparse, 1, -1, 7);
    if (kind == 1) tw_clip_by_norm(g.scope, &sparse, 1, sqrt(136) / 2);
    tw_output norm = tw_scope_scalar(g.scope, TW_DOUBLE, sqrt(136));
    if (kind == 2) norm = tw_clip_by_global_norm(g.scope, &sparse, 1, sqrt(136) / 2);
    OK(tw_scope_finish(g.scope));
    const tw_output found[] = {sparse.values, norm};
    evaluate(g.graph, found, 2);
    const double wanted[2][4] = {{7, 6, 6, 0}, {4, 3, 3, 0}};
    for (int i = 0; i < 4; ++i) CHECK(near(element(0, i), wanted[kind > 0][i], 1e-6));
    CHECK(near(element(1, 0), sqrt(136), 1e-12));
    forget(2);
    tw_graph_destroy(g.graph);
  }
}

static void ANormThatIsNotFiniteIsNotHidden(void) {
  given g = new_given();
  const tw_output zero = tw_scope_scalar(g.scope, TW_FLOAT, 0), one = tw_scope_scalar(g.scope, TW_FLOAT, 1);
  g.gradients[0].values = tw_scope_op2(g.scope, "Div", one, zero);
  tw_clip_by_global_norm(g.scope, g.gradients, 3, 1);
  OK(tw_scope_finish(g.scope));
  const tw_output values[] = {g.gradients[0].values, g.gradients[2].values};
  evaluate(g.graph, values, 2);
  CHECK(isnan(element(0, 0)) && isnan(element(1, 0)) && isnan(element(1, 1)));
  forget(2);
  tw_graph_destroy(g.graph);
}

/* 300^2 exceeds the range of half. */
static void HalvesAreSummedInFloat(void) {
  given g = new_given();
  const int32_t dims[] = {4};
  const tw_output big = tw_scope_op2(g.scope, "Fill", tw_scope_ints(g.scope, dims, 1), tw_scope_scalar(g.scope, TW_HALF, 300));
  tw_gradient gradient = {big, 0};
  const tw_output norm = tw_clip_by_global_norm(g.scope, &gradient, 1, 1);
  OK(tw_scope_finish(g.scope));
  evaluate(g.graph, &norm, 1);
  CHECK(near(element(0, 0), 600, 1e-6));
  forget(1);
  tw_graph_destroy(g.graph);
}

static void NothingToClipHasNoNorm(void) {
  given g = new_given();
  tw_gradient none[2] = {{0, 0}, {0, 0}};
  const tw_output norm = tw_clip_by_global_norm(g.scope, none, 2, 1);
  OK(tw_scope_finish(g.scope));
  evaluate(g.graph, &norm, 1);
  CHECK(element(0, 0) == 0 && none[0].values == 0);
  forget(1);
  tw_graph_destroy(g.graph);
}

static void WrongLimitsAreRefused(void) {
  const char* parts[] = {"low is 2, high 1", "tw_clip_by_norm: max_norm is 0", "tw_clip_by_global_norm: max_norm is -1",
                         "gradients is NULL", "max_norm is inf"};
  for (int kind = 0; kind < 5; ++kind) {
    given g = new_given();
    const tw_output before = g.gradients[0].values;
    if (kind == 0) tw_clip_by_value(g.scope, g.gradients, 3, 2, 1);
    if (kind == 1) tw_clip_by_norm(g.scope, g.gradients, 3, 0);
    if (kind == 2) CHECK(tw_clip_by_global_norm(g.scope, g.gradients, 3, -1) == 0);
    if (kind == 3) tw_clip_by_norm(g.scope, NULL, 3, 1);
    if (kind == 4) tw_clip_by_norm(g.scope, g.gradients, 3, INFINITY);
    CHECK(g.gradients[0].values == before);
    FAILS(tw_scope_finish(g.scope), TW_INVALID_ARGUMENT, parts[kind]);
    tw_graph_destroy(g.graph);
  }
}

MAIN(TEST(ElementsAreClippedIntoARange), TEST(EachGradientIsClippedByItsNorm), TEST(AllAreClippedByTheNormOfAll),
     TEST(RowsThatRepeatCountAsTheirSum), TEST(ANormThatIsNotFiniteIsNotHidden), TEST(HalvesAreSummedInFloat), TEST(NothingToClipHasNoNorm),
     TEST(WrongLimitsAreRefused))
