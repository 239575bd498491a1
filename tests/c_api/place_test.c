/* Places: errors name the line of the program that made the operation. */
#include "check.h"

/* Checks that the call fails at this place, and that the message says so. */
static void fails_at(tw_status* s, const char* place, const char* message) {
  CHECK(tw_status_place(s) && !strcmp(tw_status_place(s), place));
  CHECK(strstr(tw_status_message(s), message) != NULL);
  if (!strstr(tw_status_message(s), message)) printf("  %s\n", tw_status_message(s));
  tw_status_release(s);
}

static void AddingFailsWhereItWasWritten(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_op* op = tw_op_create(graph, "Nonsense", "n");
  tw_op_set_place(op, "train.py:18");
  fails_at(tw_op_finish(op, NULL), "train.py:18", "Nonsense 'n' (made at train.py:18): ");
  op = tw_op_create(graph, "Neg", "m");
  tw_op_set_place(op, "train.py:19");
  tw_op_add_input(op, 12345);
  fails_at(tw_op_finish(op, NULL), "train.py:19", "Neg 'm' (made at train.py:19): ");
  tw_graph_destroy(graph);
}

static void AScopeGivesItsPlaceToWhatItAdds(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_operation* op = NULL;
  CHECK(!*tw_scope_place(s));
  tw_scope_set_place(s, "model.c:7");
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, -1);
  const tw_output values[] = {x, tw_scope_op1(s, "Neg", x), tw_scope_scalar(s, TW_FLOAT, 1), tw_scope_name(s, "named", x)};
  for (int i = 0; i < 4; ++i) {
    OK(tw_graph_producer(graph, values[i], &op, NULL));
    CHECK(!strcmp(tw_operation_place(op), "model.c:7"));
  }
  CHECK(!strcmp(tw_operation_place(tw_scope_group(s, "all", NULL, 0)), "model.c:7") && !strcmp(tw_scope_place(s), "model.c:7"));
  tw_scope_set_place(s, NULL);
  OK(tw_graph_producer(graph, tw_scope_op1(s, "Neg", x), &op, NULL));
  CHECK(!*tw_operation_place(op));
  OK(tw_scope_finish(s));
  tw_graph_destroy(graph);
}

static void PlanningAndRunningFailThereToo(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output a = tw_scope_placeholder(s, "a", TW_FLOAT, NULL, -1), b = tw_scope_placeholder(s, "b", TW_FLOAT, NULL, -1);
  tw_scope_set_place(s, TW_PLACE);
  const int line = __LINE__ - 1;
  const tw_output product = tw_scope_op2(s, "MatMul", a, b);
  tw_scope_set_place(s, "check.c:1");
  const int32_t row = 7;
  const tw_output missing = tw_scope_op3(s, "GatherV2", a, tw_scope_ints(s, &row, 1), tw_scope_scalar(s, TW_INT32, 0));
  OK(tw_scope_finish(s));
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  tw_tensor* fed[] = {floats(dims, 2, values), floats(dims, 2, values)};
  const tw_output feeds[] = {a, b};
  tw_tensor* out = NULL;
  tw_signature what = {.size = sizeof what, .feeds = feeds, .fetches = &product, .n_feeds = 2, .n_fetches = 1};
  char place[256];
  snprintf(place, sizeof place, "%s:%d", __FILE__, line);
  fails_at(tw_session_run(session, &what, fed, NULL, &out), place, "MatMul 'MatMul' (made at ");
  what.fetches = &missing;
  fails_at(tw_session_run(session, &what, fed, NULL, &out), "check.c:1", "(made at check.c:1) on CPU:0: ");
  tw_tensor_release(fed[0]);
  tw_tensor_release(fed[1]);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* Returns the place of an operation of this type under gradients/. */
static const char* place_of_gradient(tw_graph* graph, const char* type) {
  for (uint32_t i = 0; i < tw_graph_count(graph); ++i) {
    const tw_operation* op = tw_graph_operation(graph, i);
    if (!strncmp(tw_operation_name(op), "gradients", 9) && !strcmp(tw_operation_type(op), type)) return tw_operation_place(op);
  }
  return "none";
}

static void GradientsAreMadeWhereTheirOperationWas(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {2, 2};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  tw_scope_set_place(s, "net.c:1");
  const tw_output h = tw_scope_op2(s, "MatMul", x, x);
  tw_scope_set_place(s, "net.c:2");
  const tw_output y = tw_scope_op1(s, "Tanh", h);
  tw_scope_set_place(s, NULL);
  tw_gradient g;
  tw_scope_gradients(s, y, &x, 1, &g);
  OK(tw_scope_finish(s));
  CHECK(!strcmp(place_of_gradient(graph, "MatMul"), "net.c:1"));
  CHECK(!strcmp(place_of_gradient(graph, "TanhGrad"), "net.c:2"));
  tw_graph_destroy(graph);
}

static void PlacesAreNotPartOfTheGraph(void) {
  tw_graph* graphs[2] = {NULL, NULL};
  tw_buffer* bytes[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    OK(tw_graph_create(NULL, &graphs[i]));
    tw_scope* s = tw_scope_create(graphs[i], NULL);
    if (i) tw_scope_set_place(s, TW_PLACE);
    tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
    OK(tw_scope_finish(s));
    OK(tw_graph_export(graphs[i], &bytes[i]));
  }
  CHECK(tw_buffer_bytes(bytes[0]) == tw_buffer_bytes(bytes[1]));
  CHECK(!memcmp(tw_buffer_data(bytes[0]), tw_buffer_data(bytes[1]), tw_buffer_bytes(bytes[0])));
  for (int i = 0; i < 2; ++i) {
    tw_buffer_release(bytes[i]);
    tw_graph_destroy(graphs[i]);
  }
}

MAIN(TEST(AddingFailsWhereItWasWritten), TEST(AScopeGivesItsPlaceToWhatItAdds), TEST(PlanningAndRunningFailThereToo),
     TEST(GradientsAreMadeWhereTheirOperationWas), TEST(PlacesAreNotPartOfTheGraph))
