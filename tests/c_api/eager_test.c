/* Eager calls: values of several families of ops, what a context keeps, errors that name op and value, threads, variables. */
#include "eager.h"

#include <pthread.h>

static void OpsOfSeveralFamiliesGiveTheirValues(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor* a = floats((const int64_t[]){2, 3}, 2, (const float[]){1, 2, 3, 4, 5, 6});
  tw_tensor* b = floats((const int64_t[]){2, 3}, 2, (const float[]){1, 0, 1, 0, 1, 0});
  tw_tensor* axis = ints(1, (const int32_t[]){1});
  tw_tensor* product = NULL;
  const tw_eager_attr turned[] = {ATTR_BOOL("transpose_b", 1)};
  OK(eager_call(e, "MatMul", a, b, turned, 1, &product));
  HOLDS(product, 4, 2, 10, 5);
  CHECK(tw_tensor_rank(product) == 2 && tw_tensor_dims(product)[0] == 2);
  tw_tensor* sum = eager(e, "AddV2", a, b);
  HOLDS(sum, 2, 2, 4, 4, 6, 6);
  tw_tensor* total = eager(e, "Sum", a, axis);
  HOLDS(total, 6, 15);
  tw_tensor *negative = eager(e, "Neg", a, NULL), *relu = eager(e, "Relu", negative, NULL);
  HOLDS(relu, 0, 0, 0, 0, 0, 0);
  tw_tensor* smooth = eager(e, "Softmax", b, NULL);
  const float high = expf(1) / (2 * expf(1) + 1), low = 1 / (2 * expf(1) + 1);
  CHECK(near(((const float*)tw_tensor_data(smooth))[0], high, 1e-6) && near(((const float*)tw_tensor_data(smooth))[1], low, 1e-6));
  tw_tensor* less = eager(e, "Less", a, b);
  CHECK(less && tw_tensor_dtype(less) == TW_BOOL && ((const uint8_t*)tw_tensor_data(less))[0] == 0);
  RELEASE(a, b, axis, product, sum, total, negative, relu, smooth, less);
  tw_eager_destroy(e);
}

static void ListsGoInAndSeveralOutputsComeOut(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *a = vector(2, (const float[]){1, 2}), *b = vector(1, (const float[]){3}), *axis = NULL;
  OK(tw_tensor_create_int32(0, &axis));
  tw_tensor *inputs[] = {a, b, axis}, *joined = NULL, *parts[4] = {a, a, a, a};
  const tw_eager_call concat = {.size = sizeof concat, .op = "ConcatV2", .inputs = inputs, .n_inputs = 3, .n_outputs = 1};
  OK(tw_eager_run(e, &concat, &joined));
  HOLDS(joined, 1, 2, 3);
  tw_tensor* whole[] = {axis, joined};
  const tw_eager_attr three[] = {ATTR_INT("num_split", 3)};
  tw_eager_call split = {.size = sizeof split, .op = "Split", .inputs = whole, .attrs = three, .n_inputs = 2, .n_attrs = 1, .n_outputs = 4};
  OK(tw_eager_run(e, &split, parts));
  for (int i = 0; i < 3; ++i) HOLDS(parts[i], (float)(i + 1));
  CHECK(!parts[3]);
  RELEASE(parts[0], parts[1], parts[2]);
  split.n_outputs = 2;
  FAILS(tw_eager_run(e, &split, parts), TW_INVALID_ARGUMENT, "Split has 3 outputs, but n_outputs says that there is room for 2");
  CHECK(!parts[0] && !parts[1]);
  RELEASE(a, b, axis, joined);
  tw_eager_destroy(e);
}

static void StringsAndEmptyTensorsAreValuesToo(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *hello = NULL, *world = NULL, *length = NULL;
  OK(tw_tensor_create_string("hello ", 6, &hello));
  OK(tw_tensor_create_string("world", 5, &world));
  tw_tensor* both = eager(e, "Add", hello, world);
  const char* text = NULL;
  uint64_t bytes = 0;
  OK(tw_tensor_get_string(both, 0, &text, &bytes));
  CHECK(bytes == 11 && memcmp(text, "hello world", 11) == 0);
  length = eager(e, "StringLength", both, NULL);
  CHECK(length && *(const int32_t*)tw_tensor_data(length) == 11);
  tw_tensor* none = floats((const int64_t[]){0, 3}, 2, NULL);
  tw_tensor *twice = eager(e, "AddV2", none, none), *axis = ints(1, (const int32_t[]){0}), *sum = eager(e, "Sum", none, axis);
  CHECK(tw_tensor_count(twice) == 0 && tw_tensor_dims(twice)[1] == 3);
  HOLDS(sum, 0, 0, 0);
  RELEASE(hello, world, both, length, none, twice, axis, sum);
  tw_eager_destroy(e);
}

/* One entry serves all shapes and is found again; other attributes and types have their own. */
static void AnEntryIsFoundByOpAttributesAndTypes(void) {
  tw_eager* e = new_eager(NULL);
  tw_eager_info info = {.size = sizeof info};
  for (uint32_t n = 1; n <= 20; ++n) {
    tw_tensor *x = floats((const int64_t[]){n}, 1, (const float[20]){1}), *y = eager(e, "AddV2", x, x);
    CHECK(tw_tensor_count(y) == n && ((const float*)tw_tensor_data(y))[0] == 2);
    RELEASE(x, y);
  }
  OK(tw_eager_report(e, &info));
  CHECK(info.entries == 1 && info.misses == 1 && info.hits == 19 && info.evictions == 0);
  tw_tensor *i = ints(2, (const int32_t[]){1, 2}), *m = floats((const int64_t[]){1, 1}, 2, (const float[]){2});
  RELEASE(eager(e, "AddV2", i, i), eager(e, "MatMul", m, m));
  const tw_eager_attr turned[] = {ATTR_BOOL("transpose_a", 1)};
  tw_tensor* product = NULL;
  OK(eager_call(e, "MatMul", m, m, turned, 1, &product));
  HOLDS(product, 4);
  OK(tw_eager_report(e, &info));
  CHECK(info.entries == 4 && info.misses == 4);
  RELEASE(i, m, product);
  tw_eager_destroy(e);
}

static void WhatIsKeptIsBounded(void) {
  tw_eager* e = new_eager("max_entries=2");
  tw_tensor* x = scalar(4);
  const char* ops[] = {"Neg", "Sqrt", "Neg", "Square", "Neg", "Sqrt"};
  const float expected[] = {-4, 2, -4, 16, -4, 2};
  for (int k = 0; k < 6; ++k) {
    tw_tensor* y = eager(e, ops[k], x, NULL);
    HOLDS(y, expected[k]);
    tw_tensor_release(y);
  }
  tw_eager_info info = {.size = sizeof info};
  OK(tw_eager_report(e, &info));
  CHECK(info.entries == 2 && info.misses == 4 && info.hits == 2 && info.evictions == 2); /* Neg stays: it was used last */
  tw_tensor_release(x);
  tw_eager_destroy(e);
}

static void WhatCannotBeNamesOpAndValue(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *a = floats((const int64_t[]){2, 3}, 2, (const float[6]){0}), *i = ints(2, (const int32_t[]){1, 2}), *out = NULL;
  FAILS(eager_call(e, "MatMull", a, a, NULL, 0, &out), TW_NOT_FOUND, "MatMul");
  FAILS(eager_call(e, "MatMul", a, a, NULL, 0, &out), TW_INVALID_ARGUMENT, "inner dimensions differ: a is [2, 3], b is [2, 3]");
  FAILS(eager_call(e, "MatMul", a, NULL, NULL, 0, &out), TW_INVALID_ARGUMENT, "MatMul 'eager'");
  FAILS(eager_call(e, "AddV2", a, i, NULL, 0, &out), TW_INVALID_ARGUMENT, "AddV2 'eager'");
  const tw_eager_attr wrong[] = {ATTR_INT("transpose_a", 1)}, unknown[] = {ATTR_BOOL("transposed", 1)};
  FAILS(eager_call(e, "MatMul", a, a, wrong, 1, &out), TW_INVALID_ARGUMENT, "transpose_a");
  FAILS(eager_call(e, "MatMul", a, a, unknown, 1, &out), TW_INVALID_ARGUMENT, "transposed");
  const tw_eager_attr nothing[] = {{"transpose_a", NULL, TW_ATTR_BOOL, 0, 1, 0}}, kind[] = {{"transpose_a", "", 99, 0, 1, 0}};
  FAILS(eager_call(e, "MatMul", a, a, nothing, 1, &out), TW_INVALID_ARGUMENT, "MatMul: attribute 'transpose_a': its values are NULL");
  FAILS(eager_call(e, "MatMul", a, a, kind, 1, &out), TW_INVALID_ARGUMENT, "kind 99 is unknown");
  const tw_eager_attr function[] = {{"f", &(tw_string){"g", 1}, TW_ATTR_FUNC, 0, 1, 0}};
  FAILS(eager_call(e, "PartitionedCall", a, NULL, function, 1, &out), TW_UNIMPLEMENTED, "attribute 'f'");
  tw_tensor* with_null[] = {a, NULL};
  tw_eager_call call = {.size = sizeof call, .op = "MatMul", .inputs = with_null, .n_inputs = 2, .n_outputs = 1};
  FAILS(tw_eager_run(e, &call, &out), TW_INVALID_ARGUMENT, "MatMul: input 1 is NULL");
  call.flags = 1;
  FAILS(tw_eager_run(e, &call, &out), TW_INVALID_ARGUMENT, "tw_eager_call has flags 1");
  FAILS(tw_eager_create(NULL, (const char*[]){"max_entry=1"}, 1, &e), TW_INVALID_ARGUMENT, "max_entry");
  CHECK(strcmp(tw_eager_option(0)->name, "max_entries") == 0 && !tw_eager_option(1000));
  CHECK(!out);
  tw_eager_info info = {.size = sizeof info};
  OK(tw_eager_report(e, &info));
  CHECK(info.entries == 1); /* that of MatMul, whose shapes only were wrong */
  RELEASE(a, i);
  tw_eager_destroy(e);
}

static void AContextThatChecksValuesRefusesTheFirstOneThatIsNotFinite(void) {
  tw_eager* e = new_eager("check_values=nan");
  tw_tensor *x = vector(2, (const float[]){0, 4}), *below = vector(2, (const float[]){-1, 4}), *out = NULL;
  tw_tensor* log = eager(e, "Log", x, NULL); /* an infinity passes */
  CHECK(log && ((const float*)tw_tensor_data(log))[0] == -INFINITY && near(((const float*)tw_tensor_data(log))[1], logf(4), 1e-6));
  FAILS(eager_call(e, "Log", below, NULL, NULL, 0, &out), TW_INVALID_ARGUMENT, "output 0 is the first value with NaN: float[2]");
  FAILS(eager_call(e, "Log", below, NULL, NULL, 0, &out), TW_INVALID_ARGUMENT, "inputs: float[2] from -1 to 4");
  CHECK(!out);
  OK(tw_eager_set_check_values(e, "finite"));
  FAILS(eager_call(e, "Log", x, NULL, NULL, 0, &out), TW_INVALID_ARGUMENT, "is the first value with NaN or infinities");
  FAILS(tw_eager_set_check_values(e, "all"), TW_INVALID_ARGUMENT, "'check_values' cannot be 'all'; it takes off, nan or finite");
  FAILS(eager_call(e, "Log", x, NULL, NULL, 0, &out), TW_INVALID_ARGUMENT, "NaN or infinities"); /* the setting stays */
  OK(tw_eager_set_check_values(e, "off"));
  tw_tensor* unchecked = eager(e, "Log", below, NULL);
  CHECK(unchecked && isnan(((const float*)tw_tensor_data(unchecked))[0]));
  RELEASE(x, below, log, unchecked);
  tw_eager_destroy(e);
}

static void AMessageBeginsWithTheLineOfTheCall(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *a = floats((const int64_t[]){2, 3}, 2, (const float[6]){0}), *inputs[] = {a, a}, *out = NULL;
  const tw_eager_call call = {.size = sizeof call, .op = "MatMul", .inputs = inputs, .place = "train.c:18", .n_inputs = 2, .n_outputs = 1};
  tw_status* s = tw_eager_run(e, &call, &out);
  CHECK(strncmp(tw_status_message(s), "train.c:18: MatMul 'eager'", 26) == 0);
  CHECK(strcmp(tw_status_place(s), "train.c:18") == 0);
  tw_status_release(s);
  tw_tensor_release(a);
  tw_eager_destroy(e);
}

static void MemoryBeyondTheLimitIsRefused(void) {
  tw_eager* e = new_eager("memory_limit=16M");
  tw_tensor *dims = ints(1, (const int32_t[]){1 << 20}), *one = scalar(1), *kept[4] = {NULL}, *more = NULL;
  for (int i = 0; i < 3; ++i) kept[i] = eager(e, "Fill", dims, one); /* 4 MiB each */
  FAILS(eager_call(e, "Fill", dims, one, NULL, 0, &more), TW_RESOURCE_EXHAUSTED, "the eager context");
  CHECK(!more);
  tw_tensor_release(kept[0]);
  kept[0] = eager(e, "Fill", dims, one);
  CHECK(kept[0] && ((const float*)tw_tensor_data(kept[0]))[5] == 1);
  RELEASE(dims, one, kept[0], kept[1], kept[2]);
  tw_eager_destroy(e);
}

enum { kRounds = 300 };

static void* compute(void* context) { /* on each of two threads, through one context */
  for (int i = 1; i <= kRounds; ++i) {
    tw_tensor* x = floats((const int64_t[]){i % 7 + 1}, 1, (const float[]){1, 2, 3, 4, 5, 6, 7});
    tw_tensor *y = eager(context, "Mul", x, x), *z = eager(context, i % 2 ? "AddV2" : "Sub", y, x);
    const float first = z ? ((const float*)tw_tensor_data(z))[0] : -1;
    RELEASE(x, y, z);
    if (first != (i % 2 ? 2 : 0)) return "wrong";
  }
  return NULL;
}

static void TwoThreadsUseOneContext(void) {
  tw_eager* e = new_eager("max_entries=2"); /* so that entries are dropped while they run */
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, compute, e);
  for (int i = 0; i < 2; ++i) {
    void* wrong = "not run";
    pthread_join(threads[i], &wrong);
    CHECK(!wrong);
  }
  tw_eager_info info = {.size = sizeof info};
  OK(tw_eager_report(e, &info));
  CHECK(info.entries == 2 && info.hits + info.misses == 4 * kRounds);
  tw_eager_destroy(e);
}

static void VariablesAreReadAssignedAndUpdated(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *w = variable_handle(e, "w"), *x = vector(2, (const float[]){1, 2}), *out = NULL;
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  FAILS(eager_call(e, "ReadVariableOp", w, NULL, dtype, 1, &out), TW_FAILED_PRECONDITION, "'w'");
  OK(eager_call(e, "AssignVariableOp", w, x, dtype, 1, NULL));
  tw_tensor* before = variable_value(e, w);
  OK(eager_call(e, "AssignAddVariableOp", w, x, dtype, 1, NULL));
  tw_tensor* after = variable_value(e, w);
  HOLDS(before, 1, 2); /* what was read stays as it was */
  HOLDS(after, 2, 4);
  HOLDS(x, 1, 2);
  tw_tensor *again = variable_handle(e, "w"), *same = variable_value(e, again);
  HOLDS(same, 2, 4);
  tw_eager* other = new_eager(NULL);
  tw_tensor* theirs = variable_handle(other, "w");
  FAILS(eager_call(other, "ReadVariableOp", theirs, NULL, dtype, 1, &out), TW_FAILED_PRECONDITION, "'w'");
  const tw_shape any = {NULL, -1, 0};
  const tw_eager_attr nameless[] = {ATTR_TYPE("dtype", TW_FLOAT), {"shape", &any, TW_ATTR_SHAPE, 0, 1, 0}};
  FAILS(eager_call(e, "VarHandleOp", NULL, NULL, nameless, 2, &out), TW_INVALID_ARGUMENT, "VarHandleOp: attribute 'shared_name' is empty");
  RELEASE(w, x, before, after, again, same, theirs);
  tw_eager_destroy(other);
  tw_eager_destroy(e);
}

static void ASessionOfTheSameContainerSharesVariables(void) {
  tw_eager* e = new_eager("container=shared with a session");
  tw_tensor *w = variable_handle(e, "w"), *x = vector(2, (const float[]){1, 2});
  const tw_eager_attr dtype[] = {ATTR_TYPE("dtype", TW_FLOAT)};
  OK(eager_call(e, "AssignVariableOp", w, x, dtype, 1, NULL));
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output v =
      tw_variable_create(s, "w", tw_scope_op2(s, "Fill", tw_scope_ints(s, (const int32_t[]){2}, 1), tw_scope_scalar(s, TW_FLOAT, 9)));
  const tw_output read = tw_variable_read(s, v);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  const char* options[] = {"container=shared with a session"};
  OK(tw_session_create(graph, options, 1, &session));
  tw_tensor* seen = fetch(session, 0, NULL, read);
  HOLDS(seen, 1, 2);
  run(session, init);
  tw_tensor* now = variable_value(e, w);
  HOLDS(now, 9, 9);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_tensor* still = variable_value(e, w);
  HOLDS(still, 9, 9);
  RELEASE(w, x, seen, now, still);
  tw_eager_destroy(e);
}

/* The generator of an op with the same seed goes on, and does not begin anew. */
static void RandomNumbersGoOn(void) {
  tw_eager* e = new_eager(NULL);
  tw_tensor *dims = ints(1, (const int32_t[]){8}), *draws[2] = {NULL};
  const tw_eager_attr attrs[] = {ATTR_TYPE("dtype", TW_FLOAT), ATTR_INT("seed", 7)};
  for (int i = 0; i < 2; ++i) OK(eager_call(e, "RandomUniform", dims, NULL, attrs, 2, &draws[i]));
  CHECK(draws[0] && draws[1] && memcmp(tw_tensor_data(draws[0]), tw_tensor_data(draws[1]), 8 * sizeof(float)) != 0);
  RELEASE(dims, draws[0], draws[1]);
  tw_eager_destroy(e);
}

static void TensorsOutliveTheirContext(void) {
  tw_eager* e = new_eager("memory_limit=64M");
  tw_tensor *x = scalar(3), *y = eager(e, "Square", x, NULL);
  tw_eager_destroy(e);
  HOLDS(y, 9);
  RELEASE(x, y);
}

MAIN(TEST(OpsOfSeveralFamiliesGiveTheirValues), TEST(ListsGoInAndSeveralOutputsComeOut), TEST(StringsAndEmptyTensorsAreValuesToo),
     TEST(AnEntryIsFoundByOpAttributesAndTypes), TEST(WhatIsKeptIsBounded), TEST(WhatCannotBeNamesOpAndValue),
     TEST(AContextThatChecksValuesRefusesTheFirstOneThatIsNotFinite), TEST(AMessageBeginsWithTheLineOfTheCall),
     TEST(MemoryBeyondTheLimitIsRefused), TEST(TwoThreadsUseOneContext), TEST(VariablesAreReadAssignedAndUpdated),
     TEST(ASessionOfTheSameContainerSharesVariables), TEST(RandomNumbersGoOn), TEST(TensorsOutliveTheirContext))
