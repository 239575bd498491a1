/* Models in one file: what the file holds, read back as a graph, and errors. */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "folder.h"

typedef struct net {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y, z, loss, table, row;
  const tw_operation* train;
} net;

static char folder[512], path[600];

/* z = embedding(x) kernel + bias, with a training step. */
static net new_net(uint32_t initialise) {
  net n = {0};
  OK(tw_graph_create(NULL, &n.graph));
  tw_scope* s = tw_scope_create(n.graph, NULL);
  const int64_t any[] = {-1};
  n.x = tw_scope_placeholder(s, "x", TW_INT32, any, 1);
  n.y = tw_scope_placeholder(s, "y", TW_INT32, any, 1);
  tw_layer_options options;
  tw_layer_options_init(&options);
  options.seed = 5;
  n.table = tw_embedding_create(s, "words", &options, 6, 4);
  n.row = tw_embedding_apply(s, n.table, n.x);
  tw_dense dense;
  tw_dense_create(s, "out", &options, 4, 3, &dense);
  n.z = tw_scope_name(s, "scores", tw_dense_apply(s, &dense, n.row));
  const int32_t axis[] = {0};
  n.loss = tw_scope_op2(s, "Mean", tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", n.z, n.y), tw_scope_ints(s, axis, 1));
  const tw_output weights[] = {n.table, dense.kernel, dense.bias};
  tw_gradient gradients[3];
  tw_scope_gradients(s, n.loss, weights, 3, gradients);
  n.train = tw_train_adam(s, weights, gradients, 3, NULL);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(n.graph, NULL, 0, &n.session));
  if (initialise) run(n.session, init);
  return n;
}

static void end_net(net* n) {
  tw_session_destroy(n->session);
  tw_graph_destroy(n->graph);
}

static const char* const kInputs[] = {"ids", "labels"};
static const char* const kOutputs[] = {"scores", "loss"};

static tw_saved_signature signature_of(const tw_output* inputs, uint32_t n_inputs, const tw_output* outputs, uint32_t n_outputs) {
  return (tw_saved_signature){.size = sizeof(tw_saved_signature),
                              .input_names = kInputs,
                              .inputs = inputs,
                              .n_inputs = n_inputs,
                              .output_names = kOutputs,
                              .outputs = outputs,
                              .n_outputs = n_outputs};
}

/* ---- A message, field by field: enough of its format for SavedModel ---- */

static uint64_t number_at(const unsigned char** at) {
  uint64_t n = 0;
  for (int shift = 0;; shift += 7) {
    const unsigned char b = *(*at)++;
    n |= (uint64_t)(b & 127) << shift;
    if (b < 128) return n;
  }
}

/* The bytes of the first field of that number with a length; NULL: there is none. */
static const unsigned char* field(const unsigned char* at, uint64_t bytes, uint64_t number, uint64_t* out_bytes) {
  const unsigned char* end = at + bytes;
  while (at < end) {
    const uint64_t key = number_at(&at);
    if ((key & 7) == 0) {
      number_at(&at);
      continue;
    }
    const uint64_t n = number_at(&at);
    *out_bytes = n;
    if (key >> 3 == number) return at;
    at += n;
  }
  return NULL;
}

static tw_tensor* ids(int32_t a, int32_t b) {
  const int64_t two = 2;
  const int32_t values[] = {a, b};
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_INT32, &two, 1, values, sizeof values, &t));
  return t;
}

static void AFileHoldsWhatItsSignaturesNeed(void) {
  CHECK(make_folder(folder, sizeof folder, "save-model") == 0);
  snprintf(path, sizeof path, "%s/model.tw", folder);
  net n = new_net(1);
  const tw_saved_signature s = signature_of(&n.x, 1, &n.z, 1);
  for (int twice = 0; twice < 2; ++twice) {
    const uint64_t before = tw_graph_count(n.graph);
    OK(tw_model_save(n.graph, n.session, &s, 1, path));
    if (twice) CHECK(tw_graph_count(n.graph) == before + 1); /* only the table has no read of its own */
  }
  static unsigned char bytes[1 << 16];
  FILE* file = fopen(path, "rb");
  const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  uint64_t meta_bytes = 0, graph_bytes = 0;
  const unsigned char* meta = field(bytes, size, 2, &meta_bytes);
  CHECK(meta);
  const unsigned char* def = meta ? field(meta, meta_bytes, 2, &graph_bytes) : NULL;
  CHECK(def);
  if (!def) return;

  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_import(graph, def, graph_bytes, NULL));
  CHECK(!tw_graph_has(graph, "y") && !tw_graph_has(graph, "out/kernel/Adam") && !tw_graph_has(graph, "init") && tw_graph_has(graph, "x"));
  const tw_operation* start = NULL;
  tw_output x = 0, z = 0;
  OK(tw_graph_find(graph, "saved/init", &start));
  OK(tw_graph_find_output(graph, "x", &x));
  OK(tw_graph_find_output(graph, "scores", &z));
  OK(tw_session_create(graph, NULL, 0, &session));
  run(session, start);
  tw_tensor *fed = ids(2, 5), *wanted = fetch(n.session, n.x, fed, n.z), *got = fetch(session, x, fed, z);
  CHECK(got && wanted && tw_tensor_count(got) == 6 && !memcmp(tw_tensor_data(got), tw_tensor_data(wanted), 6 * sizeof(float)));
  tw_tensor_release(fed);
  tw_tensor_release(wanted);
  tw_tensor_release(got);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  end_net(&n);
  remove_folder(folder);
}

static void WrongSignaturesAreRefused(void) {
  net n = new_net(1), bare = new_net(0);
  const tw_output both[] = {n.z, n.loss}, fed[] = {n.x, n.y};
  tw_saved_signature s = signature_of(&n.x, 1, both, 2);
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "never"), TW_INVALID_ARGUMENT,
        "output 'loss' needs the placeholder 'y', which is no input");
  s = signature_of(fed, 2, both, 2);
  const tw_saved_signature two[] = {s, s};
  FAILS(tw_model_save(n.graph, n.session, two, 2, "never"), TW_INVALID_ARGUMENT, "signature 'serving_default' is there twice");
  FAILS(tw_model_save(n.graph, n.session, &s, 0, "never"), TW_INVALID_ARGUMENT, "there are no signatures");
  s.n_outputs = 0;
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "never"), TW_INVALID_ARGUMENT, "has no outputs");
  s = signature_of(fed, 2, both, 2);
  s.name = "__saved_model_init_op";
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "never"), TW_INVALID_ARGUMENT, "reserve");
  const char* const same[] = {"a", "a"};
  s = signature_of(fed, 2, both, 2);
  s.input_names = same;
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "never"), TW_INVALID_ARGUMENT, "'a' is there twice");
  s.size = 8;
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "never"), TW_INVALID_ARGUMENT, "tw_saved_signature");
  s = signature_of(&bare.x, 1, &bare.z, 1);
  FAILS(tw_model_save(bare.graph, bare.session, &s, 1, "never"), TW_FAILED_PRECONDITION, "out/");
  s = signature_of(&n.x, 1, &n.z, 1);
  FAILS(tw_model_save(n.graph, n.session, &s, 1, "/no/such/folder/model"), TW_NOT_FOUND, "/no/such/folder");
  end_net(&n);
  end_net(&bare);
}

static void OtherStateIsRefused(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const uint32_t types[] = {TW_INT64};
  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", "queue");
  tw_op_set_types(op, "component_types", types, 1);
  const tw_output queue = tw_scope_end(s, op);
  op = tw_scope_begin(s, "QueueDequeueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_set_types(op, "component_types", types, 1);
  const tw_output taken = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  const tw_saved_signature saved = signature_of(NULL, 0, &taken, 1);
  FAILS(tw_model_save(graph, session, &saved, 1, "never"), TW_UNIMPLEMENTED, "'queue' (FIFOQueueV2) is state of another kind");
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

MAIN(TEST(AFileHoldsWhatItsSignaturesNeed), TEST(WrongSignaturesAreRefused), TEST(OtherStateIsRefused))
