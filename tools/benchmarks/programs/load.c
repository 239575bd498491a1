/* Loading: a training graph from a file to the end of its first step; the first and the later
 * steps of a new session, on the CPU and on the null device; and plugins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg_worker.h"

enum { kWidth = 8 };

static tw_output weights(tw_scope* s, const char* name, const int64_t* dims, int32_t rank) {
  float data[kWidth * kWidth];
  for (int i = 0; i < kWidth * kWidth; ++i) data[i] = (float)(i % 5 - 2) * 0.1f;
  tw_tensor* initial;
  check(tw_tensor_create_copy(TW_FLOAT, dims, rank, data, sizeof(float) * (rank == 2 ? kWidth * kWidth : kWidth), &initial));
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, initial));
  tw_tensor_release(initial);
  return v;
}

/* Adds one dense layer in its own scope, named as in real programs. */
static tw_output layer(tw_graph* graph, int i, tw_output h, tw_output* variables) {
  const int64_t dims[] = {kWidth, kWidth};
  char prefix[64];
  snprintf(prefix, sizeof prefix, "classifier/tower_%d/block_%d/dense", i / 16, i % 16);
  tw_scope* s = tw_scope_create(graph, prefix);
  variables[0] = weights(s, "kernel", dims, 2);
  variables[1] = weights(s, "bias", dims, 1);
  const tw_output product = tw_scope_op2(s, "MatMul", h, tw_variable_read(s, variables[0]));
  const tw_output out = tw_scope_op1(s, "Tanh", tw_scope_op2(s, "BiasAdd", product, tw_variable_read(s, variables[1])));
  check(tw_scope_finish(s));
  return out;
}

/* Makes a tower of `layers` dense layers of eight units, its loss, and its training by Adam. */
static tw_graph* make_tower(int layers) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t x_dims[] = {kWidth, kWidth};
  tw_output h = tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2);
  const uint32_t n = (uint32_t)layers * 2;
  tw_output* variables = calloc(n, sizeof *variables);
  tw_gradient* gradients = calloc(n, sizeof *gradients);
  if (!variables || !gradients) worker_fail("out of memory");
  for (int i = 0; i < layers; ++i) h = layer(graph, i, h, variables + 2 * i);
  const int32_t axes[] = {0, 1};
  const tw_output loss = tw_scope_op2(s, "Mean", tw_scope_op1(s, "Square", h), tw_scope_ints(s, axes, 2));
  tw_scope* training = tw_scope_create(graph, "classifier/optimizer/update");
  tw_scope_gradients(training, loss, variables, n, gradients);
  const tw_operation* step = tw_train_adam(training, variables, gradients, n, NULL);
  check(tw_scope_finish(training));
  tw_scope_group(s, "train", &step, 1);
  tw_scope_name(s, "loss", loss);
  tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  free(variables);
  free(gradients);
  return graph;
}

/* Writes the smallest tower with at least the given number of nodes. argument: that number and
 * the file. Replies with its nodes and bytes. */
void answer_graph_write(const char* argument) {
  char* path;
  const unsigned long nodes = strtoul(argument, &path, 10);
  if (nodes == 0 || *path++ != ' ') worker_fail("expected a number of nodes and a file, got '%s'", argument);
  tw_graph* graph = make_tower(1);
  for (int layers = 2; tw_graph_count(graph) < nodes; ++layers) {
    tw_graph_destroy(graph);
    graph = make_tower(layers);
  }
  tw_buffer* bytes;
  check(tw_graph_export(graph, &bytes));
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(tw_buffer_data(bytes), 1, tw_buffer_bytes(bytes), file) != tw_buffer_bytes(bytes) || fclose(file)) {
    worker_fail("cannot write '%s'", path);
  }
  worker_reply("%u %llu", tw_graph_count(graph), (unsigned long long)tw_buffer_bytes(bytes));
  tw_buffer_release(bytes);
  tw_graph_destroy(graph);
}

typedef struct loaded {
  void* bytes;
  uint64_t size;
  tw_tensor* x;
} loaded;

static const loaded* file_of(const char* path) {
  static loaded l;
  if (l.bytes) return &l;
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) worker_fail("cannot read '%s'", path);
  l.size = (uint64_t)ftell(file);
  rewind(file);
  l.bytes = malloc(l.size);
  if (!l.bytes || fread(l.bytes, 1, l.size, file) != l.size || fclose(file)) worker_fail("cannot read '%s'", path);
  const int64_t dims[] = {kWidth, kWidth};
  const float ones[kWidth * kWidth] = {1};
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, ones, sizeof ones, &l.x));
  return &l;
}

static void import(void* user) {
  const loaded* l = user;
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  check(tw_graph_import(graph, l->bytes, l->size, NULL));
  tw_graph_destroy(graph);
}

/* argument: the file. */
void answer_graph_load(const char* argument) { worker_reply_time(import, (void*)file_of(argument), 9, 1, 1); }

typedef struct training {
  tw_session* session;
  tw_output x, loss;
  const tw_operation *train, *init;
} training;

/* device: an option of the session, or NULL. */
static training open_training(tw_graph* graph, const char* device) {
  const char* options[] = {"container=tower", device};
  training t = {0};
  check(tw_session_create(graph, options, device ? 2 : 1, &t.session));
  check(tw_graph_find_output(graph, "x", &t.x));
  check(tw_graph_find_output(graph, "loss", &t.loss));
  check(tw_graph_find(graph, "train", &t.train));
  check(tw_graph_find(graph, "init", &t.init));
  return t;
}

static void step(const training* t, tw_tensor* x) {
  const tw_signature what = {
      .size = sizeof what, .feeds = &t->x, .n_feeds = 1, .fetches = &t->loss, .n_fetches = 1, .targets = &t->train, .n_targets = 1};
  tw_tensor* loss;
  check(tw_session_run(t->session, &what, &x, NULL, &loss));
  tw_tensor_release(loss);
}

static void initialise(const training* t) {
  const tw_signature what = {.size = sizeof what, .targets = &t->init, .n_targets = 1};
  check(tw_session_run(t->session, &what, NULL, NULL, NULL));
}

/* Times parsing up to the end of the first training step, without initialisation: an earlier
 * session set the state. */
void answer_graph_plan(const char* argument) {
  enum { kSamples = 9 };
  const loaded* l = file_of(argument);
  double times[kSamples];
  for (int i = -1; i < kSamples; ++i) {
    const double begin = worker_now_ns();
    tw_graph* graph;
    check(tw_graph_create(runtime, &graph));
    check(tw_graph_import(graph, l->bytes, l->size, NULL));
    const training t = open_training(graph, NULL);
    if (i < 0) initialise(&t);
    step(&t, l->x);
    if (i >= 0) times[i] = worker_now_ns() - begin;
    tw_session_destroy(t.session);
    tw_graph_destroy(graph);
  }
  worker_reply_median(times, kSamples);
}

/* Times the first step of a new session over an existing graph. */
static void reply_first_step(const char* path, const char* device) {
  enum { kSamples = 9 };
  const loaded* l = file_of(path);
  double times[kSamples];
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  check(tw_graph_import(graph, l->bytes, l->size, NULL));
  for (int i = -1; i < kSamples; ++i) {
    const training t = open_training(graph, device);
    if (i < 0) initialise(&t);
    const double begin = worker_now_ns();
    step(&t, l->x);
    if (i >= 0) times[i] = worker_now_ns() - begin;
    tw_session_destroy(t.session);
  }
  tw_graph_destroy(graph);
  worker_reply_median(times, kSamples);
}

/* Times a later step. Opens a session first if t has none. */
static void reply_later_step(training* t, const char* path, const char* device) {
  enum { kSamples = 99 };
  const loaded* l = file_of(path);
  if (!t->session) {
    tw_graph* graph;
    check(tw_graph_create(runtime, &graph));
    check(tw_graph_import(graph, l->bytes, l->size, NULL));
    *t = open_training(graph, device);
    initialise(t);
    step(t, l->x);
  }
  double times[kSamples];
  for (int i = 0; i < kSamples; ++i) {
    const double begin = worker_now_ns();
    step(t, l->x);
    times[i] = worker_now_ns() - begin;
  }
  worker_reply_median(times, kSamples);
}

/* argument: the file. */
void answer_first_step(const char* argument) { reply_first_step(argument, NULL); }
void answer_null_first_step(const char* argument) { reply_first_step(argument, "device=NULL"); }

void answer_later_step(const char* argument) {
  static training t;
  reply_later_step(&t, argument, NULL);
}

void answer_null_later_step(const char* argument) {
  static training t;
  reply_later_step(&t, argument, "device=NULL");
}

/* argument: the file of a plugin with a device, for the worker's own runtime. */
void answer_device_load(const char* argument) {
  check(tw_plugin_load(runtime, argument));
  worker_reply("%d", 1);
}

/* argument: a plugin's file. Makes a new runtime each time; its cost is not counted. */
void answer_plugin_load(const char* argument) {
  enum { kSamples = 9 };
  double times[kSamples];
  for (int i = 0; i < kSamples; ++i) {
    const char* options[] = {"threads=1", "load_plugins=false"};
    tw_runtime* bare;
    check(tw_runtime_create(options, 2, &bare));
    const double begin = worker_now_ns();
    check(tw_plugin_load(bare, argument));
    times[i] = worker_now_ns() - begin;
    tw_runtime_release(bare);
  }
  worker_reply_median(times, kSamples);
}

/* argument: a folder of plugins. Times the creation of a runtime that has found them; it may
 * have loaded none. */
void answer_plugins_known(const char* argument) {
  enum { kSamples = 9 };
  double times[kSamples];
  char path[4096];
  snprintf(path, sizeof path, "plugin_path=%s", argument);
  for (int i = -1; i < kSamples; ++i) { /* the first may have to probe them */
    const char* options[] = {"threads=1", path};
    tw_runtime* found;
    const double begin = worker_now_ns();
    check(tw_runtime_create(options, 2, &found));
    if (i >= 0) times[i] = worker_now_ns() - begin;
    tw_plugins* plugins;
    check(tw_plugins_create(found, &plugins));
    for (uint32_t k = 0; k < tw_plugins_count(plugins); ++k) {
      const uint32_t state = tw_plugins_state(plugins, k);
      const int linked_in = strncmp(tw_plugins_path(plugins, k), "linked in", 9) == 0;
      if (state != (linked_in ? TW_PLUGIN_LOADED : TW_PLUGIN_KNOWN)) {
        worker_fail("'%s' is in state %u: %s", tw_plugins_path(plugins, k), state, tw_plugins_reason(plugins, k));
      }
    }
    tw_plugins_destroy(plugins);
    tw_runtime_release(found);
  }
  worker_reply_median(times, kSamples);
}
