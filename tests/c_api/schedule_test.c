/* Schedules against their formulas, over fed steps; the global step. */
#include "check.h"

static const double kPi = 3.14159265358979323846;
static const double kBoundaries[] = {3, 7}, kValues[] = {1, 0.5, 0.25};

static double piecewise(double t) { return t <= 3 ? 1 : t <= 7 ? 0.5 : 0.25; }
static double exponential(double t) { return 0.1 * pow(0.9, t / 4); }
static double stairs(double t) { return 0.1 * pow(0.9, floor(t / 4)); }
static double polynomial(double t) { return 0.09 * pow(1 - fmin(t, 8) / 8, 2) + 0.01; }
static double cycle(double t) { return 0.09 * pow(1 - t / (8 * fmax(1, ceil(t / 8))), 2) + 0.01; }
static double wave(double done) { return (1 + cos(kPi * done)) / 2; }
static double cosine(double t) { return 0.1 * (0.8 * wave(fmin(t, 10) / 10) + 0.2); }
static double restarts(double t) { /* periods of 2, 6, 18 steps */
  const int i = t < 2 ? 0 : t < 8 ? 1 : 2;
  const double begin[] = {0, 2, 8}, length[] = {2, 6, 18};
  return 0.1 * (0.8 * pow(0.5, i) * wave((t - begin[i]) / length[i]) + 0.2);
}
static double even(double t) { return 0.1 * wave(t / 5 - floor(t / 5)); }
static double straight(double t) { return 0.0999 * (1 - fmin(t, 8) / 8) + 0.0001; }
static double doubling(double t) { /* periods of 4, 8, 16 steps */
  const double begin = t < 4 ? 0 : t < 12 ? 4 : 12;
  return 0.1 * wave((t - begin) / (begin == 0 ? 4 : begin == 4 ? 8 : 16));
}
static double warm(double t) { return exponential(t) * (0.25 + 0.75 * fmin(t, 6) / 6); }

static void SchedulesFollowTheirFormulas(void) {
  double (*formulas[])(double) = {piecewise, exponential, stairs, polynomial, cycle, cosine, restarts, even, straight, doubling, warm};
  enum { kCount = sizeof formulas / sizeof formulas[0] };
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output step = tw_scope_placeholder(s, "step", TW_INT64, NULL, 0);
  tw_polynomial once, again;
  tw_polynomial_init(&once);
  once.end = 0.01;
  once.power = 2;
  again = once;
  again.cycle = 1;
  const tw_cosine_restarts longer = {sizeof longer, 0, 3, 0.5, 0.2}, same = {sizeof same, 0, 1, 1, 0};
  const tw_output rates[] = {tw_schedule_piecewise(s, step, kBoundaries, kValues, 2),
                             tw_schedule_exponential(s, step, 0.1, 4, 0.9, 0),
                             tw_schedule_exponential(s, step, 0.1, 4, 0.9, 1),
                             tw_schedule_polynomial(s, step, 0.1, 8, &once),
                             tw_schedule_polynomial(s, step, 0.1, 8, &again),
                             tw_schedule_cosine(s, step, 0.1, 10, 0.2),
                             tw_schedule_cosine_restarts(s, step, 0.1, 2, &longer),
                             tw_schedule_cosine_restarts(s, step, 0.1, 5, &same),
                             tw_schedule_polynomial(s, step, 0.1, 8, NULL),
                             tw_schedule_cosine_restarts(s, step, 0.1, 4, NULL),
                             tw_schedule_warm_up(s, step, tw_schedule_exponential(s, step, 0.1, 4, 0.9, 0), 6, 0.25)};
  OK(tw_scope_finish(s));
  tw_session* session = NULL;
  OK(tw_session_create(graph, NULL, 0, &session));
  for (int64_t t = 0; t < 26; ++t) {
    tw_tensor *fed = NULL, *got[kCount];
    OK(tw_tensor_create_int64(t, &fed));
    const tw_signature what = {.size = sizeof what, .feeds = &step, .n_feeds = 1, .fetches = rates, .n_fetches = kCount};
    OK(tw_session_run(session, &what, &fed, NULL, got));
    for (int i = 0; i < kCount; ++i) {
      const double value = got[i] && tw_tensor_dtype(got[i]) == TW_DOUBLE ? *(const double*)tw_tensor_data(got[i]) : NAN;
      if (!near(value, formulas[i]((double)t), 1e-12)) printf("  schedule %d, step %d: %.17g\n", i, (int)t, value);
      CHECK(near(value, formulas[i]((double)t), 1e-12));
      tw_tensor_release(got[i]);
    }
    tw_tensor_release(fed);
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void ATrainingStepAdvancesTheGlobalStep(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "inner");
  const tw_output step = tw_global_step(s);
  CHECK(step != 0 && step == tw_global_step(s));
  const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_FLOAT, 1)), value = tw_variable_read(s, w);
  const tw_gradient one = {tw_scope_scalar(s, TW_FLOAT, 1), 0};
  const double rates[] = {0.5, 0.125}, boundary = 0;
  const tw_sgd sgd = {sizeof sgd, 0, tw_schedule_piecewise(s, tw_variable_read(s, step), &boundary, rates, 1)};
  const tw_operation* train = tw_global_step_advance(s, tw_train_sgd(s, &w, &one, 1, &sgd));
  const tw_operation* init = tw_variable_initializer(s, "init");
  const tw_output count = tw_variable_read(s, step);
  OK(tw_scope_finish(s));
  const tw_operation* found = NULL;
  OK(tw_graph_find(graph, "global_step", &found));
  const char* options[] = {"container=schedule"};
  tw_session* session = NULL;
  OK(tw_session_create(graph, options, 1, &session));
  run(session, init);
  run(session, train); /* 0.5 */
  run(session, train); /* 0.125, twice */
  run(session, train);
  CHECK(as_float(fetch(session, 0, NULL, value)) == 0.25f);
  tw_tensor* steps = fetch(session, 0, NULL, count);
  CHECK(steps && *(const int64_t*)tw_tensor_data(steps) == 3);
  tw_tensor_release(steps);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* 126 / 2.8 rounds to 45, and 2.8 * 45 to less than 126. */
static void ACycleEndsAtItsEndWhereQuotientsAreRounded(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_polynomial options = {.size = sizeof options, .end = 0.25, .power = 0.5, .cycle = 1};
  const tw_output rate = tw_schedule_polynomial(s, tw_scope_scalar(s, TW_INT64, 126), 1, 2.8, &options);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_tensor* t = fetch(session, 0, NULL, rate);
  CHECK(t && *(const double*)tw_tensor_data(t) == 0.25);
  tw_tensor_release(t);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void AnotherOperationMayNotBeTheGlobalStep(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_scope_name(s, "global_step", tw_scope_scalar(s, TW_FLOAT, 1));
  CHECK(tw_global_step(s) == 0);
  FAILS(tw_scope_finish(s), TW_ALREADY_EXISTS, "'global_step' is an operation of type Identity");
  tw_graph_destroy(graph);
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
  const int32_t two[] = {0, 0};
  tw_op* wide = tw_scope_begin(s, "Cast", NULL);
  tw_op_add_input(wide, tw_scope_ints(s, two, 2));
  tw_op_set_type(wide, "DstT", TW_INT64);
  tw_variable_create(s, "global_step", tw_scope_end(s, wide));
  CHECK(tw_global_step(s) == 0);
  FAILS(tw_scope_finish(s), TW_ALREADY_EXISTS, "holds an int64 scalar");
  tw_graph_destroy(graph);
}

static void WrongSchedulesAreRefused(void) {
  const char* parts[] = {"boundaries[1] is 3 after 3", "boundaries or values is NULL",
                         "exponential: steps is 0",    "factor is -1",
                         "polynomial: steps is nan",   "power is -1",
                         "cosine: steps is 0",         "first_steps is 0",
                         "length_factor is 0.5",       "warm_up: steps is -1",
                         "tw_polynomial_init first",   "tw_cosine_restarts_init first"};
  for (int kind = 0; kind < 12; ++kind) {
    tw_graph* graph = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    const tw_output step = tw_scope_scalar(s, TW_INT64, 1);
    const double same[] = {3, 3};
    const tw_polynomial power = {.size = sizeof power, .power = -1}, empty = {.size = 0};
    const tw_cosine_restarts shorter = {sizeof shorter, 0, 0.5, 1, 0}, flags = {sizeof flags, 1, 2, 1, 0};
    if (kind == 0) tw_schedule_piecewise(s, step, same, kValues, 2);
    if (kind == 1) tw_schedule_piecewise(s, step, NULL, kValues, 2);
    if (kind == 2) tw_schedule_exponential(s, step, 1, 0, 0.5, 0);
    if (kind == 3) tw_schedule_exponential(s, step, 1, 1, -1, 0);
    if (kind == 4) tw_schedule_polynomial(s, step, 1, NAN, NULL);
    if (kind == 5) tw_schedule_polynomial(s, step, 1, 1, &power);
    if (kind == 6) tw_schedule_cosine(s, step, 1, 0, 0);
    if (kind == 7) tw_schedule_cosine_restarts(s, step, 1, 0, NULL);
    if (kind == 8) tw_schedule_cosine_restarts(s, step, 1, 1, &shorter);
    if (kind == 9) tw_schedule_warm_up(s, step, step, -1, 0);
    if (kind == 10) tw_schedule_polynomial(s, step, 1, 1, &empty);
    if (kind == 11) tw_schedule_cosine_restarts(s, step, 1, 1, &flags);
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, parts[kind]);
    tw_graph_destroy(graph);
  }
}

MAIN(TEST(SchedulesFollowTheirFormulas), TEST(ATrainingStepAdvancesTheGlobalStep), TEST(ACycleEndsAtItsEndWhereQuotientsAreRounded),
     TEST(AnotherOperationMayNotBeTheGlobalStep), TEST(WrongSchedulesAreRefused))
