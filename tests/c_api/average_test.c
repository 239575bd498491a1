/* Moving averages against their formula; exchange of averages with their variables. */
#include "check.h"

/* w starts at 8 and decreases by 1 in each step. */
typedef struct falling {
  tw_graph* graph;
  tw_session* session;
  tw_output w, average, w_value, average_value;
  const tw_operation *train, *swap;
} falling;

static falling new_falling(uint32_t counted, const char* container) {
  falling f = {0};
  OK(tw_graph_create(NULL, &f.graph));
  tw_scope* s = tw_scope_create(f.graph, "net");
  f.w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_DOUBLE, 8));
  const tw_gradient one = {tw_scope_scalar(s, TW_DOUBLE, 1), 0};
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_DOUBLE, 1)};
  f.train = tw_train_sgd(s, &f.w, &one, 1, &sgd);
  tw_moving_averages options;
  tw_moving_averages_init(&options);
  options.decay = 0.75;
  if (counted) options.updates = tw_variable_read(s, tw_global_step(s));
  f.train = tw_moving_averages_add(s, &f.w, 1, &options, f.train, &f.average);
  if (counted) f.train = tw_global_step_advance(s, f.train);
  f.swap = tw_moving_averages_swap(s, &f.w, &f.average, 1);
  f.w_value = tw_variable_read(s, f.w);
  f.average_value = tw_variable_read(s, f.average);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(f.graph, &container, 1, &f.session));
  run(f.session, init);
  return f;
}

static double value(const falling* f, tw_output what) {
  tw_tensor* t = fetch(f->session, 0, NULL, what);
  const double x = t ? *(const double*)tw_tensor_data(t) : NAN;
  tw_tensor_release(t);
  return x;
}

static void AveragesFollowTheirVariables(void) {
  for (uint32_t counted = 0; counted < 2; ++counted) {
    falling f = new_falling(counted, counted ? "container=average_counted" : "container=average");
    double w = 8, average = 8;
    CHECK(value(&f, f.average_value) == 8);
    for (int step = 0; step < 6; ++step) {
      const double decay = counted ? fmin(0.75, (1.0 + step) / (10.0 + step)) : 0.75;
      run(f.session, f.train);
      w -= 1;
      average -= (1 - decay) * (average - w);
      CHECK(value(&f, f.w_value) == w && near(value(&f, f.average_value), average, 1e-14));
    }
    run(f.session, f.swap);
    CHECK(near(value(&f, f.w_value), average, 1e-14) && value(&f, f.average_value) == w);
    run(f.session, f.swap);
    CHECK(value(&f, f.w_value) == w && near(value(&f, f.average_value), average, 1e-14));
    const tw_operation* found = NULL;
    OK(tw_graph_find(f.graph, "net/w/ExponentialMovingAverage", &found));
    tw_session_destroy(f.session);
    tw_graph_destroy(f.graph);
  }
}

static void WrongUsesOfAveragesAreRefused(void) {
  const char* parts[] = {"decay is 1",     "is no variable",         "'bare' has no initial assignment",
                         "a list is NULL", "there are no variables", "tw_moving_averages_init",
                         "'w' holds int32"};
  for (int kind = 0; kind < 7; ++kind) {
    tw_graph* graph = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, kind == 6 ? TW_INT32 : TW_FLOAT, 1)), average = 0;
    tw_moving_averages options;
    tw_moving_averages_init(&options);
    if (kind == 0) options.decay = 1;
    if (kind == 1) w = tw_scope_scalar(s, TW_FLOAT, 1);
    if (kind == 2) {
      tw_op* bare = tw_scope_begin(s, "VarHandleOp", "bare");
      tw_op_set_type(bare, "dtype", TW_FLOAT);
      tw_op_set_shape(bare, "shape", NULL, 0);
      w = tw_scope_end(s, bare);
    }
    if (kind == 5) options.size = 4;
    CHECK(!tw_moving_averages_add(s, &w, kind != 4, &options, NULL, kind == 3 ? NULL : &average) && average == 0);
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, parts[kind]);
    tw_graph_destroy(graph);
  }
}

MAIN(TEST(AveragesFollowTheirVariables), TEST(WrongUsesOfAveragesAreRefused))
