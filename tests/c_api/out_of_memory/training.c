/* Optimizers, each for two steps, with schedules, clipping, decay and averages. */
#include "programs.h"

#define OPTIMIZER(name)                                                                                                               \
  static const tw_operation* by_##name(tw_scope* s, const tw_output* w, tw_gradient* g) { return tw_train_##name(s, w, g, 1, NULL); } \
  static tw_status* name(void) { return steps(by_##name, "container=oom_" #name); }
OPTIMIZER(sgd)
OPTIMIZER(momentum)
OPTIMIZER(adam)
OPTIMIZER(adamax)
OPTIMIZER(adagrad)
OPTIMIZER(adadelta)
OPTIMIZER(rmsprop)
OPTIMIZER(ftrl)

/* Adam over rows 2 and 0 of w, whose gradient is made dense, and over accumulated rows. */
static const tw_operation* by_rows(tw_scope* s, const tw_output* w, tw_gradient* g) {
  const int32_t rows[] = {2, 0, 2};
  g->rows = tw_scope_ints(s, rows, 3);
  const tw_operation* both[] = {NULL, tw_train_adagrad(s, w, g, 1, NULL)};
  both[0] = tw_train_adam(s, w, g, 1, NULL);
  return tw_scope_group(s, "both", both, 2);
}
static tw_status* rows(void) { return steps(by_rows, "container=oom_rows"); }

static const tw_operation* by_schedule(tw_scope* s, const tw_output* w, tw_gradient* g) {
  const tw_output step = tw_variable_read(s, tw_global_step(s));
  const double boundary = 1, rates[] = {1, 0.5};
  const tw_output parts[] = {tw_schedule_piecewise(s, step, &boundary, rates, 1), tw_schedule_exponential(s, step, 0.1, 10, 0.5, 1),
                             tw_schedule_polynomial(s, step, 0.1, 10, NULL), tw_schedule_cosine(s, step, 0.1, 10, 0),
                             tw_schedule_cosine_restarts(s, step, 0.1, 10, NULL)};
  tw_sgd sgd;
  tw_sgd_init(&sgd);
  sgd.learning_rate = tw_schedule_warm_up(s, step, tw_scope_op(s, "AddN", parts, 5), 3, 0);
  tw_clip_by_value(s, g, 1, -1, 1);
  tw_clip_by_norm(s, g, 1, 1);
  tw_clip_by_global_norm(s, g, 1, 1);
  tw_decay_gradients(s, w, g, 1, 0.1);
  tw_decay_weights(s, w, g, 1, sgd.learning_rate, 0.1);
  return tw_global_step_advance(s, tw_train_sgd(s, w, g, 1, &sgd));
}
static tw_status* schedules(void) { return steps(by_schedule, "container=oom_schedules"); }

static const tw_operation* with_averages(tw_scope* s, const tw_output* w, tw_gradient* g) {
  tw_output average = 0;
  const tw_operation* update = tw_moving_averages_add(s, w, 1, NULL, by_momentum(s, w, g), &average);
  tw_moving_averages_swap(s, w, &average, 1);
  return update;
}
static tw_status* averages(void) { return steps(with_averages, "container=oom_averages"); }

/* Only builds the operations: an update would wait for other replicas. */
static const tw_operation* by_replicas(tw_scope* s, const tw_output* w, tw_gradient* g) {
  tw_gradient mean = *g;
  tw_sync_options options;
  tw_sync_options_init(&options);
  options.replicas = 2;
  options.required = 1;
  tw_sync_ops ops = {.size = sizeof ops};
  tw_sync* sync = tw_sync_begin(s, &options, w, &mean, 1);
  tw_sync_end(s, sync, tw_train_momentum(s, w, &mean, 1, NULL), &ops);
  const tw_sharded table = {sizeof table, 0, w, 1, TW_SHARDED_DIV};
  tw_sharded_lookup(s, &table, tw_scope_scalar(s, TW_INT32, 0));
  tw_spread* spread = NULL;
  tw_scope_fail(s, tw_spread_create("ps", 2, TW_SPREAD_BY_SIZE, &spread));
  tw_spread_next(spread, 4);
  tw_spread_destroy(spread);
  return tw_train_sgd(s, w, g, 1, NULL);
}
static tw_status* replicas(void) { return steps(by_replicas, "container=oom_replicas"); }

static tw_status* lbfgs(void) {
  net n = {0};
  tw_lbfgs* l = NULL;
  tw_lbfgs_report report = {.size = sizeof report};
  tw_status* status = NULL;
  TRY(make_net(&n, NULL, "container=oom_lbfgs"));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_lbfgs_create(n.graph, n.loss, &n.w, 1, NULL, &l));
  TRY(tw_lbfgs_run(l, n.session, &n.in, &n.x, 1, 3, &report));
done:
  tw_lbfgs_destroy(l);
  end_net(&n);
  return status;
}

const program training_programs[] = {PROGRAM(sgd, 0),      PROGRAM(momentum, 0),  PROGRAM(adam, 0),     PROGRAM(adamax, 0),
                                     PROGRAM(adagrad, 0),  PROGRAM(adadelta, 0),  PROGRAM(rmsprop, 0),  PROGRAM(ftrl, 0),
                                     PROGRAM(rows, 0),     PROGRAM(schedules, 0), PROGRAM(averages, 0), PROGRAM(lbfgs, 0),
                                     PROGRAM(replicas, 0), {NULL, NULL, 0}};
