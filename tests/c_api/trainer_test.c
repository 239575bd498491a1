/* The training loop against loops that the tests write out, and against itself after a kill. */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <unistd.h>

#include <sys/wait.h>

#include "check.h"
#include "folder.h"

enum { kRows = 20, kWidth = 3, kMost = 256 };

typedef struct setup {
  double rate;           /* of the optimizer */
  int sub_batches;       /* 0: no accumulation */
  int averages, metric;  /* 1: there are some */
} setup;

/* y = x w + b, trained by the mean square of the error with Adam; SGD with sub-batches. */
typedef struct net {
  tw_graph* graph;
  tw_session* session;
  tw_trainer* trainer;
  tw_output x, y, w, w_value, average_value, loss, prediction, training;
  const tw_operation *step, *swap;
} net;

static net new_net(setup how) {
  net n = {0};
  OK(tw_graph_create(NULL, &n.graph));
  tw_scope* s = tw_scope_create(n.graph, NULL);
  const int64_t x_dims[] = {-1, kWidth}, y_dims[] = {-1, 1};
  n.x = tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2);
  n.y = tw_scope_placeholder(s, "y", TW_FLOAT, y_dims, 2);
  n.training = tw_scope_placeholder(s, "training", TW_BOOL, NULL, 0);
  tw_dense dense;
  tw_layer_options options;
  tw_layer_options_init(&options);
  options.seed = 3;
  tw_dense_create(s, "net", &options, kWidth, 1, &dense);
  n.prediction = tw_dense_apply(s, &dense, tw_dropout(s, n.x, 0, n.training, 0));
  const int32_t axes[] = {0, 1};
  n.loss = tw_scope_op2(s, "Mean", tw_scope_op2(s, "SquaredDifference", n.prediction, n.y), tw_scope_ints(s, axes, 2));
  n.w = dense.kernel;
  n.w_value = tw_variable_read(s, dense.kernel);
  const tw_output weights[] = {dense.kernel, dense.bias};
  tw_gradient gradients[2];
  tw_scope_gradients(s, n.loss, weights, 2, gradients);
  const tw_operation* accumulate = NULL;
  if (how.sub_batches) accumulate = tw_accumulate_gradients(s, NULL, gradients, 2, (uint32_t)how.sub_batches);
  tw_adam adam;
  tw_adam_init(&adam);
  tw_sgd sgd;
  tw_sgd_init(&sgd);
  adam.learning_rate = sgd.learning_rate = tw_scope_scalar(s, TW_FLOAT, how.rate);
  n.step = how.sub_batches ? tw_train_sgd(s, weights, gradients, 2, &sgd) : tw_train_adam(s, weights, gradients, 2, &adam);
  if (how.averages) {
    tw_output averages[2];
    tw_moving_averages decay;
    tw_moving_averages_init(&decay);
    decay.decay = 0.9;
    n.step = tw_moving_averages_add(s, weights, 2, &decay, n.step, averages);
    n.swap = tw_moving_averages_swap(s, weights, averages, 2);
    n.average_value = tw_variable_read(s, averages[0]);
  }
  tw_metric error;
  if (how.metric) tw_metric_mean(s, "error", tw_scope_op2(s, "SquaredDifference", n.prediction, n.y), 0, &error);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(n.graph, (const char*[]){"threads=1"}, 1, &n.session));
  run(n.session, init);
  const tw_output feeds[] = {n.x, n.y};
  const char* name = "error";
  tw_trainer_model model;
  tw_trainer_model_init(&model);
  model.graph = n.graph, model.session = n.session, model.feeds = feeds, model.n_feeds = 2, model.n_inputs = 1;
  model.training = n.training, model.loss = n.loss, model.step = n.step;
  model.predictions = &n.prediction, model.n_predictions = 1, model.swap = n.swap;
  model.accumulate = accumulate, model.sub_batches = (uint32_t)how.sub_batches;
  if (how.metric) model.metrics = &error, model.metric_names = &name, model.n_metrics = 1;
  OK(tw_trainer_create(&model, &n.trainer));
  return n;
}

static void end_net(net* n) {
  tw_trainer_destroy(n->trainer);
  tw_session_destroy(n->session);
  tw_graph_destroy(n->graph);
}

static tw_iterator* data_of(int64_t batch, uint32_t shuffle, double noise) {
  float x[kRows * kWidth], y[kRows];
  for (int i = 0; i < kRows * kWidth; ++i) x[i] = (float)sin(1.3 * i + 0.2);
  for (int i = 0; i < kRows; ++i) y[i] = (float)(x[3 * i] - 2 * x[3 * i + 1] + 0.5 + noise * cos(7.7 * i));
  const int64_t x_dims[] = {kRows, kWidth}, y_dims[] = {kRows, 1};
  tw_tensor* both[] = {floats(x_dims, 2, x), floats(y_dims, 2, y)};
  tw_batch_options options;
  tw_batch_options_init(&options);
  options.batch = batch, options.shuffle = shuffle, options.seed = 11;
  tw_iterator* made = NULL;
  OK(tw_iterator_create_batches(both, 2, &options, &made));
  tw_tensor_release(both[0]);
  tw_tensor_release(both[1]);
  return made;
}

static void weights_of(const net* n, tw_output what, float* out) {
  tw_tensor* t = fetch(n->session, 0, NULL, what);
  for (int i = 0; i < kWidth; ++i) out[i] = t ? ((const float*)tw_tensor_data(t))[i] : NAN;
  tw_tensor_release(t);
}

/* ---- A callback that notes everything ---- */

typedef struct notes {
  double losses[kMost], values[kMost], validation[kMost];
  int steps, epochs, before, improved[kMost];
  int64_t last_step, last_epoch;
  int stop_at_step, stop_at_epoch, fail_at_step, kill_at_step; /* 0: never */
  FILE* file;                                                  /* each loss as bits; NULL: none */
} notes;

static tw_status* note_before(void* user, const tw_fit_progress* at) {
  notes* n = user;
  ++n->before;
  CHECK(!at->values && at->n_values == 0);
  return NULL;
}

static tw_status* note_step(void* user, const tw_fit_progress* at, uint32_t* out_stop) {
  notes* n = user;
  n->losses[n->steps++ % kMost] = at->values[0];
  n->last_step = at->step, n->last_epoch = at->epoch;
  if (n->file) fprintf(n->file, "%d %a\n", (int)at->step, at->values[0]), fflush(n->file);
  if (n->kill_at_step && at->step == n->kill_at_step) raise(SIGKILL);
  *out_stop = n->stop_at_step && at->step == n->stop_at_step;
  return n->fail_at_step && at->step == n->fail_at_step ? tw_status_create(TW_ABORTED, "the callback has had enough") : NULL;
}

static tw_status* note_epoch(void* user, const tw_fit_progress* at, uint32_t* out_stop) {
  notes* n = user;
  n->values[n->epochs] = at->values[at->n_values - 1];
  n->validation[n->epochs] = at->validation ? at->validation[0] : NAN;
  n->improved[n->epochs] = (int)at->improved;
  *out_stop = n->stop_at_epoch && ++n->epochs == n->stop_at_epoch;
  n->epochs += !n->stop_at_epoch;
  return NULL;
}

static tw_fit_callback noting(notes* n) {
  return (tw_fit_callback){.size = sizeof(tw_fit_callback), .user = n, .before_step = note_before, .after_step = note_step, .epoch_end = note_epoch};
}

static tw_fit_options fit_options(int64_t epochs, const tw_fit_callback* callback) {
  tw_fit_options o;
  tw_fit_options_init(&o);
  o.epochs = epochs, o.callbacks = callback, o.n_callbacks = callback != NULL;
  return o;
}

/* ---- Killed and resumed; first, so that the children begin without threads ---- */

static char folder[512];

/* Trains 5 epochs of 4 batches in a child process; the losses go to `folder`/name. Returns the signal that ended it. */
static int train_in_child(const char* name, const char* run, int kill_at_step, int64_t every_steps, int metric) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char path[600], runs[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(runs, sizeof runs, "%s/%s", folder, run ? run : "");
    static notes noted;
    noted.file = fopen(path, "a"), noted.kill_at_step = kill_at_step;
    net n = new_net((setup){.rate = 0.1, .metric = metric});
    tw_iterator* data = data_of(6, 1, 0.1);
    const tw_fit_callback callback = noting(&noted);
    tw_fit_options o = fit_options(5, &callback);
    o.folder = run ? runs : NULL, o.every_steps = every_steps;
    OK(tw_trainer_fit(n.trainer, data, &o, NULL));
    for (int i = 0; i < noted.epochs; ++i) fprintf(noted.file, "epoch %a\n", noted.values[i]);
    fclose(noted.file);
    tw_iterator_destroy(data);
    end_net(&n);
    fflush(stdout);
    _exit(failures > 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) CHECK(WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The losses of a file by step, as text; a later line of a step replaces the earlier one. Returns the last epoch's value, too. */
static void read_losses(const char* name, char out[24][40], char* last) {
  char path[600], line[80];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  memset(out, 0, 24 * 40);
  FILE* file = fopen(path, "r");
  CHECK(file);
  while (file && fgets(line, sizeof line, file)) {
    char value[40];
    int step = 0;
    if (sscanf(line, "%d %39s", &step, value) == 2 && step < 24) strcpy(out[step], value);
    if (sscanf(line, "epoch %39s", value) == 1) strcpy(last, value);
  }
  if (file) fclose(file);
}

static void AKilledTrainingGoesOnWithTheSameBits(void) {
  static char whole[24][40], parts[24][40];
  char whole_last[40] = "", parts_last[40] = "";
  CHECK(make_folder(folder, sizeof folder, "trainer") == 0);
  CHECK(train_in_child("whole", NULL, 0, 0, 1) == 0);
  read_losses("whole", whole, whole_last);
  CHECK(whole[20][0]);
  /* every 3 steps: in the middle of epochs of 4; by epochs; killed twice */
  for (int kind = 0; kind < 2; ++kind) {
    char name[16], run[16];
    snprintf(name, sizeof name, "parts%d", kind);
    snprintf(run, sizeof run, "run%d", kind);
    CHECK(train_in_child(name, run, 7, kind ? 0 : 3, 1) == SIGKILL);
    CHECK(train_in_child(name, run, 15, kind ? 0 : 3, 1) == SIGKILL);
    CHECK(train_in_child(name, run, 0, kind ? 0 : 3, 1) == 0);
    read_losses(name, parts, parts_last);
    for (int step = 1; step <= 20; ++step) CHECK(!strcmp(whole[step], parts[step]));
    CHECK(whole_last[0] && !strcmp(whole_last, parts_last));
    CHECK(train_in_child("again", run, 0, 0, 1) == 0); /* complete: no step more */
    read_losses("again", parts, parts_last);
    for (int step = 1; step <= 20; ++step) CHECK(!parts[step][0]);
  }
  remove_folder(folder);
}

/* ---- The loop ---- */

static void FitDoesWhatALoopDoes(void) {
  net n = new_net((setup){.rate = 0.05, .metric = 1}), m = new_net((setup){.rate = 0.05});
  tw_iterator *data = data_of(6, 1, 0), *same = data_of(6, 1, 0);
  static notes noted;
  noted = (notes){0};
  const tw_fit_callback callback = noting(&noted);
  tw_fit_options o = fit_options(3, &callback);
  tw_fit_report report = {.size = sizeof report};
  OK(tw_trainer_fit(n.trainer, data, &o, &report));
  CHECK(report.epochs == 3 && report.steps == 12 && report.resumed_at == -1 && report.best_epoch == -1 && isnan(report.best));
  CHECK(report.why == TW_FIT_COMPLETE && noted.steps == 12 && noted.epochs == 3 && noted.before == 15);

  tw_tensor* yes = NULL;
  OK(tw_tensor_create(TW_BOOL, NULL, 0, &yes));
  *(uint8_t*)tw_tensor_mutable_data(yes) = 1;
  const tw_output feeds[] = {m.x, m.y, m.training};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 3, .fetches = &m.loss, .n_fetches = 1, .targets = &m.step, .n_targets = 1};
  int step = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    OK(tw_iterator_reset(same, epoch));
    for (;; ++step) {
      tw_tensor *fed[3] = {NULL, NULL, yes}, *got = NULL;
      uint32_t end = 0;
      OK(tw_iterator_next(same, fed, &end));
      if (end) break;
      OK(tw_session_run(m.session, &what, fed, NULL, &got));
      const double loss = as_float(got);
      CHECK(loss == noted.losses[step]);
      sum += loss * (double)tw_tensor_dim(fed[0], 0);
      tw_tensor_release(fed[0]);
      tw_tensor_release(fed[1]);
    }
    CHECK(near(noted.values[epoch], sum / kRows, 1e-6)); /* the metric is the same mean, computed in the graph */
  }
  float a[kWidth], b[kWidth];
  weights_of(&n, n.w_value, a);
  weights_of(&m, m.w_value, b);
  CHECK(!memcmp(a, b, sizeof a));
  tw_tensor_release(yes);
  tw_iterator_destroy(data);
  tw_iterator_destroy(same);
  end_net(&n);
  end_net(&m);
}

static void LaterCallsGoOnWithFurtherEpochs(void) {
  net n = new_net((setup){.rate = 0.05}), m = new_net((setup){.rate = 0.05});
  tw_iterator* data = data_of(6, 1, 0);
  tw_fit_options o = fit_options(2, NULL);
  tw_fit_report report = {.size = sizeof report};
  OK(tw_trainer_fit(n.trainer, data, &o, NULL));
  OK(tw_trainer_fit(n.trainer, data, &o, &report));
  CHECK(report.epochs == 4 && report.steps == 16);
  o.epochs = 4;
  OK(tw_trainer_fit(m.trainer, data, &o, NULL));
  float a[kWidth], b[kWidth];
  weights_of(&n, n.w_value, a);
  weights_of(&m, m.w_value, b);
  CHECK(!memcmp(a, b, sizeof a));
  tw_iterator_destroy(data);
  end_net(&n);
  end_net(&m);
}

static void SubBatchesGiveTheStepOfTheWholeBatch(void) {
  float got[2][kWidth];
  for (int sub = 1; sub <= 5; sub += 4) {
    net n = new_net((setup){.rate = 0.05, .sub_batches = sub});
    tw_iterator* data = data_of(20 / sub, 0, 0);
    tw_fit_options o = fit_options(6, NULL);
    tw_fit_report report = {.size = sizeof report};
    OK(tw_trainer_fit(n.trainer, data, &o, &report));
    CHECK(report.steps == 6 && report.epochs == 6);
    weights_of(&n, n.w_value, got[sub > 1]);
    tw_iterator_destroy(data);
    end_net(&n);
  }
  for (int i = 0; i < kWidth; ++i) CHECK(near(got[0][i], got[1][i], 1e-5));
}

static void LeftOverSubBatchesWaitForTheNextEpoch(void) {
  net n = new_net((setup){.rate = 0.05, .sub_batches = 3});
  tw_iterator* data = data_of(5, 0, 0); /* 4 batches an epoch */
  tw_fit_options o = fit_options(1, NULL);
  tw_fit_report report = {.size = sizeof report};
  OK(tw_trainer_fit(n.trainer, data, &o, &report));
  CHECK(report.steps == 1);
  o.epochs = 2;
  OK(tw_trainer_fit(n.trainer, data, &o, &report));
  CHECK(report.steps == 4);
  tw_iterator_destroy(data);
  end_net(&n);
}

static void PatienceEndsATrainingThatGetsWorse(void) {
  for (int in_folder = 0; in_folder < 2; ++in_folder) {
    net n = new_net((setup){.rate = 0.2});
    tw_iterator *data = data_of(20, 0, 0), *validation = data_of(7, 0, 3); /* other labels: at some time it gets worse */
    static notes noted;
    noted = (notes){0};
    const tw_fit_callback callback = noting(&noted);
    tw_fit_options o = fit_options(200, &callback);
    o.validation = validation, o.patience = 3, o.flags = TW_FIT_KEEP_BEST;
    if (in_folder) {
      CHECK(make_folder(folder, sizeof folder, "trainer") == 0);
      o.folder = folder;
    }
    tw_fit_report report = {.size = sizeof report};
    OK(tw_trainer_fit(n.trainer, data, &o, &report));
    CHECK(report.why == TW_FIT_PATIENCE && report.epochs == report.best_epoch + 4 && report.epochs < 200 && report.best_epoch > 0);
    for (int i = 0; i < noted.epochs; ++i) {
      CHECK(noted.validation[i] >= report.best && noted.improved[i] == (noted.validation[i] == report.best || i < report.best_epoch));
    }
    double value = 0;
    OK(tw_trainer_evaluate(n.trainer, validation, NULL, &value));
    CHECK(value == report.best); /* the weights are those of the best epoch */
    if (in_folder) {
      net m = new_net((setup){.rate = 0.2});
      tw_fit_report again = {.size = sizeof again};
      OK(tw_trainer_fit(m.trainer, data, &o, &again));
      CHECK(again.why == TW_FIT_PATIENCE && again.steps == report.steps && again.best == report.best && again.resumed_at == report.steps);
      OK(tw_trainer_evaluate(m.trainer, validation, NULL, &value));
      CHECK(value == report.best);
      end_net(&m);
      remove_folder(folder);
    }
    tw_iterator_destroy(data);
    tw_iterator_destroy(validation);
    end_net(&n);
  }
}

static void EvaluationsUseTheAverages(void) {
  net n = new_net((setup){.rate = 0.2, .averages = 1, .metric = 1});
  tw_iterator *data = data_of(10, 0, 0), *one = data_of(20, 0, 0);
  tw_fit_options o = fit_options(3, NULL);
  OK(tw_trainer_fit(n.trainer, data, &o, NULL));
  float before[kWidth], average[kWidth], after[kWidth];
  weights_of(&n, n.w_value, before);
  weights_of(&n, n.average_value, average);
  double values[2], swapped[2];
  CHECK(tw_trainer_value_count(n.trainer) == 2 && !strcmp(tw_trainer_value_name(n.trainer, 1), "error") && !tw_trainer_value_name(n.trainer, 2));
  OK(tw_trainer_evaluate(n.trainer, one, NULL, values));
  CHECK(near(values[0], values[1], 1e-6));
  run(n.session, n.swap);
  OK(tw_trainer_evaluate(n.trainer, one, NULL, swapped)); /* twice swapped: the weights themselves */
  run(n.session, n.swap);
  CHECK(swapped[0] != values[0]);
  weights_of(&n, n.w_value, after);
  CHECK(!memcmp(before, after, sizeof before) && memcmp(before, average, sizeof before));
  tw_iterator_destroy(data);
  tw_iterator_destroy(one);
  end_net(&n);
}

static void PredictionsHaveARowForEachRow(void) {
  net n = new_net((setup){.rate = 0.2});
  tw_iterator *data = data_of(6, 0, 0), *one = data_of(20, 0, 0);
  tw_tensor *parts = NULL, *whole = NULL;
  OK(tw_trainer_predict(n.trainer, data, NULL, &parts));
  OK(tw_trainer_predict(n.trainer, one, NULL, &whole));
  CHECK(parts && whole && tw_tensor_rank(parts) == 2 && tw_tensor_dim(parts, 0) == kRows && tw_tensor_dim(parts, 1) == 1);
  for (int i = 0; parts && whole && i < kRows; ++i)
    CHECK(near(((const float*)tw_tensor_data(parts))[i], ((const float*)tw_tensor_data(whole))[i], 1e-6));
  tw_tensor_release(parts);
  tw_tensor_release(whole);
  tw_iterator_destroy(data);
  tw_iterator_destroy(one);
  end_net(&n);
}

static void CallbacksStopAndFail(void) {
  for (int kind = 0; kind < 3; ++kind) {
    net n = new_net((setup){.rate = 0.05});
    tw_iterator* data = data_of(5, 0, 0);
    static notes noted;
    noted = (notes){.stop_at_step = kind == 0 ? 6 : 0, .stop_at_epoch = kind == 1 ? 2 : 0, .fail_at_step = kind == 2 ? 3 : 0};
    const tw_fit_callback callback = noting(&noted);
    tw_fit_options o = fit_options(9, &callback);
    tw_fit_report report = {.size = sizeof report};
    if (kind == 2) {
      FAILS(tw_trainer_fit(n.trainer, data, &o, &report), TW_ABORTED, "the callback has had enough");
      CHECK(noted.steps == 3 && report.steps == 3);
    } else {
      OK(tw_trainer_fit(n.trainer, data, &o, &report));
      CHECK(report.why == TW_FIT_STOPPED && report.steps == (kind ? 8 : 6) && report.epochs == 2);
    }
    tw_iterator_destroy(data);
    end_net(&n);
  }
}

static void LossesThatAreNotFiniteEndTheTraining(void) {
  net n = new_net((setup){.rate = 1e30, .sub_batches = 1});
  tw_iterator* data = data_of(5, 0, 0);
  tw_fit_options o = fit_options(9, NULL);
  FAILS(tw_trainer_fit(n.trainer, data, &o, NULL), TW_FAILED_PRECONDITION, "(epoch 0, batch 1); lower the learning rate");
  o.flags = TW_FIT_ANY_LOSS, o.epochs = 1;
  OK(tw_trainer_fit(n.trainer, data, &o, NULL));
  tw_iterator_destroy(data);
  end_net(&n);
}

static void CancelledTrainingsEnd(void) {
  net n = new_net((setup){.rate = 0.05});
  tw_iterator* data = data_of(5, 0, 0);
  tw_fit_options o = fit_options(9, NULL);
  OK(tw_cancel_token_create(&o.cancel));
  tw_cancel_token_cancel(o.cancel);
  FAILS(tw_trainer_fit(n.trainer, data, &o, NULL), TW_CANCELLED, "");
  double value = 0;
  FAILS(tw_trainer_evaluate(n.trainer, data, o.cancel, &value), TW_CANCELLED, "");
  CHECK(isnan(value));
  tw_cancel_token_destroy(o.cancel);
  tw_iterator_destroy(data);
  end_net(&n);
}

/* ---- Errors ---- */

static tw_status* never(void* user, tw_tensor** out, uint32_t* end) {
  (void)user, (void)out;
  *end = 1;
  return NULL;
}

static void WrongOptionsAreRefused(void) {
  net n = new_net((setup){.rate = 0.05});
  tw_iterator* data = data_of(5, 0, 0);
#define WRONG(change, part)                                                           \
  do {                                                                                \
    tw_fit_options o = fit_options(1, NULL);                                          \
    change;                                                                           \
    FAILS(tw_trainer_fit(n.trainer, data, &o, NULL), TW_INVALID_ARGUMENT, part); \
  } while (0)
  WRONG(o.epochs = -1, "epochs is -1");
  WRONG(o.patience = -1, "patience is -1");
  WRONG(o.least_change = NAN, "least_change is nan");
  WRONG(o.every_steps = 5, "need a folder");
  WRONG(o.watch = "accuracy", "watch is 'accuracy'; the values are 'loss'");
  WRONG(o.flags = 64, "flags is 64");
  WRONG(o.n_callbacks = 1, "callbacks is NULL");
  WRONG(o.size = 8, "tw_fit_options_init");
  tw_iterator one = {.size = sizeof one, .n_tensors = 1, .n_batches = 0, .next = never};
  FAILS(tw_trainer_fit(n.trainer, &one, NULL, NULL), TW_INVALID_ARGUMENT, "gives 1 tensors a batch; the model is fed 2");
  tw_tensor* prediction = NULL;
  FAILS(tw_trainer_predict(n.trainer, &one, NULL, &prediction), TW_FAILED_PRECONDITION, "the data has no batch");
  one.n_tensors = 2;
  tw_fit_options o = fit_options(2, NULL);
  o.flags = TW_FIT_ANY_LOSS;
  FAILS(tw_trainer_fit(n.trainer, &one, &o, NULL), TW_UNIMPLEMENTED, "cannot start epoch 1"); /* its data can be read once */
  tw_iterator_destroy(data);
  end_net(&n);
}

static void WrongModelsAreRefused(void) {
  net n = new_net((setup){.rate = 0.05});
  tw_trainer* made = NULL;
  const tw_output feeds[] = {n.x, n.y};
  const tw_metric empty = {.size = sizeof empty};
  const char* names[] = {"loss"};
  tw_trainer_model good;
  tw_trainer_model_init(&good);
  good.graph = n.graph, good.session = n.session, good.feeds = feeds, good.n_feeds = 2, good.loss = n.loss, good.step = n.step;
#define BAD(change, part)                                                  \
  do {                                                                     \
    tw_trainer_model m = good;                                             \
    change;                                                                \
    FAILS(tw_trainer_create(&m, &made), TW_INVALID_ARGUMENT, part);        \
    CHECK(!made);                                                          \
  } while (0)
  BAD(m.graph = NULL, "graph is NULL");
  BAD(m.n_feeds = 0, "there are no feeds");
  BAD(m.n_inputs = 3, "n_inputs is 3, and there are 2 feeds");
  BAD(m.loss = n.x, "the loss is float of shape [?, 3]; it must be a scalar");
  BAD(m.training = n.loss, "training is float of shape []; it must be a bool scalar");
  BAD((m.metrics = &empty, m.metric_names = names, m.n_metrics = 1), "metrics[0] is named 'loss'");
  BAD((names[0] = "other", m.metrics = &empty, m.metric_names = names, m.n_metrics = 1), "'other', is not filled");
  BAD(m.sub_batches = 2, "sub_batches is 2 and accumulate NULL");
  BAD(m.loss = 0, "neither a loss nor a prediction");
  BAD(m.size = 8, "tw_trainer_model_init");
  tw_trainer_model only = good;
  only.step = NULL;
  OK(tw_trainer_create(&only, &made));
  tw_iterator* data = data_of(5, 0, 0);
  FAILS(tw_trainer_fit(made, data, NULL, NULL), TW_INVALID_ARGUMENT, "the model has no step");
  tw_trainer_destroy(made);
  tw_iterator_destroy(data);
  end_net(&n);
}

MAIN(TEST(AKilledTrainingGoesOnWithTheSameBits), TEST(FitDoesWhatALoopDoes), TEST(LaterCallsGoOnWithFurtherEpochs),
     TEST(SubBatchesGiveTheStepOfTheWholeBatch), TEST(LeftOverSubBatchesWaitForTheNextEpoch), TEST(PatienceEndsATrainingThatGetsWorse),
     TEST(EvaluationsUseTheAverages), TEST(PredictionsHaveARowForEachRow), TEST(CallbacksStopAndFail),
     TEST(LossesThatAreNotFiniteEndTheTraining), TEST(CancelledTrainingsEnd), TEST(WrongOptionsAreRefused), TEST(WrongModelsAreRefused))
