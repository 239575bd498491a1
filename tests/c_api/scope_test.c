/* Scopes: the operations they add, and their failures. */
#include "check.h"

static void AScopeReadsLikeTheFormula(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "deep/down");
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output y = tw_scope_name(s, "y", tw_scope_op2(s, "Sub", tw_scope_op2(s, "Mul", x, x), tw_scope_scalar(s, TW_FLOAT, 0.5)));
  CHECK(strcmp(tw_scope_prefix(s), "deep/down/") == 0 && tw_scope_graph(s) == graph && tw_scope_code(s) == TW_OK);
  OK(tw_scope_finish(s));
  const tw_operation* operation = NULL;
  OK(tw_graph_find(graph, "deep/down/y", &operation));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_tensor* three = scalar(3);
  CHECK(as_float(fetch(session, x, three, y)) == 8.5f);
  tw_tensor_release(three);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void AScopeKeepsItsFirstFailureAndDoesNothingMore(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_scalar(s, TW_FLOAT, 1);
  const uint32_t before = tw_graph_count(graph);
  CHECK(tw_scope_op2(s, "Add", x, tw_scope_scalar(s, TW_INT32, 1)) == 0);
  CHECK(tw_scope_code(s) == TW_INVALID_ARGUMENT && tw_scope_graph(s) == NULL);
  CHECK(tw_scope_op1(s, "Neg", x) == 0 && tw_scope_begin(s, "Neg", NULL) == NULL && tw_scope_end(s, NULL) == 0);
  CHECK(tw_scope_group(s, "g", NULL, 0) == NULL && tw_scope_ints(s, NULL, 0) == 0);
  tw_scope_fail(s, tw_status_create(TW_ABORTED, "later"));
  CHECK(tw_graph_count(graph) == before + 1);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "Add 'Add'");
  tw_graph_destroy(graph);
}

static void AFailureFromOutsideIsKept(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_scope_fail(s, NULL);
  CHECK(tw_scope_code(s) == TW_OK);
  tw_scope_fail(s, tw_status_create(TW_ABORTED, "mine"));
  FAILS(tw_scope_finish(s), TW_ABORTED, "mine");
  FAILS(tw_scope_finish(tw_scope_create(NULL, NULL)), TW_INVALID_ARGUMENT, "graph is NULL");
  FAILS(tw_scope_finish(NULL), TW_RESOURCE_EXHAUSTED, "scope");
  tw_graph_destroy(graph);
}

static void GivenNamesMustBeFree(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  FAILS(tw_scope_finish(s), TW_ALREADY_EXISTS, "Placeholder 'x'");
  s = tw_scope_create(graph, NULL);
  tw_scope_op1(s, "Neg", tw_scope_scalar(s, TW_FLOAT, 1)); /* generated names are always free */
  tw_scope_op1(s, "Neg", tw_scope_scalar(s, TW_FLOAT, 1));
  OK(tw_scope_finish(s));
  tw_graph_destroy(graph);
}

static double scalar_as_double(uint32_t dtype, double value) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  double result = NAN;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output constant = tw_scope_scalar(s, dtype, value);
  tw_op* cast = tw_scope_begin(s, "Cast", NULL);
  tw_op_add_input(cast, constant);
  tw_op_set_type(cast, "DstT", TW_DOUBLE);
  const tw_output y = tw_scope_end(s, cast);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_tensor* t = fetch(session, 0, NULL, y);
  if (t) result = *(const double*)tw_tensor_data(t);
  tw_tensor_release(t);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return result;
}

static void ScalarsAreRoundedToTheirType(void) {
  CHECK(scalar_as_double(TW_FLOAT, 0.1) == (double)0.1f);
  CHECK(scalar_as_double(TW_DOUBLE, 0.1) == 0.1);
  CHECK(scalar_as_double(TW_HALF, 0.1) == 0.0999755859375);
  CHECK(scalar_as_double(TW_HALF, 65504) == 65504 && scalar_as_double(TW_HALF, 65519) == 65504);
  CHECK(isinf(scalar_as_double(TW_HALF, 65520)));
  CHECK(scalar_as_double(TW_HALF, 5.960464477539063e-08) == 5.960464477539063e-08);
  CHECK(scalar_as_double(TW_HALF, 6.103515625e-05) == 6.103515625e-05);
  CHECK(scalar_as_double(TW_HALF, 0) == 0 && signbit(scalar_as_double(TW_HALF, -0.0)));
  CHECK(scalar_as_double(TW_HALF, 1e-8) == 0 && scalar_as_double(TW_HALF, 1) == 1);
  CHECK(scalar_as_double(TW_HALF, 2047.5) == 2048 && scalar_as_double(TW_HALF, -1.0009765625) == -1.0009765625);
  CHECK(scalar_as_double(TW_BFLOAT16, 0.1) == 0.10009765625);
  CHECK(isnan(scalar_as_double(TW_BFLOAT16, NAN)) && isnan(scalar_as_double(TW_HALF, NAN)));
  CHECK(scalar_as_double(TW_INT64, -3) == -3 && scalar_as_double(TW_BOOL, 5) == 1);
}

static void ScalarsThatDoNotFitAreRefused(void) {
  const struct {
    uint32_t dtype;
    double value;
  } cases[] = {{TW_INT8, 128},  {TW_INT8, -129}, {TW_UINT8, -1}, {TW_INT32, 2147483648.0}, {TW_INT64, 9223372036854775808.0},
               {TW_INT32, NAN}, {TW_STRING, 1},  {99, 1}};
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    tw_scope* s = tw_scope_create(graph, NULL);
    CHECK(tw_scope_scalar(s, cases[i].dtype, cases[i].value) == 0);
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "");
  }
  CHECK(tw_graph_count(graph) == 0);
  tw_graph_destroy(graph);
}

static void OutputsOfOpsWithSeveralAreReached(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {2};
  const float values[] = {5, 7};
  tw_tensor* t = floats(dims, 1, values);
  tw_op* unpack = tw_scope_begin(s, "Unpack", NULL);
  tw_op_add_input(unpack, tw_scope_constant(s, t));
  tw_op_set_int(unpack, "num", 2);
  const tw_output second = tw_scope_output(s, tw_scope_end(s, unpack), 1);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  CHECK(as_float(fetch(session, 0, NULL, second)) == 7);
  s = tw_scope_create(graph, NULL);
  CHECK(tw_scope_output(s, second, 2) == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "has 2 outputs");
  tw_tensor_release(t);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static const char* device_of(tw_graph* graph, tw_output value) {
  const tw_operation* op = NULL;
  OK(tw_graph_producer(graph, value, &op, NULL));
  return tw_operation_device(op);
}

static void AScopeGivesItsDeviceToWhatNamesNone(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  CHECK(!*tw_scope_device(s));
  tw_scope_set_device(s, "/job:ps/task:1");
  CHECK(!strcmp(tw_scope_device(s), "/job:ps/task:1"));
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), y = tw_scope_op1(s, "Neg", x);
  const tw_output v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 1));
  CHECK(!strcmp(device_of(graph, x), "/job:ps/task:1") && !strcmp(device_of(graph, y), "/job:ps/task:1"));
  CHECK(!strcmp(device_of(graph, v), "/job:ps/task:1"));
  tw_scope_set_device(s, "CPU:0");
  tw_op* own = tw_scope_begin(s, "Neg", NULL);
  tw_op_add_input(own, x);
  tw_op_set_device(own, "/job:worker");
  CHECK(!strcmp(device_of(graph, tw_scope_end(s, own)), "/job:worker"));
  /* An operation on state is placed on the state's device. */
  CHECK(!strcmp(device_of(graph, tw_variable_read(s, v)), "/job:ps/task:1"));
  CHECK(!*tw_operation_device(tw_scope_group(s, NULL, NULL, 0)));
  tw_scope_set_device(s, "/job:ps/task:2/device:CPU:0"); /* a group has no kernel and so no device, but it has a task */
  CHECK(!strcmp(tw_operation_device(tw_scope_group(s, NULL, NULL, 0)), "/job:ps/task:2"));
  tw_scope_set_device(s, NULL);
  CHECK(!*device_of(graph, tw_scope_op1(s, "Neg", x)));
  tw_scope_set_device(s, "CPU:one");
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "CPU:one");
  tw_graph_destroy(graph);
}

MAIN(TEST(AScopeGivesItsDeviceToWhatNamesNone), TEST(AScopeReadsLikeTheFormula), TEST(AScopeKeepsItsFirstFailureAndDoesNothingMore),
     TEST(AFailureFromOutsideIsKept), TEST(GivenNamesMustBeFree), TEST(ScalarsAreRoundedToTheirType), TEST(ScalarsThatDoNotFitAreRefused),
     TEST(OutputsOfOpsWithSeveralAreReached))
