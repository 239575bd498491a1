/* A third-party file system: trains a model, saves it to mem:// and restores it, and checks the
 * error messages. */
#include "check.h"

enum { kRows = 64, kColumns = 16 };

typedef struct model {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_saver* saver;
  tw_output loss, weights;
  const tw_operation *init, *train;
} model;

static tw_runtime* new_runtime(const char* option) {
  tw_runtime* r = NULL;
  OK(tw_runtime_create(&option, option != NULL, &r));
  OK(tw_plugin_load(r, MEM));
  return r;
}

/* Least squares with momentum: two variables and their two slots. */
static model new_model(tw_runtime* runtime) {
  model m = {.runtime = runtime};
  OK(tw_graph_create(runtime, &m.graph));
  tw_scope* s = tw_scope_create(m.graph, NULL);
  const int64_t dims[] = {kRows, kColumns}, wide[] = {kColumns, 1};
  float x[kRows * kColumns], w[kColumns] = {0};
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)((i * 37) % 101) / 101 - 0.5f;
  tw_tensor *points = floats(dims, 2, x), *start = floats(wide, 2, w);
  const tw_output variables[] = {tw_variable_create(s, "w", tw_scope_constant(s, start)),
                                 tw_variable_create(s, "b", tw_scope_scalar(s, TW_FLOAT, 0))};
  m.weights = tw_variable_read(s, variables[0]);
  const tw_output y =
      tw_scope_op2(s, "Add", tw_scope_op2(s, "MatMul", tw_scope_constant(s, points), m.weights), tw_variable_read(s, variables[1]));
  const int32_t axes[] = {0, 1};
  m.loss = tw_scope_op2(s, "Mean", tw_scope_op1(s, "Square", tw_scope_op2(s, "Sub", y, tw_scope_scalar(s, TW_FLOAT, 1.5))),
                        tw_scope_ints(s, axes, 2));
  tw_gradient gradients[2];
  tw_scope_gradients(s, m.loss, variables, 2, gradients);
  tw_momentum options;
  tw_momentum_init(&options);
  options.learning_rate = tw_scope_scalar(s, TW_FLOAT, 0.1);
  m.train = tw_train_momentum(s, variables, gradients, 2, &options);
  m.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(m.graph, NULL, 0, &m.session));
  OK(tw_saver_create(m.graph, NULL, 0, &m.saver));
  tw_tensor_release(points);
  tw_tensor_release(start);
  return m;
}
static void free_model(model* m) {
  tw_saver_destroy(m->saver);
  tw_session_destroy(m->session);
  tw_graph_destroy(m->graph);
}
static float loss_of(model* m) { return as_float(fetch(m->session, 0, NULL, m->loss)); }
static void train(model* m, int steps) {
  for (int i = 0; i < steps; ++i) run(m->session, m->train);
}

static void AModelIsSavedAndRestoredThere(void) {
  tw_runtime* r = new_runtime(NULL);
  model m = new_model(r);
  run(m.session, m.init);
  train(&m, 20);
  OK(tw_saver_save(m.saver, m.session, "mem://models/first"));
  const float saved = loss_of(&m);
  train(&m, 20);
  const float later = loss_of(&m);
  CHECK(later < saved);
  OK(tw_saver_restore(m.saver, m.session, "mem://models/first"));
  CHECK(loss_of(&m) == saved);
  train(&m, 20);
  CHECK(loss_of(&m) == later);                                 /* the slots were restored, too */
  OK(tw_saver_save(m.saver, m.session, "mem://models/first")); /* over the old checkpoint */
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open_in(r, "mem://models/first", &c));
  CHECK(tw_checkpoint_count(c) == 4);
  OK(tw_checkpoint_verify(c, NULL));
  tw_checkpoint_close(c);
  free_model(&m);
  tw_runtime_release(r);
}

static void ACheckpointerKeepsTheLastThere(void) {
  tw_runtime* r = new_runtime(NULL);
  model m = new_model(r);
  run(m.session, m.init);
  tw_checkpointer_options options;
  tw_checkpointer_options_init(&options);
  options.keep_last = 2;
  tw_checkpointer* k = NULL;
  OK(tw_checkpointer_create(m.saver, m.session, "mem://runs/a", &options, &k));
  for (int64_t step = 1; step <= 4; ++step) {
    train(&m, 1);
    OK(tw_checkpointer_save(k, step, NULL));
  }
  const float last = loss_of(&m);
  train(&m, 3);
  int64_t step = 0;
  OK(tw_checkpointer_restore(k, TW_CHECKPOINT_LATEST, &step, NULL));
  CHECK(step == 4 && loss_of(&m) == last);
  tw_checkpointer_destroy(k);
  tw_buffer* prefix = NULL;
  OK(tw_checkpoint_latest_in(r, "mem://runs/a", &prefix, NULL));
  CHECK(strcmp((const char*)tw_buffer_data(prefix), "mem://runs/a/model.ckpt-4") == 0);
  tw_buffer_release(prefix);
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open_in(r, "mem://runs/a/model.ckpt-3", &c));
  tw_checkpoint_close(c);
  FAILS(tw_checkpoint_open_in(r, "mem://runs/a/model.ckpt-2", &c), TW_NOT_FOUND, "'mem://runs/a/model.ckpt-2.index'");
  free_model(&m);
  tw_runtime_release(r);
}

static void TwoRuntimesShareNothing(void) {
  tw_runtime *a = new_runtime(NULL), *b = new_runtime(NULL);
  tw_tensor* one = scalar(1);
  const char* name = "one";
  OK(tw_checkpoint_write_in(a, "mem://x", &name, &one, 1, 1));
  tw_checkpoint* c = NULL;
  FAILS(tw_checkpoint_open_in(b, "mem://x", &c), TW_NOT_FOUND, "'mem://x.index'");
  OK(tw_checkpoint_open_in(a, "mem://x", &c));
  tw_runtime_release(a); /* an open checkpoint keeps its files */
  tw_tensor* back = NULL;
  OK(tw_checkpoint_read(c, "one", &back));
  CHECK(as_float(back) == 1);
  tw_checkpoint_close(c);
  tw_tensor_release(one);
  tw_runtime_release(b);
}

static void AnUnknownSchemeSaysWhichThereAre(void) {
  tw_runtime* r = new_runtime(NULL);
  tw_checkpoint* c = NULL;
  FAILS(tw_checkpoint_open_in(r, "other://bucket/x", &c), TW_FAILED_PRECONDITION,
        "no plugin has a file system 'other://'; there are: mem://");
  model m = new_model(r);
  run(m.session, m.init);
  FAILS(tw_saver_save(m.saver, m.session, "other://bucket/x"), TW_FAILED_PRECONDITION, "there are: mem://");
  free_model(&m);
  tw_runtime_release(r);
}

/* Whenever the file system is full, the earlier checkpoint is whole. */
static void AFullFileSystemLeavesTheOldCheckpoint(void) {
  int failed = 0, succeeded = 0;
  for (int capacity = 1000; capacity < 6000; capacity += 100) {
    char option[64];
    snprintf(option, sizeof option, "plugin.org.example.mem.capacity=%d", capacity);
    tw_runtime* r = new_runtime(option);
    float values[200] = {0};
    const int64_t small[] = {10}, large[] = {200};
    const char* name = "v";
    tw_tensor *old = floats(small, 1, values), *big = floats(large, 1, values);
    OK(tw_checkpoint_write_in(r, "mem://f/x", &name, &old, 1, 1));
    tw_status* s = NULL;
    for (int i = 0; i < 3 && !s; ++i) s = tw_checkpoint_write_in(r, i == 1 ? "mem://f/y" : "mem://f/x", &name, &big, 1, 2);
    if (s) {
      ++failed;
      CHECK(tw_status_code(s) == TW_RESOURCE_EXHAUSTED && strstr(tw_status_message(s), "mem://f/"));
      CHECK(strstr(tw_status_message(s), "the memory for files is full (file system 'mem' of plugin 'org.example.mem')"));
    }
    succeeded += !s;
    tw_status_release(s);
    tw_checkpoint* c = NULL;
    OK(tw_checkpoint_open_in(r, "mem://f/x", &c));
    OK(tw_checkpoint_verify(c, NULL));
    tw_checkpoint_close(c);
    tw_tensor_release(old);
    tw_tensor_release(big);
    tw_runtime_release(r);
  }
  CHECK(failed > 5 && succeeded > 5);
}

MAIN(TEST(AModelIsSavedAndRestoredThere), TEST(ACheckpointerKeepsTheLastThere), TEST(TwoRuntimesShareNothing),
     TEST(AnUnknownSchemeSaysWhichThereAre), TEST(AFullFileSystemLeavesTheOldCheckpoint))
