/* Statuses, versions and buffers. */
#include "check.h"

static void ASuccessIsNull(void) {
  CHECK(tw_status_code(NULL) == TW_OK);
  CHECK(strcmp(tw_status_message(NULL), "") == 0);
  tw_status_release(NULL);
}

static void AStatusKeepsCodeAndMessage(void) {
  tw_status* s = tw_status_create(TW_NOT_FOUND, "no such thing");
  CHECK(tw_status_code(s) == TW_NOT_FOUND);
  CHECK(strcmp(tw_status_message(s), "no such thing") == 0);
  tw_status_release(s);
}

static void AnUnknownCodeBecomesUnknown(void) {
  const uint32_t codes[] = {0, 17, 4000000000u};
  for (int i = 0; i < 3; ++i) {
    tw_status* s = tw_status_create(codes[i], NULL);
    CHECK(tw_status_code(s) == TW_UNKNOWN);
    CHECK(strcmp(tw_status_message(s), "") == 0);
    tw_status_release(s);
  }
}

/* Control characters, line ends and invalid UTF-8 of a name are escaped. */
static void AMessageIsOneLineOfUtf8(void) {
  struct {
    const char *raw, *shown;
  } cases[] = {
      {"a\nb\tc\033", "a\\nb\\tc\\x1b"}, {"\xff \xc3\xa9", "\\xff \xc3\xa9"}, {"\xe2\x82", "\\xe2\\x82"}, {"\xc2\x9b", "\\xc2\\x9b"}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    tw_status* s = tw_status_create(TW_INTERNAL, cases[i].raw);
    CHECK(strcmp(tw_status_message(s), cases[i].shown) == 0);
    tw_status_release(s);
  }
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "\xff\n");
  tw_scope_op2(s, "MatMul", tw_scope_scalar(s, TW_FLOAT, 1), tw_scope_scalar(s, TW_FLOAT, 1));
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "Const '\\xff\\n/Const'");
  tw_graph_destroy(graph);
}

static void expect_operation(tw_status* s, const char* name) {
  const char* got = tw_status_operation(s);
  if (name ? !got || strcmp(got, name) != 0 : got != NULL) {
    printf("  expected a failure of '%s', got '%s': %s\n", name ? name : "none", got ? got : "none", tw_status_message(s));
    ++failures;
  }
  tw_status_release(s);
}

/* For failures at adding, differentiation, planning and running. */
static void AFailureKnowsItsOperation(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  const int64_t any[] = {-1, -1};
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "part");
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, any, 2), n = tw_scope_placeholder(s, "n", TW_FLOAT, NULL, 0);
  const tw_output y = tw_scope_op2(s, "MatMul", x, x), i = tw_scope_op2(s, "ArgMax", y, tw_scope_scalar(s, TW_INT32, 0));
  tw_op* op = tw_scope_begin(s, "Range", "steps");
  tw_op_add_input(op, tw_scope_scalar(s, TW_FLOAT, 0));
  tw_op_add_input(op, n);
  tw_op_add_input(op, tw_scope_scalar(s, TW_FLOAT, 1));
  const tw_output steps = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));

  s = tw_scope_create(graph, "part");
  tw_scope_op2(s, "MatMul", x, i);
  expect_operation(tw_scope_finish(s), "part/MatMul_1");
  const int64_t dims[] = {2, 3};
  const float values[6] = {0};
  tw_tensor *t = floats(dims, 2, values), *out = NULL;
  tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  expect_operation(tw_session_run(session, &what, &t, NULL, &out), "part/MatMul");
  what.n_feeds = 0;
  expect_operation(tw_session_run(session, &what, NULL, NULL, &out), "part/x");
  what.n_feeds = 1;
  what.feeds = &i;
  expect_operation(tw_session_run(session, &what, &t, NULL, &out), NULL);
  tw_gradient g;
  expect_operation(tw_gradients_add(graph, &steps, NULL, 1, &n, 1, &g), "part/steps");
  tw_tensor_release(t);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  CHECK(tw_status_operation(NULL) == NULL);
}

static void EveryCodeHasItsName(void) {
  CHECK(strcmp(tw_status_code_name(TW_OK), "OK") == 0);
  CHECK(strcmp(tw_status_code_name(TW_INVALID_ARGUMENT), "INVALID_ARGUMENT") == 0);
  CHECK(strcmp(tw_status_code_name(TW_UNAUTHENTICATED), "UNAUTHENTICATED") == 0);
  CHECK(strcmp(tw_status_code_name(17), "UNKNOWN") == 0);
}

static void TheVersionAgreesWithTheHeaders(void) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH);
  CHECK(strcmp(tw_version_string(), text) == 0);
  CHECK(tw_version_number() == TW_VERSION_MAJOR * 1000000 + TW_VERSION_MINOR * 1000 + TW_VERSION_PATCH);
  CHECK(tw_version_plugin_epoch() > 0);
}

static void ABufferKeepsBytesAndAddsAZero(void) {
  tw_buffer* b = NULL;
  OK(tw_buffer_create("a\0b", 3, &b));
  CHECK(tw_buffer_bytes(b) == 3 && memcmp(tw_buffer_data(b), "a\0b", 4) == 0);
  tw_buffer_retain(b);
  tw_buffer_release(b);
  CHECK(tw_buffer_bytes(b) == 3);
  tw_buffer_release(b);
  OK(tw_buffer_create(NULL, 0, &b));
  CHECK(tw_buffer_bytes(b) == 0 && *tw_buffer_data(b) == 0);
  tw_buffer_release(b);
  FAILS(tw_buffer_create(NULL, 1, &b), TW_INVALID_ARGUMENT, "data is NULL");
}

MAIN(TEST(ASuccessIsNull), TEST(AStatusKeepsCodeAndMessage), TEST(AnUnknownCodeBecomesUnknown), TEST(AMessageIsOneLineOfUtf8),
     TEST(AFailureKnowsItsOperation), TEST(EveryCodeHasItsName), TEST(TheVersionAgreesWithTheHeaders), TEST(ABufferKeepsBytesAndAddsAZero))
