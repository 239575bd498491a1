/* Containers: the owner of each state. Covers a graph's own state, state shared on request,
 * resets, and the time when memory is freed. */
#include <string.h>

#include "check.h"

/* A variable 'w' and a queue; the graph may be built or loaded. */
typedef struct model {
  tw_graph* graph;
  tw_session* session;
  tw_output read, value, element, size;
  const tw_operation *assign, *put;
} model;

static void build(tw_graph* graph, const char* queue_name, int of_graph) {
  tw_scope* s = tw_scope_create(graph, NULL);
  const uint32_t type = TW_FLOAT;
  const int64_t dims[] = {2};
  const tw_output value = tw_scope_placeholder(s, "value", TW_FLOAT, dims, 1);
  const int32_t size[] = {2};
  const tw_output w = tw_variable_create(s, "w", tw_scope_op2(s, "Fill", tw_scope_ints(s, size, 1), tw_scope_scalar(s, TW_FLOAT, 0)));
  tw_scope_name(s, "read", tw_variable_read(s, w));
  tw_op* assign = tw_scope_begin(s, "AssignVariableOp", "assign");
  const tw_output assigned[] = {w, value};
  tw_op_add_inputs(assign, assigned, 2);
  tw_scope_end_operation(s, assign);

  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", "queue");
  tw_op_set_types(op, "component_types", &type, 1);
  if (queue_name) tw_op_set_string(op, "shared_name", queue_name, strlen(queue_name));
  if (of_graph) tw_op_set_bool(op, "_of_graph", 1);
  const tw_output queue = tw_scope_end(s, op);
  op = tw_scope_begin(s, "QueueEnqueueV2", "put");
  const tw_output put[] = {queue, value};
  tw_op_add_inputs(op, put, 2);
  tw_scope_end_operation(s, op);
  op = tw_scope_begin(s, "QueueDequeueV2", "element");
  tw_op_add_input(op, queue);
  tw_op_set_types(op, "component_types", &type, 1);
  tw_scope_end(s, op);
  op = tw_scope_begin(s, "QueueSizeV2", "size");
  tw_op_add_input(op, queue);
  tw_scope_end(s, op);
  OK(tw_scope_finish(s));
}

static void find(model* m) {
  OK(tw_graph_find_output(m->graph, "read", &m->read));
  OK(tw_graph_find_output(m->graph, "value", &m->value));
  OK(tw_graph_find_output(m->graph, "element", &m->element));
  OK(tw_graph_find_output(m->graph, "size", &m->size));
  OK(tw_graph_find(m->graph, "assign", &m->assign));
  OK(tw_graph_find(m->graph, "put", &m->put));
}

static tw_session* open_session(tw_graph* graph, const char* option) {
  tw_session* session = NULL;
  OK(tw_session_create(graph, &option, option ? 1 : 0, &session));
  return session;
}

static model new_model(tw_runtime* runtime, const char* option, const char* queue_name) {
  model m = {0};
  OK(tw_graph_create(runtime, &m.graph));
  build(m.graph, queue_name, 0);
  find(&m);
  m.session = open_session(m.graph, option);
  return m;
}

/* Imports the export of the other model, as a program loads a file. */
static model load(const model* of, const char* option) {
  model m = {0};
  tw_buffer* bytes = NULL;
  OK(tw_graph_export(of->graph, &bytes));
  OK(tw_graph_create(NULL, &m.graph));
  OK(tw_graph_import(m.graph, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  tw_buffer_release(bytes);
  find(&m);
  m.session = open_session(m.graph, option);
  return m;
}

static void free_model(model* m) {
  tw_session_destroy(m->session);
  tw_graph_destroy(m->graph);
}

static void feed(const model* m, const tw_operation* target, float x) {
  const int64_t dims[] = {2};
  const float values[] = {x, x};
  tw_tensor* value = floats(dims, 1, values);
  const tw_signature what = {.size = sizeof what, .feeds = &m->value, .targets = &target, .n_feeds = 1, .n_targets = 1};
  OK(tw_session_run(m->session, &what, &value, NULL, NULL));
  tw_tensor_release(value);
}

static tw_status* get(tw_session* session, tw_output output, tw_tensor** out) {
  const tw_signature what = {.size = sizeof what, .fetches = &output, .n_fetches = 1};
  return tw_session_run(session, &what, NULL, NULL, out);
}

static float first(tw_session* session, tw_output output) { return as_float(fetch(session, 0, NULL, output)); }

static int32_t waiting(const model* m) {
  tw_tensor* t = fetch(m->session, 0, NULL, m->size);
  const int32_t n = t ? *(const int32_t*)tw_tensor_data(t) : -1;
  tw_tensor_release(t);
  return n;
}

static void TwoGraphsDoNotShareWhatHasOneName(void) {
  model a = new_model(NULL, NULL, NULL), b = new_model(NULL, NULL, NULL);
  tw_tensor* out = NULL;
  feed(&a, a.assign, 1);
  FAILS(get(b.session, b.read, &out), TW_FAILED_PRECONDITION, "not initialised");
  feed(&b, b.assign, 2);
  feed(&a, a.put, 5);
  CHECK(first(a.session, a.read) == 1 && first(b.session, b.read) == 2 && waiting(&a) == 1 && waiting(&b) == 0);
  free_model(&a);
  free_model(&b);
}

/* Not even with a `shared_name`, which the author of the file chose. */
static void TwoLoadedGraphsDoNotShare(void) {
  model source = new_model(NULL, NULL, "queue of the file"), a = load(&source, NULL), b = load(&source, NULL);
  feed(&source, source.put, 9);
  feed(&a, a.assign, 1);
  feed(&b, b.assign, 2);
  feed(&a, a.put, 5);
  CHECK(first(a.session, a.read) == 1 && first(b.session, b.read) == 2 && waiting(&a) == 1 && waiting(&b) == 0 && waiting(&source) == 1);
  model x = load(&source, "container=of both"), y = load(&source, "container=of both");
  feed(&x, x.assign, 3);
  feed(&x, x.put, 4);
  CHECK(first(y.session, y.read) == 3 && waiting(&y) == 1 && first(y.session, y.element) == 4 && first(a.session, a.read) == 1);
  model* all[] = {&source, &a, &b, &x, &y};
  for (int i = 0; i < 5; ++i) free_model(all[i]);
  OK(tw_runtime_reset(NULL, NULL, NULL));
}

static void SessionsOfOneGraphShareItsStateAlsoOneAfterTheOther(void) {
  model m = new_model(NULL, NULL, NULL);
  tw_session* beside = open_session(m.graph, NULL);
  feed(&m, m.assign, 1);
  feed(&m, m.put, 5);
  CHECK(first(beside, m.read) == 1 && first(beside, m.element) == 5);
  tw_session_destroy(beside);
  tw_session_destroy(m.session);
  m.session = open_session(m.graph, NULL); /* as an evaluation after training */
  CHECK(first(m.session, m.read) == 1);
  free_model(&m);
}

static void ASharedNameIsSharedByBuiltGraphsAndOnlyIt(void) {
  model a = new_model(NULL, NULL, "a shared queue"), b = new_model(NULL, "container=localhost", "a shared queue");
  model c = new_model(NULL, NULL, "a shared queue"), other = new_model(NULL, "container=elsewhere", "a shared queue"), own = {0};
  OK(tw_graph_create(NULL, &own.graph));
  build(own.graph, "a shared queue", 1);
  find(&own);
  own.session = open_session(own.graph, NULL);
  tw_tensor* out = NULL;
  feed(&a, a.assign, 1);
  feed(&a, a.put, 5);
  CHECK(waiting(&b) == 1 && waiting(&c) == 1 && waiting(&other) == 0 && waiting(&own) == 0);
  FAILS(get(c.session, c.read, &out), TW_FAILED_PRECONDITION, "not initialised");
  CHECK(first(c.session, c.element) == 5);
  model* all[] = {&a, &b, &c, &other, &own};
  for (int i = 0; i < 5; ++i) free_model(all[i]);
  OK(tw_runtime_reset(NULL, NULL, NULL));
}

static void AScopesContainerIsSharedVariableByVariable(void) {
  tw_graph* graphs[2];
  tw_session* sessions[2];
  tw_output ours[2], mine[2];
  const tw_operation* init[2];
  for (int i = 0; i < 2; ++i) {
    OK(tw_graph_create(NULL, &graphs[i]));
    tw_scope* s = tw_scope_create(graphs[i], NULL);
    CHECK(strcmp(tw_scope_container(s), "") == 0);
    tw_scope_set_container(s, "of a scope");
    CHECK(strcmp(tw_scope_container(s), "of a scope") == 0);
    ours[i] = tw_variable_read(s, tw_variable_create(s, "ours", tw_scope_scalar(s, TW_FLOAT, 1 + i)));
    tw_scope_set_container(s, NULL);
    mine[i] = tw_variable_read(s, tw_variable_create(s, "mine", tw_scope_scalar(s, TW_FLOAT, 1 + i)));
    init[i] = tw_variable_initializer(s, "init");
    OK(tw_scope_finish(s));
    sessions[i] = open_session(graphs[i], NULL);
    run(sessions[i], init[i]);
  }
  CHECK(first(sessions[0], ours[0]) == 2 && first(sessions[0], mine[0]) == 1 && first(sessions[1], mine[1]) == 2);
  tw_scope* s = tw_scope_create(graphs[0], NULL);
  tw_scope_set_container(s, "<graph 1>");
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "names that begin with '<' are of graphs");
  for (int i = 0; i < 2; ++i) {
    tw_session_destroy(sessions[i]);
    tw_graph_destroy(graphs[i]);
  }
  OK(tw_runtime_reset(NULL, "of a scope", NULL));
}

/* A read shares the variable's memory, so the tensor shows whether the variable still exists. */
static void MemoryGoesWithTheLastOfGraphAndSessions(void) {
  for (int session_first = 0; session_first < 2; ++session_first) {
    model m = new_model(NULL, NULL, NULL);
    feed(&m, m.assign, 1);
    tw_tensor* w = fetch(m.session, 0, NULL, m.read);
    CHECK(w && tw_tensor_shared(w) == 1);
    if (session_first) {
      tw_session_destroy(m.session);
    } else {
      tw_graph_destroy(m.graph);
    }
    CHECK(w && tw_tensor_shared(w) == 1);
    if (session_first) {
      tw_graph_destroy(m.graph);
    } else {
      tw_session_destroy(m.session);
    }
    CHECK(w && tw_tensor_shared(w) == 0);
    tw_tensor_release(w);
  }
}

static void AResetEmptiesTheGraphsStateAndSessionsGoOn(void) {
  model m = new_model(NULL, NULL, NULL), untouched = new_model(NULL, NULL, NULL);
  tw_session* beside = open_session(m.graph, NULL);
  tw_tensor* out = NULL;
  feed(&untouched, untouched.assign, 7);
  for (int round = 0; round < 2; ++round) {
    feed(&m, m.assign, 1);
    feed(&m, m.put, 5);
    feed(&m, m.put, 6);
    CHECK(first(beside, m.read) == 1 && first(beside, m.element) == 5);
    tw_tensor* w = fetch(m.session, 0, NULL, m.read);
    uint64_t count = 0;
    OK(tw_session_reset(m.session, round ? "" : NULL, &count));
    CHECK(count == 2 && w && tw_tensor_shared(w) == 0);
    tw_tensor_release(w);
    for (int k = 0; k < 2; ++k) FAILS(get(k ? beside : m.session, m.read, &out), TW_FAILED_PRECONDITION, "not initialised");
    CHECK(waiting(&m) == 0);
    /* A resource that one session makes again is visible in the other. */
    feed(&m, m.assign, 2);
    feed(&m, m.put, 8);
    CHECK(first(beside, m.read) == 2 && first(beside, m.element) == 8 && first(untouched.session, untouched.read) == 7);
    OK(tw_session_reset(beside, NULL, NULL));
  }
  tw_session_destroy(beside);
  free_model(&m);
  free_model(&untouched);
}

static void AResetIsOfTheContainerThatItNames(void) {
  model a = new_model(NULL, "container=reset a", NULL), b = new_model(NULL, "container=reset b", NULL);
  tw_tensor* out = NULL;
  uint64_t count = 9;
  feed(&a, a.assign, 1);
  feed(&b, b.assign, 2);
  OK(tw_runtime_reset(NULL, "reset nothing", &count));
  CHECK(count == 0);
  OK(tw_runtime_reset(NULL, "reset a", &count));
  CHECK(count == 1);
  FAILS(get(a.session, a.read, &out), TW_FAILED_PRECONDITION, "not initialised");
  CHECK(first(b.session, b.read) == 2);
  feed(&a, a.assign, 3);
  OK(tw_session_reset(a.session, "reset b", &count)); /* any session may reset any container */
  CHECK(count == 1 && first(a.session, a.read) == 3);
  FAILS(get(b.session, b.read, &out), TW_FAILED_PRECONDITION, "not initialised");
  free_model(&a);
  free_model(&b);
}

/* A graph's container ends with the graph; nobody else can open it by name. */
static void AGraphsContainerCannotBeNamed(void) {
  model m = new_model(NULL, NULL, NULL);
  tw_session* session = NULL;
  const char* option = "container=<graph 1>";
  FAILS(tw_session_create(m.graph, &option, 1, &session), TW_INVALID_ARGUMENT, "container");
  FAILS(tw_runtime_reset(NULL, "<graph 1>", NULL), TW_INVALID_ARGUMENT, "container '<graph 1>': names that begin with '<' are of graphs");
  FAILS(tw_session_reset(m.session, "<graph 1>", NULL), TW_INVALID_ARGUMENT, "names that begin with '<' are of graphs");
  tw_scope* s = tw_scope_create(m.graph, NULL);
  tw_op* op = tw_scope_begin(s, "VarHandleOp", "peeping");
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_shape(op, "shape", NULL, -1);
  tw_op_set_string(op, "container", "<graph 1>", 9);
  const tw_output read = tw_variable_read(s, tw_scope_end(s, op));
  OK(tw_scope_finish(s));
  tw_tensor* out = NULL;
  FAILS(get(m.session, read, &out), TW_INVALID_ARGUMENT, "container '<graph 1>': names that begin with '<' are of graphs; choose another");
  free_model(&m);
}

MAIN(TEST(TwoGraphsDoNotShareWhatHasOneName), TEST(TwoLoadedGraphsDoNotShare), TEST(SessionsOfOneGraphShareItsStateAlsoOneAfterTheOther),
     TEST(ASharedNameIsSharedByBuiltGraphsAndOnlyIt), TEST(AScopesContainerIsSharedVariableByVariable),
     TEST(MemoryGoesWithTheLastOfGraphAndSessions), TEST(AResetEmptiesTheGraphsStateAndSessionsGoOn),
     TEST(AResetIsOfTheContainerThatItNames), TEST(AGraphsContainerCannotBeNamed))
