/* L-BFGS on problems whose minimum is known, or is found here by another method. */
#include "check.h"

static tw_session* new_session(tw_graph* graph, const tw_operation* init) {
  static int number;
  char container[64];
  snprintf(container, sizeof container, "container=lbfgs%d", ++number);
  const char* options[] = {container};
  tw_session* session = NULL;
  OK(tw_session_create(graph, options, 1, &session));
  run(session, init);
  return session;
}

static double scalar_value(tw_session* session, tw_output what) {
  tw_tensor* t = fetch(session, 0, NULL, what);
  const double x = !t ? NAN : tw_tensor_dtype(t) == TW_DOUBLE ? *(const double*)tw_tensor_data(t) : *(const float*)tw_tensor_data(t);
  tw_tensor_release(t);
  return x;
}

/* Rosenbrock's function, (1 - x)^2 + 100 (y - x^2)^2, from (-1.2, 1); its minimum is 0 at (1,
 * 1). */
typedef struct valley {
  tw_graph* graph;
  tw_session* session;
  tw_output variables[3], x, y, loss; /* the third variable is not in the loss */
} valley;

static valley new_valley(uint32_t dtype) {
  valley v = {0};
  OK(tw_graph_create(NULL, &v.graph));
  tw_scope* s = tw_scope_create(v.graph, NULL);
  const tw_output one = tw_scope_scalar(s, dtype, 1);
  v.variables[0] = tw_variable_create(s, "x", tw_scope_scalar(s, dtype, -1.2));
  v.variables[1] = tw_variable_create(s, "y", tw_scope_scalar(s, dtype, 1));
  v.variables[2] = tw_variable_create(s, "z", tw_scope_scalar(s, dtype, 5));
  v.x = tw_variable_read(s, v.variables[0]);
  v.y = tw_variable_read(s, v.variables[1]);
  const tw_output off = tw_scope_op1(s, "Square", tw_scope_op2(s, "Sub", v.y, tw_scope_op1(s, "Square", v.x)));
  v.loss = tw_scope_op2(s, "Add", tw_scope_op1(s, "Square", tw_scope_op2(s, "Sub", one, v.x)),
                        tw_scope_op2(s, "Mul", tw_scope_scalar(s, dtype, 100), off));
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  v.session = new_session(v.graph, init);
  return v;
}
static void free_valley(valley* v) {
  tw_session_destroy(v->session);
  tw_graph_destroy(v->graph);
}

static void RosenbrocksValleyIsLeftAtItsMinimum(void) {
  const uint32_t types[] = {TW_DOUBLE, TW_FLOAT};
  for (int i = 0; i < 2; ++i) {
    valley v = new_valley(types[i]);
    tw_lbfgs* lbfgs = NULL;
    tw_lbfgs_report report = {.size = sizeof report};
    OK(tw_lbfgs_create(v.graph, v.loss, v.variables, 3, NULL, &lbfgs));
    OK(tw_lbfgs_run(lbfgs, v.session, NULL, NULL, 0, 100, &report));
    const double tolerance = i ? 1e-3 : 1e-6;
    printf("  %u iterations, %u evaluations, loss %g, gradient %g, why %u\n", report.iterations, report.evaluations, report.loss,
           report.gradient, report.why);
    CHECK(near(scalar_value(v.session, v.x), 1, tolerance) && near(scalar_value(v.session, v.y), 1, tolerance));
    CHECK(report.iterations > 5 && report.iterations < 60 && report.evaluations > report.iterations && report.evaluations < 100);
    CHECK(i || (report.why == TW_LBFGS_GRADIENT && report.gradient <= 1e-6 && report.loss < 1e-12));
    CHECK(report.why != TW_LBFGS_ITERATIONS);
    tw_lbfgs_destroy(lbfgs);
    free_valley(&v);
  }
}

static void ARunMayBeTakenUpAgain(void) {
  valley v = new_valley(TW_DOUBLE);
  tw_lbfgs* lbfgs = NULL;
  tw_lbfgs_report report = {.size = sizeof report};
  OK(tw_lbfgs_create(v.graph, v.loss, v.variables, 2, NULL, &lbfgs));
  double before = INFINITY;
  uint32_t runs = 0;
  for (; runs < 60 && report.why != TW_LBFGS_GRADIENT; ++runs) {
    OK(tw_lbfgs_run(lbfgs, v.session, NULL, NULL, 0, 1, &report));
    CHECK(report.iterations <= 1 && report.loss <= before);
    CHECK(near(scalar_value(v.session, v.loss), report.loss, 1e-14)); /* the variables have the values of the report */
    before = report.loss;
  }
  CHECK(runs < 60 && near(scalar_value(v.session, v.x), 1, 1e-6));
  tw_lbfgs_reset(lbfgs);
  OK(tw_lbfgs_run(lbfgs, v.session, NULL, NULL, 0, 1, NULL));
  tw_lbfgs_destroy(lbfgs);
  free_valley(&v);
}

enum { kPoints = 60, kFeatures = 3, kClasses = 3, kWeights = kFeatures * kClasses };
static double points[kPoints][kFeatures];
static int labels[kPoints];

static void make_points(void) {
  for (int i = 0; i < kPoints; ++i) {
    labels[i] = (i * 7 + i / 11) % kClasses;
    for (int k = 0; k < kFeatures; ++k) points[i][k] = sin(1.3 * i + 2.1 * k) + (k == labels[i] ? 0.7 : 0);
  }
}

/* The mean cross-entropy of a softmax regression with L2 penalty 0.01 |w|^2 / 2, its gradient
 * and its second derivatives. */
static double regression(const double* w, double* g, double h[kWeights][kWeights]) {
  double loss = 0;
  for (int i = 0; i < kWeights; ++i) {
    loss += 0.005 * w[i] * w[i];
    g[i] = 0.01 * w[i];
    for (int k = 0; k < kWeights; ++k) h[i][k] = i == k ? 0.01 : 0;
  }
  for (int i = 0; i < kPoints; ++i) {
    double p[kClasses], sum = 0;
    for (int c = 0; c < kClasses; ++c) {
      double z = 0;
      for (int k = 0; k < kFeatures; ++k) z += points[i][k] * w[k * kClasses + c];
      sum += p[c] = exp(z);
    }
    loss -= log(p[labels[i]] / sum) / kPoints;
    for (int a = 0; a < kWeights; ++a) {
      const double pa = p[a % kClasses] / sum, xa = points[i][a / kClasses];
      g[a] += xa * (pa - (a % kClasses == labels[i])) / kPoints;
      for (int b = 0; b < kWeights; ++b) {
        const double pb = p[b % kClasses] / sum;
        h[a][b] += xa * points[i][b / kClasses] * pa * ((a % kClasses == b % kClasses) - pb) / kPoints;
      }
    }
  }
  return loss;
}

/* Newton's method, for a problem whose second derivatives are positive definite. */
static double newton(double* w) {
  double g[kWeights], h[kWeights][kWeights], loss = 0;
  for (int round = 0; round < 30; ++round) {
    loss = regression(w, g, h);
    for (int i = 0; i < kWeights; ++i) {
      for (int r = i + 1; r < kWeights; ++r) {
        const double factor = h[r][i] / h[i][i];
        for (int k = i; k < kWeights; ++k) h[r][k] -= factor * h[i][k];
        g[r] -= factor * g[i];
      }
    }
    for (int i = kWeights; i-- > 0;) {
      for (int k = i + 1; k < kWeights; ++k) g[i] -= h[i][k] * g[k];
      g[i] /= h[i][i];
      w[i] -= g[i];
    }
  }
  return loss;
}

static void ASoftmaxRegressionEndsWhereNewtonsMethodDoes(void) {
  make_points();
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int32_t dims[] = {kFeatures, kClasses}, axis = 0;
  const int64_t any[] = {-1, kFeatures};
  const tw_output zeros = tw_scope_op2(s, "Fill", tw_scope_ints(s, dims, 2), tw_scope_scalar(s, TW_DOUBLE, 0));
  const tw_output w = tw_variable_create(s, "w", zeros), value = tw_variable_read(s, w);
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_DOUBLE, any, 2), tw_scope_placeholder(s, "labels", TW_INT32, any, 1)};
  const tw_output each = tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", tw_scope_op2(s, "MatMul", feeds[0], value), feeds[1]);
  const tw_output penalty = tw_scope_op2(s, "Mul", tw_scope_op1(s, "L2Loss", value), tw_scope_scalar(s, TW_DOUBLE, 0.01));
  const tw_output loss = tw_scope_op2(s, "Add", tw_scope_op2(s, "Mean", each, tw_scope_ints(s, &axis, 1)), penalty);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  tw_session* session = new_session(graph, init);

  const int64_t sizes[] = {kPoints, kFeatures};
  tw_tensor* data[2] = {NULL, NULL};
  OK(tw_tensor_create_copy(TW_DOUBLE, sizes, 2, points, sizeof points, &data[0]));
  OK(tw_tensor_create_copy(TW_INT32, sizes, 1, labels, sizeof labels, &data[1]));
  tw_lbfgs* lbfgs = NULL;
  tw_lbfgs_options options;
  tw_lbfgs_options_init(&options);
  options.gradient_tolerance = 1e-8;
  options.change_tolerance = 0;
  tw_lbfgs_report report = {.size = sizeof report};
  OK(tw_lbfgs_create(graph, loss, &w, 1, &options, &lbfgs));
  OK(tw_lbfgs_run(lbfgs, session, feeds, data, 2, 200, &report));
  double wanted[kWeights] = {0};
  const double least = newton(wanted);
  printf("  %u iterations, loss %.12g, Newton's %.12g\n", report.iterations, report.loss, least);
  CHECK(report.why == TW_LBFGS_GRADIENT && near(report.loss, least, 1e-12));
  tw_tensor* got = fetch(session, 0, NULL, value);
  for (int i = 0; i < kWeights && got; ++i) CHECK(near(((const double*)tw_tensor_data(got))[i], wanted[i], 1e-6));
  tw_tensor_release(got);
  tw_tensor_release(data[0]);
  tw_tensor_release(data[1]);
  tw_lbfgs_destroy(lbfgs);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* log(x) is undefined for x <= 0: a step that leaves the domain is undone. */
static void StepsOutsideTheDomainAreTakenBack(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_DOUBLE, 20)), x = tw_variable_read(s, v);
  const tw_output loss = tw_scope_op2(s, "Sub", x, tw_scope_op1(s, "Log", x)); /* minimum at 1 */
  const tw_operation* init = tw_variable_initializer(s, "init");
  tw_op* worse = tw_scope_begin(s, "AssignVariableOp", NULL);
  tw_op_add_input(worse, v);
  tw_op_add_input(worse, tw_scope_scalar(s, TW_DOUBLE, -1));
  const tw_operation* leave = tw_scope_end_operation(s, worse);
  OK(tw_scope_finish(s));
  tw_session* session = new_session(graph, init);
  tw_lbfgs* lbfgs = NULL;
  tw_lbfgs_report report = {.size = sizeof report};
  OK(tw_lbfgs_create(graph, loss, &v, 1, NULL, &lbfgs));
  OK(tw_lbfgs_run(lbfgs, session, NULL, NULL, 0, 100, &report));
  CHECK(near(scalar_value(session, x), 1, 1e-5) && near(report.loss, 1, 1e-9));
  run(session, leave);
  FAILS(tw_lbfgs_run(lbfgs, session, NULL, NULL, 0, 100, &report), TW_FAILED_PRECONDITION, "start from other values");
  CHECK(scalar_value(session, x) == -1);
  tw_lbfgs_destroy(lbfgs);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void WrongUsesAreRefused(void) {
  const char* parts[] = {"tw_lbfgs_options_init", "history is 0",    "decrease is 0.9",         "is no variable",
                         "must be a real scalar", "depends on none", "change_tolerance -1e-09", "'x' is listed twice"};
  for (int kind = 0; kind < 8; ++kind) {
    valley v = new_valley(TW_DOUBLE);
    tw_scope* s = tw_scope_create(v.graph, NULL);
    const int32_t two[] = {1, 2};
    const tw_output vector = tw_scope_ints(s, two, 2);
    OK(tw_scope_finish(s));
    tw_lbfgs_options options;
    tw_lbfgs_options_init(&options);
    tw_output *variables = v.variables, loss = v.loss;
    if (kind == 0) options.size = 8;
    if (kind == 1) options.history = 0;
    if (kind == 2) options.decrease = 0.9;
    if (kind == 3) v.variables[1] = v.y;
    if (kind == 4) loss = vector;
    if (kind == 5) variables = v.variables + 2;
    if (kind == 6) options.change_tolerance = -1e-9;
    if (kind == 7) v.variables[1] = v.variables[0];
    tw_lbfgs* lbfgs = NULL;
    FAILS(tw_lbfgs_create(v.graph, loss, variables, kind == 5 ? 1 : 2, &options, &lbfgs), TW_INVALID_ARGUMENT, parts[kind]);
    CHECK(lbfgs == NULL);
    free_valley(&v);
  }
  valley v = new_valley(TW_DOUBLE);
  tw_lbfgs* lbfgs = NULL;
  tw_lbfgs_report report = {0};
  OK(tw_lbfgs_create(v.graph, v.loss, v.variables, 2, NULL, &lbfgs));
  FAILS(tw_lbfgs_run(lbfgs, v.session, NULL, NULL, 0, 0, NULL), TW_INVALID_ARGUMENT, "max_iterations is 0");
  FAILS(tw_lbfgs_run(lbfgs, v.session, NULL, NULL, 0, 1, &report), TW_INVALID_ARGUMENT, "sizeof(tw_lbfgs_report)");
  tw_lbfgs_destroy(lbfgs);
  free_valley(&v);
}

MAIN(TEST(RosenbrocksValleyIsLeftAtItsMinimum), TEST(ARunMayBeTakenUpAgain), TEST(ASoftmaxRegressionEndsWhereNewtonsMethodDoes),
     TEST(StepsOutsideTheDomainAreTakenBack), TEST(WrongUsesAreRefused))
