/* Optimizers: every step is compared with the formula, computed here in double. */
#include "check.h"

enum { kRows = 5, kColumns = 2, kSize = kRows * kColumns };

/* loss = sum over the chosen rows of (w - 3)^2 * (row + 1): dense through a read, or sparse
 * through a gather. */
typedef struct problem {
  tw_graph* graph;
  tw_session* session;
  tw_scope* scope;
  tw_output w, loss;
  tw_gradient gradient;
} problem;

static const int32_t kPicked[] = {4, 1, 4, 2};
static double start_value(int i) { return 0.25 * i - 1; }

static problem new_problem(int sparse) {
  problem p = {0};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = p.scope = tw_scope_create(p.graph, NULL);
  const int64_t dims[] = {kRows, kColumns};
  float start[kSize];
  for (int i = 0; i < kSize; ++i) start[i] = (float)start_value(i);
  tw_tensor* initial = floats(dims, 2, start);
  p.w = tw_variable_create(s, "w", tw_scope_constant(s, initial));
  tw_tensor_release(initial);
  tw_output x = tw_variable_read(s, p.w);
  if (sparse) {
    tw_op* gather = tw_scope_begin(s, "ResourceGather", NULL);
    tw_op_add_input(gather, p.w);
    tw_op_add_input(gather, tw_scope_ints(s, kPicked, 4));
    tw_op_set_type(gather, "dtype", TW_FLOAT);
    x = tw_scope_end(s, gather);
  }
  const int32_t axes[] = {0, 1};
  const tw_output error = tw_scope_op2(s, "Sub", x, tw_scope_scalar(s, TW_FLOAT, 3));
  p.loss = tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", error), tw_scope_ints(s, axes, 2));
  tw_scope_gradients(s, p.loss, &p.w, 1, &p.gradient);
  return p;
}

/* Computes the gradient of the same loss at w. */
static void gradient_at(const double* w, int sparse, double* g) {
  for (int i = 0; i < kSize; ++i) {
    double times = sparse ? 0 : 1;
    for (int k = 0; k < 4 && sparse; ++k) times += kPicked[k] == i / kColumns;
    g[i] = 2 * (w[i] - 3) * times;
  }
}

static void read_variable(problem* p, tw_output variable, double* out) {
  tw_scope* s = tw_scope_create(p->graph, NULL);
  const tw_output value = tw_variable_read(s, variable);
  OK(tw_scope_finish(s));
  tw_tensor* t = fetch(p->session, 0, NULL, value);
  for (int i = 0; i < kSize && t; ++i) out[i] = ((const float*)tw_tensor_data(t))[i];
  tw_tensor_release(t);
}

/* Runs `train` a few times and compares it with `update`, which applies the formula to (w, g,
 * step). */
static void follow(problem* p, int sparse, const tw_operation* train, void (*update)(double* w, const double* g, int step)) {
  const tw_operation* init = tw_variable_initializer(p->scope, "init");
  OK(tw_scope_finish(p->scope));
  CHECK(train != NULL);
  char container[64];
  static int number;
  snprintf(container, sizeof container, "container=train%d", ++number);
  const char* options[] = {container};
  OK(tw_session_create(p->graph, options, 1, &p->session));
  run(p->session, init);
  double w[kSize], g[kSize], got[kSize];
  for (int i = 0; i < kSize; ++i) w[i] = start_value(i);
  for (int step = 1; step <= 5; ++step) {
    gradient_at(w, sparse, g);
    update(w, g, step);
    run(p->session, train);
    read_variable(p, p->w, got);
    for (int i = 0; i < kSize; ++i) {
      if (!near(got[i], w[i], 2e-5)) printf("  step %d, element %d: %.9g instead of %.9g\n", step, i, got[i], w[i]);
      CHECK(near(got[i], w[i], 2e-5));
    }
  }
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

static void sgd_update(double* w, const double* g, int step) {
  (void)step;
  for (int i = 0; i < kSize; ++i) w[i] -= 0.05 * g[i];
}

static void GradientDescentFollowsItsFormula(void) {
  for (int sparse = 0; sparse < 2; ++sparse) {
    problem p = new_problem(sparse);
    const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(p.scope, TW_FLOAT, 0.05)};
    follow(&p, sparse, tw_train_sgd(p.scope, &p.w, &p.gradient, 1, &sgd), sgd_update);
  }
}

static double momentum_slot[kSize];
static int nesterov, lazy;
static void momentum_update(double* w, const double* g, int step) {
  if (step == 1) memset(momentum_slot, 0, sizeof momentum_slot);
  for (int i = 0; i < kSize; ++i) {
    if (lazy && g[i] == 0) continue; /* rows without a gradient do not change */
    momentum_slot[i] = 0.8 * momentum_slot[i] + g[i];
    w[i] -= 0.02 * (nesterov ? g[i] + 0.8 * momentum_slot[i] : momentum_slot[i]);
  }
}

static void MomentumFollowsItsFormula(void) {
  for (int kind = 0; kind < 4; ++kind) {
    lazy = kind & 1;
    nesterov = kind >> 1;
    problem p = new_problem(lazy);
    tw_momentum options;
    tw_momentum_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_DOUBLE, 0.02); /* is cast */
    options.momentum = 0.8;
    options.nesterov = (uint32_t)nesterov;
    follow(&p, lazy, tw_train_momentum(p.scope, &p.w, &p.gradient, 1, &options), momentum_update);
  }
}

static double adam_m[kSize], adam_v[kSize];
static void adam_update(double* w, const double* g, int step) {
  if (step == 1) memset(adam_m, 0, sizeof adam_m), memset(adam_v, 0, sizeof adam_v);
  const double rate = 0.1 * sqrt(1 - pow(0.99, step)) / (1 - pow(0.9, step));
  for (int i = 0; i < kSize; ++i) {
    adam_m[i] = 0.9 * adam_m[i] + 0.1 * g[i];
    adam_v[i] = 0.99 * adam_v[i] + 0.01 * g[i] * g[i];
    w[i] -= rate * adam_m[i] / (sqrt(adam_v[i]) + 1e-7);
  }
}

static void AdamFollowsItsFormula(void) {
  for (int sparse = 0; sparse < 2; ++sparse) {
    problem p = new_problem(sparse);
    tw_adam options;
    tw_adam_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.1);
    options.beta2 = 0.99;
    options.epsilon = 1e-7;
    follow(&p, sparse, tw_train_adam(p.scope, &p.w, &p.gradient, 1, &options), adam_update);
  }
}

/* The slots of the optimizers below, set in their first step. */
static double kept[3][kSize];
static void start_slots(int step, double a, double b, double c) {
  if (step > 1) return;
  for (int i = 0; i < kSize; ++i) kept[0][i] = a, kept[1][i] = b, kept[2][i] = c;
}

static void adagrad_update(double* w, const double* g, int step) {
  start_slots(step, 0.5, 0, 0);
  for (int i = 0; i < kSize; ++i) {
    kept[0][i] += g[i] * g[i];
    w[i] -= 0.1 * g[i] / (sqrt(kept[0][i]) + 1e-3);
  }
}

static void AdagradFollowsItsFormula(void) {
  for (int sparse = 0; sparse < 2; ++sparse) {
    problem p = new_problem(sparse);
    tw_adagrad options;
    tw_adagrad_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.1);
    options.initial_accumulator = 0.5;
    options.epsilon = 1e-3;
    follow(&p, sparse, tw_train_adagrad(p.scope, &p.w, &p.gradient, 1, &options), adagrad_update);
  }
}

static void adadelta_update(double* w, const double* g, int step) {
  start_slots(step, 0, 0, 0);
  for (int i = 0; i < kSize; ++i) {
    if (lazy && g[i] == 0) continue;
    kept[0][i] = 0.9 * kept[0][i] + 0.1 * g[i] * g[i];
    const double move = g[i] * sqrt(kept[1][i] + 1e-3) / sqrt(kept[0][i] + 1e-3);
    kept[1][i] = 0.9 * kept[1][i] + 0.1 * move * move;
    w[i] -= 0.5 * move;
  }
}

static void AdadeltaFollowsItsFormula(void) {
  for (lazy = 0; lazy < 2; ++lazy) {
    problem p = new_problem(lazy);
    tw_adadelta options;
    tw_adadelta_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.5);
    options.rho = 0.9;
    options.epsilon = 1e-3;
    follow(&p, lazy, tw_train_adadelta(p.scope, &p.w, &p.gradient, 1, &options), adadelta_update);
  }
}

static int centered;
static void rmsprop_update(double* w, const double* g, int step) {
  start_slots(step, 1, 0, 0);
  for (int i = 0; i < kSize; ++i) {
    if (lazy && g[i] == 0) continue;
    kept[0][i] = 0.9 * kept[0][i] + 0.1 * g[i] * g[i];
    kept[1][i] = 0.9 * kept[1][i] + 0.1 * g[i];
    const double mean = centered ? kept[1][i] : 0;
    kept[2][i] = 0.5 * kept[2][i] + 0.01 * g[i] / sqrt(kept[0][i] - mean * mean + 0.1);
    w[i] -= kept[2][i];
  }
}

static void RmsPropFollowsItsFormula(void) {
  for (int kind = 0; kind < 4; ++kind) {
    lazy = kind & 1;
    centered = kind >> 1;
    problem p = new_problem(lazy);
    tw_rmsprop options;
    tw_rmsprop_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.01);
    options.momentum = 0.5;
    options.epsilon = 0.1;
    options.centered = (uint32_t)centered;
    follow(&p, lazy, tw_train_rmsprop(p.scope, &p.w, &p.gradient, 1, &options), rmsprop_update);
  }
}

static void adamax_update(double* w, const double* g, int step) {
  start_slots(step, 0, 0, 0);
  for (int i = 0; i < kSize; ++i) {
    if (lazy && g[i] == 0) continue;
    kept[0][i] = 0.9 * kept[0][i] + 0.1 * g[i];
    kept[1][i] = fmax(0.99 * kept[1][i], fabs(g[i]));
    w[i] -= 0.1 / (1 - pow(0.9, step)) * kept[0][i] / (kept[1][i] + 1e-8);
  }
}

static void AdaMaxFollowsItsFormula(void) {
  for (lazy = 0; lazy < 2; ++lazy) {
    problem p = new_problem(lazy);
    tw_adamax options;
    tw_adamax_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.1);
    options.beta2 = 0.99;
    follow(&p, lazy, tw_train_adamax(p.scope, &p.w, &p.gradient, 1, &options), adamax_update);
  }
}

static void ftrl_update(double* w, const double* g, int step) {
  start_slots(step, 0.25, 0, 0);
  for (int i = 0; i < kSize; ++i) {
    if (lazy && g[i] == 0) continue;
    const double was = sqrt(kept[0][i]), now = sqrt(kept[0][i] + g[i] * g[i]);
    kept[1][i] += g[i] + 2 * 0.1 * w[i] - (now - was) / 0.2 * w[i];
    kept[0][i] += g[i] * g[i];
    const double z = kept[1][i];
    w[i] = fabs(z) > 0.5 ? (copysign(0.5, z) - z) / (now / 0.2 + 2 * 0.3) : 0;
  }
}

static void FtrlFollowsItsFormula(void) {
  for (lazy = 0; lazy < 2; ++lazy) {
    problem p = new_problem(lazy);
    tw_ftrl options;
    tw_ftrl_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.2);
    options.initial_accumulator = 0.25;
    options.l1 = 0.5;
    options.l2 = 0.3;
    options.l2_shrinkage = 0.1;
    follow(&p, lazy, tw_train_ftrl(p.scope, &p.w, &p.gradient, 1, &options), ftrl_update);
  }
}

static void decayed_update(double* w, const double* g, int step) {
  (void)step;
  for (int i = 0; i < kSize; ++i) w[i] -= 0.05 * (lazy && g[i] == 0 ? 0 : g[i] + 0.5 * w[i]);
}

static void GradientsDecay(void) {
  for (lazy = 0; lazy < 2; ++lazy) {
    problem p = new_problem(lazy);
    tw_decay_gradients(p.scope, &p.w, &p.gradient, 1, 0.5);
    CHECK((p.gradient.rows != 0) == lazy);
    const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(p.scope, TW_FLOAT, 0.05)};
    follow(&p, lazy, tw_train_sgd(p.scope, &p.w, &p.gradient, 1, &sgd), decayed_update);
  }
}

static void decayed_weights_update(double* w, const double* g, int step) {
  for (int i = 0; i < kSize; ++i) w[i] -= 0.1 * 0.25 * w[i];
  adam_update(w, g, step);
}

static void WeightsDecayApartFromTheGradient(void) {
  for (int sparse = 0; sparse < 2; ++sparse) {
    problem p = new_problem(sparse);
    tw_adam options;
    tw_adam_init(&options);
    options.learning_rate = tw_scope_scalar(p.scope, TW_FLOAT, 0.1);
    options.beta2 = 0.99;
    options.epsilon = 1e-7;
    tw_decay_weights(p.scope, &p.w, &p.gradient, 1, options.learning_rate, 0.25);
    follow(&p, sparse, tw_train_adam(p.scope, &p.w, &p.gradient, 1, &options), decayed_weights_update);
  }
}

static void SlotsStandBesideTheirVariables(void) {
  problem p = new_problem(0);
  tw_train_adam(p.scope, &p.w, &p.gradient, 1, NULL);
  tw_train_momentum(p.scope, &p.w, &p.gradient, 1, NULL);
  tw_rmsprop rmsprop;
  tw_rmsprop_init(&rmsprop);
  rmsprop.centered = 1;
  tw_train_rmsprop(p.scope, &p.w, &p.gradient, 1, &rmsprop);
  tw_train_adagrad(p.scope, &p.w, &p.gradient, 1, NULL);
  tw_train_adadelta(p.scope, &p.w, &p.gradient, 1, NULL);
  tw_train_adamax(p.scope, &p.w, &p.gradient, 1, NULL);
  tw_train_ftrl(p.scope, &p.w, &p.gradient, 1, NULL);
  OK(tw_scope_finish(p.scope));
  const char* names[] = {"w",          "beta1_power", "beta2_power", "w/Adam",     "w/Adam_1",     "w/Momentum",    "w/RMSProp_1",
                         "w/RMSProp",  "w/RMSProp_2", "w/Adagrad",   "w/Adadelta", "w/Adadelta_1", "beta1_power_1", "w/AdaMax",
                         "w/AdaMax_1", "w/Ftrl",      "w/Ftrl_1"};
  const uint32_t count = sizeof names / sizeof names[0];
  tw_variables* variables = NULL;
  OK(tw_variables_create(p.graph, &variables));
  CHECK(tw_variables_count(variables) == count);
  for (uint32_t i = 0; i < count; ++i) {
    int found = 0;
    for (uint32_t k = 0; k < tw_variables_count(variables); ++k) found += strcmp(tw_variables_name(variables, k), names[i]) == 0;
    if (found != 1) printf("  %s is there %d times\n", names[i], found);
    CHECK(found == 1);
  }
  uint32_t dtype = 0;
  tw_shape shape;
  OK(tw_variables_describe(variables, 3, &dtype, &shape));
  CHECK(dtype == TW_FLOAT && shape.rank == 2 && shape.dims[0] == kRows);
  CHECK(tw_variables_handle(variables, 0) == p.w && tw_variables_handle(variables, count) == 0 &&
        tw_variables_name(variables, count) == NULL);
  FAILS(tw_variables_describe(variables, count, &dtype, &shape), TW_OUT_OF_RANGE, "");
  tw_variables_destroy(variables);
  tw_graph_destroy(p.graph);
}

/* The device of the scope in which the optimizer is made does not matter. */
static void SlotsAndTheGlobalStepAreOnTheirDevice(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "net");
  tw_scope_set_device(s, "/job:ps/task:1");
  const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_FLOAT, 1));
  tw_scope_set_device(s, "/job:ps/task:0");
  tw_gradient gradient;
  tw_scope_gradients(s, tw_scope_op1(s, "Square", tw_variable_read(s, w)), &w, 1, &gradient);
  CHECK(tw_train_adam(s, &w, &gradient, 1, NULL) != NULL);
  tw_global_step(s);
  CHECK(!strcmp(tw_scope_device(s), "/job:ps/task:0"));
  OK(tw_scope_finish(s));
  const char* slots[] = {"net/w/Adam", "net/w/Adam_1", "global_step"};
  const char* devices[] = {"/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:0"};
  for (int i = 0; i < 3; ++i) {
    const tw_operation* slot = NULL;
    OK(tw_graph_find(graph, slots[i], &slot));
    CHECK(!strcmp(tw_operation_device(slot), devices[i]));
  }
  tw_graph_destroy(graph);
}

static void OptimizersOfAKindKeepTheirOwnSlots(void) {
  problem p = new_problem(0);
  for (int i = 0; i < 2; ++i) {
    tw_train_momentum(p.scope, &p.w, &p.gradient, 1, NULL);
    tw_train_adam(p.scope, &p.w, &p.gradient, 1, NULL);
  }
  OK(tw_scope_finish(p.scope));
  const char* names[] = {"w/Momentum", "w/Adam", "w/Adam_1", "w/Momentum_1", "w/Adam_2", "w/Adam_3", "beta1_power_1"};
  tw_variables* variables = NULL;
  OK(tw_variables_create(p.graph, &variables));
  CHECK(tw_variables_count(variables) == 11);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    int found = 0;
    for (uint32_t k = 0; k < tw_variables_count(variables); ++k) found += strcmp(tw_variables_name(variables, k), names[i]) == 0;
    CHECK(found == 1);
  }
  tw_variables_destroy(variables);
  tw_graph_destroy(p.graph);
}

/* A value outside the range of the variable's type would make the step NaN, or zero. */
static void OptionsThatTheTypeCannotHoldAreRefused(void) {
  const char* parts[] = {"tw_adam: epsilon is 1e-08, which is 0 in half, the type of variable 'w'",
                         "tw_adam: beta2 is 0.999, which is 1 in bfloat16",
                         "tw_rmsprop: epsilon is 1e-10, which is 0 in half",
                         "tw_train_adam: variable 'w' holds int32",
                         NULL,
                         NULL};
  const uint32_t dtypes[] = {TW_HALF, TW_BFLOAT16, TW_HALF, TW_INT32, TW_HALF, TW_BFLOAT16};
  for (int kind = 0; kind < 6; ++kind) {
    tw_graph* graph = NULL;
    OK(tw_graph_create(NULL, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, dtypes[kind], 1));
    const tw_gradient zero = {tw_scope_scalar(s, dtypes[kind], 0), 0};
    tw_adam options;
    tw_adam_init(&options);
    if (kind >= 4) options.beta2 = 0.99, options.epsilon = 1e-4;
    const tw_operation* train = kind == 2 ? tw_train_rmsprop(s, &w, &zero, 1, NULL) : tw_train_adam(s, &w, &zero, 1, &options);
    CHECK((train != NULL) == (kind >= 4));
    if (kind < 4) {
      FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, parts[kind]);
    } else {
      tw_session* session = NULL;
      tw_op* cast = tw_scope_begin(s, "Cast", NULL);
      tw_op_add_input(cast, tw_variable_read(s, w));
      tw_op_set_type(cast, "DstT", TW_FLOAT);
      const tw_output value = tw_scope_end(s, cast);
      const tw_operation* init = tw_variable_initializer(s, "init");
      OK(tw_scope_finish(s));
      const char* container[] = {kind == 4 ? "container=halves" : "container=bfloat16s"};
      OK(tw_session_create(graph, container, 1, &session));
      run(session, init);
      run(session, train);
      CHECK(as_float(fetch(session, 0, NULL, value)) == 1); /* no gradient, no step */
      tw_session_destroy(session);
    }
    tw_graph_destroy(graph);
  }
}

static void WrongUsesOfOptimizersAreRefused(void) {
  struct {
    const char* part;
    int kind;
  } cases[] = {{"tw_adam_init", 0},   {"beta1", 1},           {"epsilon", 2},
               {"is no variable", 3}, {"depends on none", 4}, {"'w' is listed twice", 5}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    problem p = new_problem(0);
    tw_adam options;
    tw_adam_init(&options);
    tw_output variables[] = {p.w, p.w};
    tw_gradient gradients[] = {p.gradient, p.gradient};
    if (cases[i].kind == 0) options.size = 8;
    if (cases[i].kind == 1) options.beta1 = 1;
    if (cases[i].kind == 2) options.epsilon = 0;
    if (cases[i].kind == 3) variables[0] = p.loss;
    if (cases[i].kind == 4) gradients[0].values = 0;
    CHECK(tw_train_adam(p.scope, variables, gradients, cases[i].kind == 5 ? 2 : 1, &options) == NULL);
    FAILS(tw_scope_finish(p.scope), TW_INVALID_ARGUMENT, cases[i].part);
    tw_graph_destroy(p.graph);
  }
}

/* Sets one option out of range for each of the newer optimizers. */
static void OptionsOutOfRangeAreRefused(void) {
  for (int kind = 0; kind < 12; ++kind) {
    problem p = new_problem(0);
    tw_adagrad adagrad;
    tw_adadelta adadelta;
    tw_rmsprop rmsprop;
    tw_adamax adamax;
    tw_ftrl ftrl;
    tw_adagrad_init(&adagrad), tw_adadelta_init(&adadelta), tw_rmsprop_init(&rmsprop), tw_adamax_init(&adamax), tw_ftrl_init(&ftrl);
    const char* parts[] = {"tw_adagrad: initial_accumulator is 0",
                           "tw_adagrad: epsilon is -1",
                           "tw_adadelta: rho is 1",
                           "tw_adadelta: epsilon is 0",
                           "tw_rmsprop: rho is -1",
                           "tw_rmsprop: momentum is 1",
                           "tw_adamax: beta2 is 1",
                           "tw_ftrl: learning_rate_power is 0.5",
                           "tw_ftrl: l1 is -1",
                           "tw_ftrl_init",
                           "tw_decay_gradients: decay is -1",
                           "tw_decay_weights: decay is nan"};
    if (kind == 0) adagrad.initial_accumulator = 0;
    if (kind == 1) adagrad.epsilon = -1;
    if (kind == 2) adadelta.rho = 1;
    if (kind == 3) adadelta.epsilon = 0;
    if (kind == 4) rmsprop.rho = -1;
    if (kind == 5) rmsprop.momentum = 1;
    if (kind == 6) adamax.beta2 = 1;
    if (kind == 7) ftrl.learning_rate_power = 0.5;
    if (kind == 8) ftrl.l1 = -1;
    if (kind == 9) ftrl.flags = 1;
    tw_scope* s = p.scope;
    if (kind < 2) CHECK(!tw_train_adagrad(s, &p.w, &p.gradient, 1, &adagrad));
    if (kind == 2 || kind == 3) CHECK(!tw_train_adadelta(s, &p.w, &p.gradient, 1, &adadelta));
    if (kind == 4 || kind == 5) CHECK(!tw_train_rmsprop(s, &p.w, &p.gradient, 1, &rmsprop));
    if (kind == 6) CHECK(!tw_train_adamax(s, &p.w, &p.gradient, 1, &adamax));
    if (kind >= 7 && kind <= 9) CHECK(!tw_train_ftrl(s, &p.w, &p.gradient, 1, &ftrl));
    if (kind == 10) tw_decay_gradients(s, &p.w, &p.gradient, 1, -1);
    if (kind == 11) tw_decay_weights(s, &p.w, &p.gradient, 1, tw_scope_scalar(s, TW_FLOAT, 1), NAN);
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, parts[kind]);
    tw_graph_destroy(p.graph);
  }
}

/* Refused whether rows are accumulated, spread over the whole variable, or only looked up. */
static void RowsOutsideTheVariableAreRefused(void) {
  static const int64_t kOutside[] = {-1, INT64_MIN, kRows, INT64_MAX};
  for (int kind = 0; kind < 4; ++kind) {
    for (size_t i = 0; i < sizeof kOutside / sizeof kOutside[0]; ++i) {
      problem p = new_problem(0);
      tw_scope* s = p.scope;
      const int64_t dims[] = {1, kColumns}, one[] = {1};
      const float values[] = {1, 1};
      tw_tensor *t = floats(dims, 2, values), *row = NULL, *w = NULL;
      OK(tw_tensor_create_copy(TW_INT64, one, 1, &kOutside[i], sizeof kOutside[i], &row));
      const tw_gradient g = {tw_scope_constant(s, t), tw_scope_placeholder(s, "rows", TW_INT64, one, 1)};
      const tw_operation* train = kind == 0   ? tw_train_adam(s, &p.w, &g, 1, NULL)
                                  : kind == 1 ? tw_train_sgd(s, &p.w, &g, 1, NULL)
                                  : kind == 2 ? tw_train_momentum(s, &p.w, &g, 1, NULL)
                                              : tw_train_adagrad(s, &p.w, &g, 1, NULL);
      const tw_operation* init = tw_variable_initializer(s, "init");
      const tw_output value = tw_variable_read(s, p.w);
      OK(tw_scope_finish(s));
      const char* options[] = {"container=outside"};
      OK(tw_session_create(p.graph, options, 1, &p.session));
      run(p.session, init);
      const tw_signature what = {.size = sizeof what, .feeds = &g.rows, .n_feeds = 1, .targets = &train, .n_targets = 1};
      FAILS(tw_session_run(p.session, &what, &row, NULL, NULL), TW_INVALID_ARGUMENT, "");
      w = fetch(p.session, 0, NULL, value);
      for (int k = 0; k < kSize && w; ++k) CHECK(((const float*)tw_tensor_data(w))[k] == (float)start_value(k));
      tw_tensor_release(w);
      tw_tensor_release(row);
      tw_tensor_release(t);
      tw_session_destroy(p.session);
      tw_graph_destroy(p.graph);
    }
  }
}

MAIN(TEST(GradientDescentFollowsItsFormula), TEST(MomentumFollowsItsFormula), TEST(AdamFollowsItsFormula), TEST(AdagradFollowsItsFormula),
     TEST(AdadeltaFollowsItsFormula), TEST(RmsPropFollowsItsFormula), TEST(AdaMaxFollowsItsFormula), TEST(FtrlFollowsItsFormula),
     TEST(GradientsDecay), TEST(WeightsDecayApartFromTheGradient), TEST(SlotsStandBesideTheirVariables),
     TEST(SlotsAndTheGlobalStepAreOnTheirDevice), TEST(OptimizersOfAKindKeepTheirOwnSlots), TEST(OptionsThatTheTypeCannotHoldAreRefused),
     TEST(WrongUsesOfOptimizersAreRefused), TEST(OptionsOutOfRangeAreRefused), TEST(RowsOutsideTheVariableAreRefused))
