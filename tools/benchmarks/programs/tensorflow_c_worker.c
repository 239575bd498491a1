/* TensorFlow's worker in C, over TensorFlow's own C API: excludes the cost of its Python.
 * tensorflow_worker.py made the training graph. usage: tensorflow_c_worker THREADS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlp_data.h"
#include "tensorflow/c/c_api.h"
#include "worker.h"

enum { kNodes = 10000 };

/* One run: at most two feeds, one fetch, one target. */
typedef struct prepared {
  TF_Session* session;
  TF_Output feeds[2], fetch;
  TF_Tensor* values[2];
  const TF_Operation* target;
  int n_feeds, n_fetches, n_targets;
} prepared;

static int threads;
static TF_Status* status;

static void check(void) {
  if (TF_GetCode(status) != TF_OK) worker_fail("%s", TF_Message(status));
}

/* config: a serialised ConfigProto. */
static TF_Session* open_configured(TF_Graph* graph, const uint8_t* config, size_t bytes) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, config, bytes, status);
  check();
  TF_Session* session = TF_NewSession(graph, options, status);
  check();
  TF_DeleteSessionOptions(options);
  return session;
}

static TF_Session* open_session(TF_Graph* graph) {
  const uint8_t config[] = {0x10, (uint8_t)threads, 0x28, (uint8_t)threads}; /* intra_op (2) and inter_op (5) threads */
  return open_configured(graph, config, sizeof config);
}

/* Opens a session without the optimiser, which would remove nodes that do nothing. */
static TF_Session* open_plain_session(TF_Graph* graph) {
  const uint8_t config[] = {0x10, (uint8_t)threads, 0x28, (uint8_t)threads, 0x52, 5, 0x52, 3, 0x98, 0x01,
                            1}; /* graph_options (10), rewrite_options (10), disable_meta_optimizer (19) */
  return open_configured(graph, config, sizeof config);
}

static void run_prepared(void* user) {
  const prepared* p = user;
  TF_Tensor* fetched = NULL;
  TF_SessionRun(p->session, NULL, p->feeds, p->values, p->n_feeds, &p->fetch, &fetched, p->n_fetches, &p->target, p->n_targets, NULL,
                status);
  check();
  if (fetched) TF_DeleteTensor(fetched);
}

static void answer_run(const char* argument) {
  static prepared p;
  if (!p.session) {
    TF_Graph* graph = TF_NewGraph();
    p.target = TF_FinishOperation(TF_NewOperation(graph, "NoOp", "nothing"), status);
    check();
    p.n_targets = 1;
    p.session = open_session(graph);
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, 1);
}

/* ---- The chain of additions ---- */

static TF_Output placeholder(TF_Graph* graph, const char* name) {
  const int64_t dims[] = {1};
  TF_OperationDescription* d = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_SetAttrShape(d, "shape", dims, 1);
  const TF_Output made = {TF_FinishOperation(d, status), 0};
  check();
  return made;
}

static TF_Tensor* tensor(TF_DataType dtype, const int64_t* dims, int rank, const void* data, size_t bytes) {
  TF_Tensor* t = TF_AllocateTensor(dtype, dims, rank, bytes);
  memcpy(TF_TensorData(t), data, bytes);
  return t;
}

static prepared make_add_chain(void) {
  TF_Graph* graph = TF_NewGraph();
  prepared p = {.feeds = {placeholder(graph, "x"), placeholder(graph, "one")}, .n_feeds = 2, .n_fetches = 1};
  p.fetch = p.feeds[0];
  for (int i = 0; i < kNodes; ++i) {
    char name[32];
    snprintf(name, sizeof name, "add%d", i);
    TF_OperationDescription* d = TF_NewOperation(graph, "AddV2", name);
    TF_AddInput(d, p.fetch);
    TF_AddInput(d, p.feeds[1]);
    p.fetch = (TF_Output){TF_FinishOperation(d, status), 0};
    check();
  }
  const int64_t dims[] = {1};
  const float one[] = {1};
  for (int i = 0; i < 2; ++i) p.values[i] = tensor(TF_FLOAT, dims, 1, one, sizeof one);
  p.session = open_session(graph);
  return p;
}

static void answer_add_chain(const char* argument) {
  static prepared p;
  if (!p.session) p = make_add_chain();
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kNodes);
}

/* ---- The training step ---- */

static prepared step, init;

static TF_Buffer* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) worker_fail("cannot read '%s'", path);
  enum { kMost = 8 << 20 };
  char* bytes = malloc(kMost);
  const size_t count = bytes ? fread(bytes, 1, kMost, file) : 0;
  fclose(file);
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, count);
  free(bytes);
  return buffer;
}

static TF_Buffer* read_graph(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/mlp.pb", folder);
  return read_file(path);
}

static TF_Operation* find(TF_Graph* graph, const char* name) {
  TF_Operation* found = TF_GraphOperationByName(graph, name);
  if (!found) worker_fail("the graph has no operation '%s'", name);
  return found;
}

static void answer_mlp_load(const char* argument) {
  mlp_data* d = malloc(sizeof *d);
  if (!d) worker_fail("out of memory");
  mlp_data_read(argument, d);
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* bytes = read_graph(argument);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, bytes, options, status);
  check();
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  const int64_t x_dims[] = {kMlpBatch, kMlpIn};
  step = (prepared){.session = open_session(graph),
                    .feeds = {{find(graph, "x"), 0}, {find(graph, "y"), 0}},
                    .n_feeds = 2,
                    .values = {tensor(TF_FLOAT, x_dims, 2, d->x, sizeof d->x), tensor(TF_INT32, x_dims, 1, d->y, sizeof d->y)},
                    .fetch = {find(graph, "loss"), 0},
                    .n_fetches = 1,
                    .target = find(graph, "train"),
                    .n_targets = 1};
  init = (prepared){.session = step.session, .target = find(graph, "init"), .n_targets = 1};
  free(d);
  run_prepared(&init);
  worker_reply("%d", 1);
}

static void answer_mlp_losses(const char* argument) {
  (void)argument;
  double losses[5];
  run_prepared(&init);
  for (int i = 0; i < 5; ++i) {
    TF_Tensor* loss;
    TF_SessionRun(step.session, NULL, step.feeds, step.values, 2, &step.fetch, &loss, 1, &step.target, 1, NULL, status);
    check();
    losses[i] = (double)*(const float*)TF_TensorData(loss);
    TF_DeleteTensor(loss);
  }
  worker_reply("%.9g %.9g %.9g %.9g %.9g", losses[0], losses[1], losses[2], losses[3], losses[4]);
}

static void answer_mlp_step(const char* argument) {
  run_prepared(&init);
  worker_reply_time(run_prepared, &step, worker_number(argument), 1, 1);
}

/* ---- A graph of nodes that do nothing ---- */

static void answer_empty_graph(const char* argument) {
  static prepared p;
  if (!p.session) {
    TF_Graph* graph = TF_NewGraph();
    TF_OperationDescription* all = TF_NewOperation(graph, "NoOp", "all");
    for (int i = 0; i < kNodes; ++i) {
      char name[32];
      snprintf(name, sizeof name, "nothing%d", i);
      TF_AddControlInput(all, TF_FinishOperation(TF_NewOperation(graph, "NoOp", name), status));
      check();
    }
    p.target = TF_FinishOperation(all, status);
    check();
    p.n_targets = 1;
    p.session = open_plain_session(graph);
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kNodes);
}

/* ---- Loading a training graph ---- */

enum { kLoads = 9, kLaterSteps = 99, kWidth = 8 };

static TF_Buffer* graph_file(const char* path) {
  static TF_Buffer* buffer;
  if (!buffer) buffer = read_file(path);
  return buffer;
}

static TF_Graph* import(const char* path) {
  TF_Graph* graph = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, graph_file(path), options, status);
  check();
  TF_DeleteImportGraphDefOptions(options);
  return graph;
}

static void import_once(void* user) { TF_DeleteGraph(import(user)); }

static void answer_graph_load(const char* argument) { worker_reply_time(import_once, (void*)argument, kLoads, 1, 1); }

static void close_session(TF_Session* session) {
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  check();
}

/* Makes the training step of a new session. The session has its own variables and initialises
 * them; `out_spent` gets that time, for the caller to subtract. */
static prepared tower_step(TF_Graph* graph, double* out_spent) {
  static TF_Tensor* x;
  const int64_t dims[] = {kWidth, kWidth};
  const float ones[kWidth * kWidth] = {1};
  if (!x) x = tensor(TF_FLOAT, dims, 2, ones, sizeof ones);
  double begin = worker_now_ns();
  prepared p = {.session = open_session(graph),
                .feeds = {{find(graph, "x"), 0}},
                .n_feeds = 1,
                .values = {x},
                .fetch = {find(graph, "loss"), 0},
                .n_fetches = 1,
                .target = find(graph, "train"),
                .n_targets = 1};
  *out_spent = worker_now_ns() - begin;
  prepared start = {.session = p.session, .target = find(graph, "init"), .n_targets = 1};
  run_prepared(&start);
  return p;
}

static void answer_graph_plan(const char* argument) {
  double times[kLoads], spent;
  graph_file(argument);
  for (int i = 0; i < kLoads; ++i) {
    double begin = worker_now_ns();
    TF_Graph* graph = import(argument);
    times[i] = worker_now_ns() - begin;
    prepared p = tower_step(graph, &spent);
    begin = worker_now_ns();
    run_prepared(&p);
    times[i] += spent + worker_now_ns() - begin;
    close_session(p.session);
    TF_DeleteGraph(graph);
  }
  worker_reply_median(times, kLoads);
}

static void answer_first_step(const char* argument) {
  double times[kLoads], spent;
  TF_Graph* graph = import(argument);
  for (int i = 0; i < kLoads; ++i) {
    prepared p = tower_step(graph, &spent);
    const double begin = worker_now_ns();
    run_prepared(&p);
    times[i] = worker_now_ns() - begin;
    close_session(p.session);
  }
  TF_DeleteGraph(graph);
  worker_reply_median(times, kLoads);
}

static void answer_later_step(const char* argument) {
  static prepared p;
  double spent;
  if (!p.session) {
    p = tower_step(import(argument), &spent);
    run_prepared(&p);
  }
  worker_reply_time(run_prepared, &p, kLaterSteps, 1, 1);
}

int main(int argc, char** argv) {
  static const worker_command commands[] = {
      {"run", answer_run},
      {"add_chain", answer_add_chain},
      {"mlp_load", answer_mlp_load},
      {"mlp_step", answer_mlp_step},
      {"mlp_losses", answer_mlp_losses},
      {"empty_graph", answer_empty_graph},
      {"graph_load", answer_graph_load},
      {"graph_plan", answer_graph_plan},
      {"first_step", answer_first_step},
      {"later_step", answer_later_step},
      {NULL, NULL},
  };
  threads = worker_number(argc == 2 ? argv[1] : "");
  status = TF_NewStatus();
  worker_serve(commands);
  return 0;
}
