/* Graphs and operations: adding, inspection, import and export, and refusals of invalid input. */
#include "check.h"

static tw_graph* new_graph(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  return graph;
}

/* Adds a placeholder through the operation builder. */
static tw_output placeholder(tw_graph* graph, const char* name, uint32_t dtype, const int64_t* dims, int32_t rank) {
  const tw_operation* operation = NULL;
  tw_op* op = tw_op_create(graph, "Placeholder", name);
  tw_op_set_type(op, "dtype", dtype);
  tw_op_set_shape(op, "shape", dims, rank);
  OK(tw_op_finish(op, &operation));
  return tw_operation_output(operation, 0);
}

static void AnOperationTellsAboutItself(void) {
  tw_graph* graph = new_graph();
  const int64_t da[] = {-1, 3}, db[] = {3, 4};
  const tw_output a = placeholder(graph, "a", TW_FLOAT, da, 2), b = placeholder(graph, "b", TW_FLOAT, db, 2);
  const tw_operation* mm = NULL;
  tw_op* op = tw_op_create(graph, "MatMul", "head/mm");
  const tw_output inputs[] = {a, b};
  tw_op_add_inputs(op, inputs, 2);
  tw_op_set_bool(op, "transpose_b", 0);
  tw_op_set_device(op, "CPU:0");
  tw_op_add_control(op, tw_graph_operation(graph, 0));
  OK(tw_op_finish(op, &mm));
  CHECK(strcmp(tw_operation_name(mm), "head/mm") == 0 && strcmp(tw_operation_type(mm), "MatMul") == 0);
  CHECK(strcmp(tw_operation_device(mm), "CPU:0") == 0);
  CHECK(tw_operation_input_count(mm) == 2 && tw_operation_input(mm, 1) == b && tw_operation_input(mm, 2) == 0);
  CHECK(tw_operation_output_count(mm) == 1 && tw_operation_output(mm, 1) == 0);
  CHECK(tw_operation_control_count(mm) == 1 && tw_operation_control(mm, 0) == tw_graph_operation(graph, 0));
  CHECK(tw_operation_control(mm, 1) == NULL);

  uint32_t dtype = 0, index = 9;
  tw_shape shape;
  const tw_operation* producer = NULL;
  OK(tw_graph_describe(graph, tw_operation_output(mm, 0), &dtype, &shape));
  CHECK(dtype == TW_FLOAT && shape.rank == 2 && shape.dims[0] < 0 && shape.dims[1] == 4);
  OK(tw_graph_producer(graph, tw_operation_output(mm, 0), &producer, &index));
  CHECK(producer == mm && index == 0);
  tw_graph_destroy(graph);
}

static void AttributesOfEveryKindAreKept(void) {
  tw_graph* graph = new_graph();
  const int64_t dims[] = {2, -1};
  const tw_output x = placeholder(graph, "x", TW_FLOAT, dims, 2);
  const tw_operation* operation = tw_graph_operation(graph, 0);
  uint32_t kind = 0, is_list = 9, count = 0;
  const void* values = NULL;
  OK(tw_operation_attr(operation, "dtype", &kind, &is_list, &count, &values));
  CHECK(kind == TW_ATTR_TYPE && is_list == 0 && count == 1 && *(const uint32_t*)values == TW_FLOAT);
  OK(tw_operation_attr(operation, "shape", &kind, NULL, NULL, &values));
  CHECK(kind == TW_ATTR_SHAPE && ((const tw_shape*)values)->rank == 2 && ((const tw_shape*)values)->dims[0] == 2);
  FAILS(tw_operation_attr(operation, "colour", NULL, NULL, NULL, NULL), TW_NOT_FOUND, "Placeholder 'x' has no attribute 'colour'");

  const int64_t d4[] = {1, 8, 8, 3}, ones[] = {1, 2, 2, 1};
  tw_op* pool = tw_op_create(graph, "MaxPool", NULL);
  tw_op_add_input(pool, placeholder(graph, "image", TW_FLOAT, d4, 4));
  tw_op_set_ints(pool, "ksize", ones, 4);
  tw_op_set_ints(pool, "strides", ones, 4);
  tw_op_set_string(pool, "padding", "VALID", 5);
  OK(tw_op_finish(pool, &operation));
  OK(tw_operation_attr(operation, "ksize", &kind, &is_list, &count, &values));
  CHECK(kind == TW_ATTR_INT && is_list == 1 && count == 4 && ((const int64_t*)values)[1] == 2);
  OK(tw_operation_attr(operation, "padding", &kind, NULL, &count, &values));
  CHECK(kind == TW_ATTR_STRING && ((const tw_string*)values)->size == 5);
  OK(tw_operation_attr(operation, "data_format", NULL, NULL, NULL, &values));
  CHECK(memcmp(((const tw_string*)values)->data, "NHWC", 4) == 0);
  tw_buffer* text = NULL;
  OK(tw_operation_attr_text(operation, "ksize", &text));
  CHECK(strcmp(tw_buffer_data(text), "[1, 2, 2, 1]") == 0);
  tw_buffer_release(text);
  uint32_t n = 0;
  while (tw_operation_attr_name(operation, n)) ++n;
  CHECK(n == tw_operation_attr_count(operation) && n >= 4);

  tw_tensor* value = scalar(2.5f);
  tw_op* constant = tw_op_create(graph, "Const", "c");
  tw_op_set_type(constant, "dtype", TW_FLOAT);
  tw_op_set_tensor(constant, "value", value);
  OK(tw_op_finish(constant, &operation));
  tw_tensor_release(value);
  OK(tw_operation_attr(operation, "value", &kind, NULL, NULL, &values));
  CHECK(kind == TW_ATTR_TENSOR && *(const float*)tw_tensor_data(*(tw_tensor* const*)values) == 2.5f);

  tw_op* leaky = tw_op_create(graph, "RandomUniform", NULL);
  tw_op_add_input(leaky, x);
  tw_op_set_type(leaky, "dtype", TW_FLOAT);
  FAILS(tw_op_finish(leaky, NULL), TW_INVALID_ARGUMENT, "RandomUniform");
  tw_graph_destroy(graph);
}

/* Each setter sets its own kind, which the schema of Placeholder's `dtype` refuses. */
static void SettersOfTheWrongKindAreRefused(void) {
  tw_graph* graph = new_graph();
  tw_tensor* one = scalar(1);
  const int64_t ints[] = {1, 2};
  const double reals[] = {1, 2};
  const uint8_t bools[] = {0, 1};
  const uint32_t types[] = {TW_FLOAT, TW_INT8};
  const tw_string texts[] = {{"a", 1}, {"bc", 2}};
  const tw_shape shapes[] = {{ints, 2, 0}, {NULL, -1, 0}};
  for (int i = 0; i < 15; ++i) {
    tw_op* op = tw_op_create(graph, "Placeholder", "p");
    switch (i) {
      case 0: tw_op_set_int(op, "dtype", 1); break;
      case 1: tw_op_set_float(op, "dtype", 1); break;
      case 2: tw_op_set_bool(op, "dtype", 1); break;
      case 3: tw_op_set_string(op, "dtype", "float", 5); break;
      case 4: tw_op_set_shape(op, "dtype", ints, 2); break;
      case 5: tw_op_set_tensor(op, "dtype", one); break;
      case 6: tw_op_set_func(op, "dtype", "f"); break;
      case 7: tw_op_set_ints(op, "dtype", ints, 2); break;
      case 8: tw_op_set_floats(op, "dtype", reals, 2); break;
      case 9: tw_op_set_bools(op, "dtype", bools, 2); break;
      case 10: tw_op_set_strings(op, "dtype", texts, 2); break;
      case 11: tw_op_set_types(op, "dtype", types, 2); break;
      case 12: tw_op_set_shapes(op, "dtype", shapes, 2); break;
      case 13: tw_op_set_tensors(op, "dtype", &one, 1); break;
      default: tw_op_set_funcs(op, "dtype", texts, 2); break;
    }
    FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "'dtype'");
  }
  const tw_string names[] = {{"f", 1}, {"g\xff", 2}};
  tw_op* calls[] = {tw_op_create(graph, "PartitionedCall", "p"), tw_op_create(graph, "Case", "p")};
  tw_op_set_func(calls[0], "f", "\xfe\xff");
  tw_op_set_funcs(calls[1], "branches", names, 2);
  FAILS(tw_op_finish(calls[0], NULL), TW_INVALID_ARGUMENT, "'\\xfe\\xff', is not UTF-8");
  FAILS(tw_op_finish(calls[1], NULL), TW_INVALID_ARGUMENT, "'g\\xff', is not UTF-8");
  CHECK(tw_graph_count(graph) == 0);
  tw_tensor_release(one);
  tw_graph_destroy(graph);
}

static void ColocationSurvivesExportAndRuns(void) {
  tw_graph *graph = new_graph(), *copy = new_graph();
  tw_buffer* bytes = NULL;
  tw_session* session = NULL;
  tw_tensor* two = scalar(2);
  tw_output x = placeholder(graph, "x", TW_FLOAT, NULL, 0), y = 0;
  const tw_operation *a = NULL, *b = NULL;
  tw_op* op = tw_op_create(graph, "Neg", "a");
  tw_op_add_input(op, x);
  tw_op_set_device(op, "/device:CPU:0");
  OK(tw_op_finish(op, &a));
  op = tw_op_create(graph, "Square", "b");
  tw_op_add_input(op, tw_operation_output(a, 0));
  tw_op_colocate_with(op, a);
  OK(tw_op_finish(op, &b));
  OK(tw_graph_export(graph, &bytes));
  CHECK(tw_buffer_bytes(bytes) > 0);
  int found = 0;
  for (uint64_t i = 0; i + 5 < tw_buffer_bytes(bytes); ++i) found += memcmp(tw_buffer_data(bytes) + i, "loc:@a", 6) == 0;
  CHECK(found == 1);
  OK(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  OK(tw_graph_find_output(copy, "b", &y));
  OK(tw_graph_find_output(copy, "x", &x));
  OK(tw_session_create(copy, NULL, 0, &session));
  CHECK(as_float(fetch(session, x, two, y)) == 4);
  tw_tensor_release(two);
  tw_buffer_release(bytes);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_graph_destroy(copy);
}

/* finish reports the first error, whatever calls follow. */
static void ABuilderKeepsItsFirstFailure(void) {
  tw_graph *graph = new_graph(), *other = new_graph();
  const tw_output foreign = placeholder(other, "far", TW_FLOAT, NULL, 0);
  tw_op* op = tw_op_create(graph, "Neg", "n");
  tw_op_add_input(op, foreign);
  tw_op_set_type(op, "T", 99);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "Neg 'n': input 0 is a value of another graph");
  op = tw_op_create(graph, "Neg", "n");
  tw_op_add_input(op, 0);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "input 0 is 0");
  op = tw_op_create(graph, "Neg", "n");
  tw_op_set_type(op, "T", 99);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "attribute 'T': 99 is no element type");
  op = tw_op_create(graph, "NoOp", "n");
  tw_op_add_control(op, tw_graph_operation(other, 0));
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "belongs to another graph");
  op = tw_op_create(graph, "NoOp", "n");
  tw_op_set_device(op, "CPU:minus one");
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "minus one");
  op = tw_op_create(graph, "NoOp", "n");
  tw_op_set_ints(op, "x", NULL, 3);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "the list is NULL but has 3 values");
  FAILS(tw_op_finish(tw_op_create(graph, "Nonsense", "n"), NULL), TW_NOT_FOUND, "Nonsense");
  FAILS(tw_op_finish(tw_op_create(graph, "MatMull", "n"), NULL), TW_NOT_FOUND, "or check the spelling; did you mean 'MatMul'?");
  FAILS(tw_op_finish(tw_op_create(graph, NULL, "n"), NULL), TW_INVALID_ARGUMENT, "type is NULL");
  FAILS(tw_op_finish(tw_op_create(NULL, "NoOp", "n"), NULL), TW_INVALID_ARGUMENT, "graph is NULL");
  CHECK(tw_graph_count(graph) == 0);
  tw_op_destroy(tw_op_create(graph, "NoOp", "never finished"));
  tw_graph_destroy(graph);
  tw_graph_destroy(other);
}

static void WrongOperationsAreRefusedAndLeaveTheGraphAlone(void) {
  tw_graph* graph = new_graph();
  const int64_t da[] = {32, 128}, db[] = {64, 10};
  const tw_output a = placeholder(graph, "a", TW_FLOAT, da, 2), b = placeholder(graph, "b", TW_FLOAT, db, 2);
  const tw_output i = placeholder(graph, "i", TW_INT32, NULL, 0);
  tw_op* op = tw_op_create(graph, "MatMul", "head/mm");
  tw_op_add_input(op, a);
  tw_op_add_input(op, b);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "MatMul 'head/mm': ");
  op = tw_op_create(graph, "AddV2", "sum");
  tw_op_add_input(op, a);
  tw_op_add_input(op, i);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "AddV2 'sum': ");
  op = tw_op_create(graph, "Neg", "a");
  tw_op_add_input(op, a);
  FAILS(tw_op_finish(op, NULL), TW_ALREADY_EXISTS, "Neg 'a'");
  op = tw_op_create(graph, "Neg", "not a name");
  tw_op_add_input(op, a);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "not a name");
  op = tw_op_create(graph, "Neg", "two");
  tw_op_add_input(op, a);
  tw_op_add_input(op, a);
  FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, "Neg 'two'");
  CHECK(tw_graph_count(graph) == 3);
  tw_graph_destroy(graph);
}

static void AttributesArriveAsMessages(void) {
  tw_graph* graph = new_graph();
  const tw_output x = placeholder(graph, "x", TW_FLOAT, NULL, -1);
  const tw_operation* cast = NULL;
  tw_op* op = tw_op_create(graph, "Cast", "cast");
  tw_op_add_input(op, x);
  tw_op_set_message(op, "DstT", "\x30\x03", 2);    /* the type int32 */
  tw_op_set_message(op, "_note", "\x12\x02hi", 4); /* the string "hi" */
  OK(tw_op_finish(op, &cast));
  uint32_t dtype = 0;
  OK(tw_graph_describe(graph, tw_operation_output(cast, 0), &dtype, NULL));
  CHECK(dtype == TW_INT32);
  tw_buffer* node = NULL;
  OK(tw_operation_message(cast, &node));
  CHECK(memcmp(tw_buffer_data(node),
               "\x0a\x04"
               "cast\x12\x04"
               "Cast\x1a\x01x",
               15) == 0);
  int notes = 0;
  for (uint64_t i = 0; i + 5 <= tw_buffer_bytes(node); ++i) notes += memcmp(tw_buffer_data(node) + i, "_note", 5) == 0;
  CHECK(notes == 1);
  tw_buffer_release(node);
  const struct {
    const char *attr, *bytes, *message;
    uint64_t n;
  } wrong[] = {{"DstT", "\xff", "attribute 'DstT'", 1},
               {"_note", "\xff", "attribute '_note'", 1},
               {"_class", "\x12\x02hi", "use tw_op_colocate_with", 4},
               {"nothing", "\x30\x03", "has no such attribute", 2}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    op = tw_op_create(graph, "Cast", "bad");
    tw_op_add_input(op, x);
    tw_op_set_type(op, "DstT", TW_INT32);
    tw_op_set_message(op, wrong[i].attr, wrong[i].bytes, wrong[i].n);
    FAILS(tw_op_finish(op, NULL), TW_INVALID_ARGUMENT, wrong[i].message);
  }
  tw_graph_destroy(graph);
}

static void NamesAreFoundOrSuggested(void) {
  tw_graph* graph = new_graph();
  const tw_output x = placeholder(graph, "image", TW_FLOAT, NULL, 0);
  const tw_operation* operation = NULL;
  tw_output found = 0;
  OK(tw_graph_find(graph, "image", &operation));
  CHECK(operation == tw_graph_operation(graph, 0));
  CHECK(tw_graph_has(graph, "image") == 1 && tw_graph_has(graph, "imag") == 0 && tw_graph_has(graph, "image:0") == 0);
  OK(tw_graph_find_output(graph, "image:0", &found));
  CHECK(found == x);
  FAILS(tw_graph_find(graph, "imag", &operation), TW_NOT_FOUND, "no operation 'imag'; did you mean 'image'?");
  FAILS(tw_graph_find_output(graph, "imege:0", &found), TW_NOT_FOUND, "did you mean 'image'?");
  FAILS(tw_graph_find(graph, "quite different", &operation), TW_NOT_FOUND, "no operation 'quite different'");
  FAILS(tw_graph_find_output(graph, "image:1", &found), TW_INVALID_ARGUMENT, "image:1");
  FAILS(tw_graph_find_output(graph, "image:x", &found), TW_INVALID_ARGUMENT, "image:x");
  CHECK(tw_graph_operation(graph, 1) == NULL);
  tw_graph_destroy(graph);
}

/* Adds an operation with these inputs; sets the frame if the op is Enter. */
static const tw_operation* add(tw_graph* graph, const char* name, tw_output a, tw_output b) {
  const tw_operation* operation = NULL;
  tw_op* op = tw_op_create(graph, name, NULL);
  const tw_output inputs[] = {a, b};
  if (strcmp(name, "Merge") == 0) {
    tw_op_add_inputs(op, inputs, 2);
  } else {
    tw_op_add_input(op, a);
    if (b) tw_op_add_input(op, b);
  }
  if (strcmp(name, "Enter") == 0) tw_op_set_string(op, "frame_name", "f", 1);
  if (strcmp(name, "Enter") == 0) tw_op_set_bool(op, "is_constant", b != 0);
  OK(tw_op_finish(op, &operation));
  return operation;
}
static tw_output value(const tw_operation* operation, uint32_t i) { return tw_operation_output(operation, i); }

/* while (x * x > x) x = sqrt(x). */
static void ALoopIsClosedAtItsMerge(void) {
  tw_graph* graph = new_graph();
  tw_session* session = NULL;
  const tw_output x = placeholder(graph, "x", TW_FLOAT, NULL, 0);
  const tw_operation* enter = add(graph, "Enter", x, 0);
  const tw_operation* merge = add(graph, "Merge", value(enter, 0), value(enter, 0));
  const tw_output now = value(merge, 0);
  const tw_operation* more = add(graph, "LoopCond", value(add(graph, "Greater", value(add(graph, "Square", now, 0), 0), now), 0), 0);
  const tw_operation* go = add(graph, "Switch", now, value(more, 0));
  const tw_operation* next =
      add(graph, "NextIteration", value(add(graph, "Floor", value(add(graph, "Sqrt", value(go, 1), 0), 0), 0), 0), 0);
  const tw_operation* out = add(graph, "Exit", value(go, 0), 0);
  CHECK(tw_operation_input(merge, 1) == value(enter, 0));
  FAILS(tw_graph_close_loop(graph, enter, 0, next), TW_INVALID_ARGUMENT, "only a Merge");
  FAILS(tw_graph_close_loop(graph, merge, 2, next), TW_INVALID_ARGUMENT, "there is no input 2");
  FAILS(tw_graph_close_loop(graph, merge, 1, enter), TW_INVALID_ARGUMENT, "give a NextIteration");
  OK(tw_graph_close_loop(graph, merge, 1, next));
  FAILS(tw_graph_close_loop(graph, merge, 1, next), TW_FAILED_PRECONDITION, "is closed with NextIteration");
  FAILS(tw_graph_close_loop(graph, merge, 0, next), TW_FAILED_PRECONDITION, "must come from without");
  CHECK(tw_operation_input(merge, 1) == value(next, 0));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_tensor* many = scalar(300);
  CHECK(as_float(fetch(session, x, many, value(out, 0))) == 1);
  tw_tensor_release(many);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void ExportAndImportGiveTheSameGraph(void) {
  tw_graph *graph = new_graph(), *copy = new_graph();
  tw_buffer *bytes = NULL, *again = NULL;
  tw_scope* s = tw_scope_create(graph, "net");
  const int64_t dims[] = {-1, 2};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  const int32_t axis = 1;
  tw_scope_name(s, "y", tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", x), tw_scope_ints(s, &axis, 1)));
  OK(tw_scope_finish(s));
  OK(tw_graph_export(graph, &bytes));
  OK(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  OK(tw_graph_export(copy, &again));
  CHECK(tw_graph_count(copy) == tw_graph_count(graph));
  CHECK(tw_buffer_bytes(bytes) == tw_buffer_bytes(again) && !memcmp(tw_buffer_data(bytes), tw_buffer_data(again), tw_buffer_bytes(bytes)));
  OK(tw_graph_verify(NULL, tw_buffer_data(bytes), tw_buffer_bytes(bytes)));

  const tw_import_options options = {.size = sizeof options, .prefix = "second"};
  const tw_operation* operation = NULL;
  FAILS(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL), TW_ALREADY_EXISTS, "net/x");
  OK(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options));
  OK(tw_graph_find(copy, "second/net/y", &operation));
  const tw_import_options wrong = {.size = 4};
  FAILS(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &wrong), TW_INVALID_ARGUMENT, "tw_import_options");
  tw_buffer_release(bytes);
  tw_buffer_release(again);
  tw_graph_destroy(graph);
  tw_graph_destroy(copy);
}

static void TruncatedGraphsAreRefusedWhole(void) {
  tw_graph* graph = new_graph();
  tw_buffer* bytes = NULL;
  placeholder(graph, "x", TW_FLOAT, NULL, 0);
  placeholder(graph, "y", TW_FLOAT, NULL, 0);
  OK(tw_graph_export(graph, &bytes));
  tw_graph_destroy(graph);
  int refused = 0;
  for (uint64_t n = 1; n < tw_buffer_bytes(bytes); ++n) {
    graph = new_graph();
    tw_status* s = tw_graph_import(graph, tw_buffer_data(bytes), n, NULL);
    if (s) CHECK(tw_graph_count(graph) == 0);
    refused += s != NULL;
    tw_status_release(s);
    tw_graph_destroy(graph);
  }
  CHECK(refused > 10);
  FAILS(tw_graph_verify(NULL, "\xff\xff\xff", 3), TW_INVALID_ARGUMENT, "");
  tw_buffer_release(bytes);
}

static void TheVerifierMissesKernels(void) {
  tw_graph* graph = new_graph();
  tw_buffer* bytes = NULL;
  tw_op* op = tw_op_create(graph, "Abs", "many");
  tw_op_add_input(op, placeholder(graph, "x", TW_FLOAT, NULL, 0));
  OK(tw_op_finish(op, NULL));
  OK(tw_graph_export(graph, &bytes));
  tw_runtime* bare = NULL;
  const char* options[] = {"load_plugins=false"};
  OK(tw_runtime_create(options, 1, &bare));
  FAILS(tw_graph_verify(bare, tw_buffer_data(bytes), tw_buffer_bytes(bytes)), TW_UNIMPLEMENTED, "Abs 'many': no device has a kernel");
  tw_runtime_release(bare);
  tw_buffer_release(bytes);
  tw_graph_destroy(graph);
}

static void TheListOfOpsSaysWhatThereIs(void) {
  tw_ops* ops = NULL;
  OK(tw_ops_create(NULL, &ops));
  CHECK(tw_ops_count(ops) > 100);
  int found = 0;
  for (uint32_t i = 0; i < tw_ops_count(ops); ++i) {
    if (i > 0) CHECK(strcmp(tw_ops_name(ops, i - 1), tw_ops_name(ops, i)) < 0);
    if (strcmp(tw_ops_name(ops, i), "MatMul") != 0) continue;
    found = 1;
    CHECK(strstr(tw_ops_schema(ops, i), "transpose_a"));
    CHECK(strcmp(tw_ops_no_gradient(ops, i), "") == 0 && *tw_ops_plugin(ops, i));
    CHECK(tw_ops_kernel_count(ops, i) > 0 && strstr(tw_ops_kernel(ops, i, 0), "MatMul"));
    CHECK(tw_ops_kernel(ops, i, tw_ops_kernel_count(ops, i)) == NULL);
    tw_buffer* json = NULL;
    OK(tw_ops_json(ops, i, &json));
    const char* parts[] = {"\"inputs\": [{\"name\": \"a\", \"type_attr\": \"T\"}, ", "\"outputs\": [{\"name\": \"product\"",
                           "{\"name\": \"transpose_a\", \"kind\": \"bool\", \"list\": false, \"default\": false}",
                           "\"kind\": \"type\", \"list\": false, \"allowed\": [\"half\", "};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; ++k) CHECK(strstr(tw_buffer_data(json), parts[k]));
    tw_buffer_release(json);
    FAILS(tw_ops_json(ops, tw_ops_count(ops), &json), TW_OUT_OF_RANGE, "none with number");
    tw_buffer* message = NULL;
    OK(tw_ops_message(ops, i, &message));
    CHECK(memcmp(tw_buffer_data(message), "\x0a\x06MatMul\x12", 9) == 0); /* the name, then an input */
    tw_buffer_release(message);
    FAILS(tw_ops_message(ops, tw_ops_count(ops), &message), TW_OUT_OF_RANGE, "none with number");
  }
  CHECK(found);
  CHECK(tw_ops_name(ops, tw_ops_count(ops)) == NULL);
  tw_ops_destroy(ops);
}

/* A truncated node 'a' whose op is the bytes 0 and 27. The message escapes characters that would
 * end a C string or control a terminal. */
static void MessagesSpellOutControlCharacters(void) {
  const char graph[] = {0x0a, 9, 0x0a, 1, 'a', 0x12, 2, 0, 27, 0x1a, 50};
  FAILS(tw_graph_verify(NULL, graph, sizeof graph), TW_INVALID_ARGUMENT, "\\x00\\x1b 'a': the NodeDef is damaged");
}

MAIN(TEST(AnOperationTellsAboutItself), TEST(AttributesOfEveryKindAreKept), TEST(SettersOfTheWrongKindAreRefused),
     TEST(ColocationSurvivesExportAndRuns), TEST(ABuilderKeepsItsFirstFailure), TEST(AttributesArriveAsMessages),
     TEST(WrongOperationsAreRefusedAndLeaveTheGraphAlone), TEST(NamesAreFoundOrSuggested), TEST(ALoopIsClosedAtItsMerge),
     TEST(ExportAndImportGiveTheSameGraph), TEST(TruncatedGraphsAreRefusedWhole), TEST(MessagesSpellOutControlCharacters),
     TEST(TheVerifierMissesKernels), TEST(TheListOfOpsSaysWhatThereIs))
