/* Tensors: creation, inspection, strings, text. */
#include "check.h"

static void ANewTensorIsZero(void) {
  const int64_t dims[] = {2, 3};
  tw_tensor* t = NULL;
  OK(tw_tensor_create(TW_INT32, dims, 2, &t));
  CHECK(tw_tensor_dtype(t) == TW_INT32 && tw_tensor_rank(t) == 2 && tw_tensor_count(t) == 6 && tw_tensor_bytes(t) == 24);
  CHECK(tw_tensor_dim(t, 0) == 2 && tw_tensor_dim(t, 1) == 3 && tw_tensor_dim(t, 2) == -1);
  CHECK(tw_tensor_dims(t)[1] == 3);
  for (int i = 0; i < 6; ++i) CHECK(((const int32_t*)tw_tensor_data(t))[i] == 0);
  tw_tensor_release(t);
}

static void ACopyNeedsExactlyItsBytes(void) {
  const int64_t dims[] = {2};
  const float values[] = {1, 2};
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_FLOAT, dims, 1, values, 8, &t));
  CHECK(memcmp(tw_tensor_data(t), values, 8) == 0);
  tw_tensor_release(t);
  t = NULL;
  FAILS(tw_tensor_create_copy(TW_FLOAT, dims, 1, values, 7, &t), TW_INVALID_ARGUMENT, "float [2] has 8 bytes, but 7 were given");
  FAILS(tw_tensor_create_copy(TW_FLOAT, dims, 1, NULL, 8, &t), TW_INVALID_ARGUMENT, "data is NULL");
  FAILS(tw_tensor_create_copy(TW_STRING, dims, 1, values, 32, &t), TW_INVALID_ARGUMENT, "tw_tensor_set_string");
  CHECK(t == NULL);
}

static void ImpossibleSizesAreRefused(void) {
  const int64_t negative[] = {-1}, huge[] = {INT64_MAX, 4}, large[] = {INT64_MAX / 4};
  tw_tensor* t = NULL;
  FAILS(tw_tensor_create(TW_FLOAT, negative, 1, &t), TW_INVALID_ARGUMENT, "-1");
  FAILS(tw_tensor_create(TW_FLOAT, huge, 2, &t), TW_INVALID_ARGUMENT, "");
  FAILS(tw_tensor_create(TW_FLOAT, large, 1, &t), TW_RESOURCE_EXHAUSTED, "");
  FAILS(tw_tensor_create(77, negative, 0, &t), TW_INVALID_ARGUMENT, "77");
  FAILS(tw_tensor_create(TW_RESOURCE, NULL, 0, &t), TW_INVALID_ARGUMENT, "resource");
  FAILS(tw_tensor_create(TW_FLOAT + TW_REF, NULL, 0, &t), TW_INVALID_ARGUMENT, "float_ref");
  FAILS(tw_tensor_create(TW_FLOAT, NULL, 1, &t), TW_INVALID_ARGUMENT, "dims are NULL");
  FAILS(tw_tensor_create(TW_FLOAT, negative, 255, &t), TW_INVALID_ARGUMENT, "255");
  CHECK(t == NULL);
}

static void ATensorMayBeEmpty(void) {
  const int64_t dims[] = {0, 5};
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_DOUBLE, dims, 2, NULL, 0, &t));
  CHECK(tw_tensor_count(t) == 0 && tw_tensor_bytes(t) == 0 && tw_tensor_rank(t) == 2);
  tw_tensor_release(t);
}

static int released;
static void count_release(void* user) { released += *(int*)user; }

static void LentMemoryComesBackOnce(void) {
  static float memory[4] = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  int one = 1;
  tw_tensor *t = NULL, *r = NULL;
  released = 0;
  OK(tw_tensor_create_from(TW_FLOAT, dims, 1, memory, sizeof memory, count_release, &one, &t));
  CHECK(tw_tensor_data(t) == memory);
  const int64_t square[] = {2, 2};
  OK(tw_tensor_reshape(t, square, 2, &r));
  tw_tensor_release(t);
  CHECK(released == 0 && tw_tensor_data(r) == memory);
  tw_tensor_release(r);
  CHECK(released == 1);
}

/* A variable that shared the memory and is then updated gets new memory. */
static void MemoryThatMustStayIsNeverWritten(void) {
  static const float values[] = {1, 2};
  const int64_t dims[] = {2};
  int one = 1;
  tw_tensor* t = NULL;
  released = 0;
  OK(tw_tensor_create_from_const(TW_FLOAT, dims, 1, values, sizeof values, count_release, &one, &t));
  CHECK(tw_tensor_data(t) == values && tw_tensor_mutable_data(t) == NULL && tw_tensor_shared(t) == 0);
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "const_memory");
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1), w = tw_variable_create(s, "w", x);
  tw_op* op = tw_scope_begin(s, "AssignAddVariableOp", "add");
  tw_op_add_input(op, w);
  tw_op_add_input(op, tw_scope_op1(s, "OnesLike", tw_variable_read(s, w)));
  const tw_operation *add = tw_scope_end_operation(s, op), *init = tw_variable_initializer(s, "init");
  op = tw_scope_begin(s, "DestroyResourceOp", "destroy");
  tw_op_add_input(op, w);
  const tw_operation* destroy = tw_scope_end_operation(s, op);
  const tw_output now = tw_variable_read(s, w);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  const tw_signature start = {.size = sizeof start, .feeds = &x, .n_feeds = 1, .targets = &init, .n_targets = 1};
  OK(tw_session_run(session, &start, &t, NULL, NULL));
  CHECK(tw_tensor_shared(t) == 1);
  tw_tensor_release(t); /* now the variable holds the only reference */
  run(session, add);
  CHECK(released == 1);
  t = fetch(session, 0, NULL, now);
  CHECK(t && ((const float*)tw_tensor_data(t))[1] == 3 && values[1] == 2);
  tw_tensor_release(t);
  run(session, destroy);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void LentMemoryComesBackAfterAFailureToo(void) {
  static float memory[4];
  const int64_t dims[] = {5};
  int one = 1;
  tw_tensor* t = NULL;
  released = 0;
  FAILS(tw_tensor_create_from(TW_FLOAT, dims, 1, memory, sizeof memory, count_release, &one, &t), TW_INVALID_ARGUMENT, "20 bytes");
  CHECK(released == 1);
  const int64_t three[] = {3};
  FAILS(tw_tensor_create_from(TW_FLOAT, three, 1, (char*)memory + 1, 12, count_release, &one, &t), TW_INVALID_ARGUMENT, "aligned");
  CHECK(released == 2);
}

static void ReshapeKeepsTheNumberOfElements(void) {
  const int64_t dims[] = {6}, good[] = {2, 3}, bad[] = {2, 2};
  const float values[] = {1, 2, 3, 4, 5, 6};
  tw_tensor *t = floats(dims, 1, values), *r = NULL;
  OK(tw_tensor_reshape(t, good, 2, &r));
  CHECK(tw_tensor_rank(r) == 2 && tw_tensor_data(r) == tw_tensor_data(t));
  tw_tensor_release(r);
  FAILS(tw_tensor_reshape(t, bad, 2, &r), TW_INVALID_ARGUMENT, "[2, 2]");
  tw_tensor_release(t);
}

static void SharedTensorsAreNotWritable(void) {
  tw_tensor* t = scalar(1);
  CHECK(tw_tensor_mutable_data(t) != NULL);
  tw_tensor_retain(t);
  CHECK(tw_tensor_mutable_data(t) == NULL);
  tw_tensor_release(t);
  CHECK(tw_tensor_mutable_data(t) != NULL);
  tw_tensor_release(t);
}

static void StringsAreCopiedIn(void) {
  const int64_t dims[] = {2};
  tw_tensor* t = NULL;
  const char* data = NULL;
  uint64_t bytes = 99;
  OK(tw_tensor_create(TW_STRING, dims, 1, &t));
  OK(tw_tensor_get_string(t, 0, &data, &bytes));
  CHECK(bytes == 0);
  OK(tw_tensor_set_string(t, 1, "a\0b", 3));
  OK(tw_tensor_set_string(t, 1, "longer than before", 18));
  OK(tw_tensor_get_string(t, 1, &data, &bytes));
  CHECK(bytes == 18 && memcmp(data, "longer than before", 18) == 0);
  FAILS(tw_tensor_set_string(t, 2, "x", 1), TW_OUT_OF_RANGE, "string 2");
  FAILS(tw_tensor_get_string(t, 2, &data, &bytes), TW_OUT_OF_RANGE, "string 2");
  CHECK(tw_tensor_mutable_data(t) == NULL);
  tw_tensor_retain(t);
  FAILS(tw_tensor_set_string(t, 0, "x", 1), TW_FAILED_PRECONDITION, "shared");
  tw_tensor_release(t);
  tw_tensor_release(t);
  t = scalar(1);
  FAILS(tw_tensor_get_string(t, 0, &data, &bytes), TW_INVALID_ARGUMENT, "float");
  tw_tensor_release(t);
}

static void check_text(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes, uint64_t most,
                       const char* want) {
  tw_tensor* t = NULL;
  tw_buffer* text = NULL;
  OK(tw_tensor_create_copy(dtype, dims, rank, data, bytes, &t));
  OK(tw_tensor_text(t, most, &text));
  if (strcmp(tw_buffer_data(text), want) != 0) printf("  got %s\n", tw_buffer_data(text));
  CHECK(strcmp(tw_buffer_data(text), want) == 0);
  tw_buffer_release(text);
  tw_tensor_release(t);
}

static void TextShowsEveryType(void) {
  const int64_t d22[] = {2, 2}, d121[] = {1, 2, 1}, d2[] = {2}, d1[] = {1}, d0[] = {0, 3}, d3[] = {3};
  const float f[] = {1, 0.1f, -2.5e-8f, INFINITY};
  check_text(TW_FLOAT, d22, 2, f, 16, 0, "[[1, 0.1], [-2.5e-08, inf]]");
  check_text(TW_FLOAT, d22, 2, f, 16, 3, "[[1, 0.1], [-2.5e-08, ...");
  check_text(TW_FLOAT, d121, 3, f, 8, 0, "[[[1], [0.1]]]");
  check_text(TW_FLOAT, NULL, 0, f, 4, 0, "1");
  check_text(TW_FLOAT, d0, 2, NULL, 0, 0, "[]");
  const uint16_t half[] = {0x3c00, 0xc000, 0x0001}, bfloat[] = {0x3f80, 0x4049, 0xff80};
  check_text(TW_HALF, d3, 1, half, 6, 0, "[1, -2, 5.9604645e-08]");
  check_text(TW_BFLOAT16, d3, 1, bfloat, 6, 0, "[1, 3.140625, -inf]");
  const uint8_t bytes[] = {0, 1, 255};
  check_text(TW_BOOL, d2, 1, bytes, 2, 0, "[false, true]");
  check_text(TW_UINT8, d3, 1, bytes, 3, 0, "[0, 1, 255]");
  check_text(TW_INT8, d3, 1, bytes, 3, 0, "[0, 1, -1]");
  const uint8_t e5m2[] = {0x3c, 0x7c, 0xbe}, e4m3[] = {0x38, 0x7f, 0x01};
  check_text(TW_FLOAT8_E5M2, d3, 1, e5m2, 3, 0, "[1, inf, -1.5]");
  check_text(TW_FLOAT8_E4M3FN, d3, 1, e4m3, 3, 0, "[1, nan, 0.001953125]");
  const int64_t large[] = {INT64_MIN};
  check_text(TW_INT64, d1, 1, large, 8, 0, "[-9223372036854775808]");
  const double z[] = {1, -2};
  check_text(TW_COMPLEX128, d1, 1, z, 16, 0, "[1-2j]");
}

static void TextQuotesStrings(void) {
  tw_tensor* t = NULL;
  tw_buffer* text = NULL;
  OK(tw_tensor_create_string("a \"b\"\n\x01\xc3\xa9\xff\xc3", 11, &t));
  OK(tw_tensor_text(t, 0, &text));
  CHECK(strcmp(tw_buffer_data(text), "\"a \\\"b\\\"\\n\\x01\xc3\xa9\\xff\\xc3\"") == 0);
  tw_buffer_release(text);
  tw_tensor_release(t);
}

static void TypesHaveNamesAndSizes(void) {
  CHECK(strcmp(tw_dtype_name(TW_FLOAT), "float") == 0 && strcmp(tw_dtype_name(TW_FLOAT + TW_REF), "float_ref") == 0);
  CHECK(tw_dtype_name(0) == NULL && tw_dtype_name(77) == NULL);
  CHECK(tw_dtype_find("bfloat16") == TW_BFLOAT16 && tw_dtype_find("int32_ref") == TW_INT32 + TW_REF && tw_dtype_find("no") == 0);
  CHECK(tw_dtype_find(NULL) == 0);
  CHECK(tw_dtype_bytes(TW_COMPLEX128) == 16 && tw_dtype_bytes(TW_INT4) == 1 && tw_dtype_bytes(99) == 0);
}

MAIN(TEST(ANewTensorIsZero), TEST(ACopyNeedsExactlyItsBytes), TEST(ImpossibleSizesAreRefused), TEST(ATensorMayBeEmpty),
     TEST(MemoryThatMustStayIsNeverWritten), TEST(LentMemoryComesBackOnce), TEST(LentMemoryComesBackAfterAFailureToo),
     TEST(ReshapeKeepsTheNumberOfElements), TEST(SharedTensorsAreNotWritable), TEST(StringsAreCopiedIn), TEST(TextShowsEveryType),
     TEST(TextQuotesStrings), TEST(TypesHaveNamesAndSizes))
