/* Conditions, loops and loops over slices, written through blocks: their results, their
 * gradients, and refusals. */
#include "check.h"

static tw_graph* graph;
static tw_scope* s;

static void begin(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
}

static tw_session* session_of(void) {
  tw_session* session = NULL;
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  return session;
}

static void end(tw_session* session) {
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* Checks that the scope has failed with that text. */
static void refused(const char* part) {
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, part);
  tw_graph_destroy(graph);
}

static float run_at(tw_session* session, tw_output x, float value, tw_output what) {
  tw_tensor* in = scalar(value);
  const float out = as_float(fetch(session, x, in, what));
  tw_tensor_release(in);
  return out;
}

/* Gives the block one value and returns the block. */
static tw_block* giving(tw_block* block, tw_output value) {
  tw_block_give(block, &value, 1);
  return block;
}

static tw_output number(tw_scope* scope, double value) { return tw_scope_scalar(scope, TW_FLOAT, value); }
static tw_output whole(tw_scope* scope, int32_t value) { return tw_scope_scalar(scope, TW_INT32, value); }

static tw_output vector_of(const float* values, int64_t n) {
  tw_tensor* t = floats(&n, 1, values);
  const tw_output made = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return made;
}

static void expect(tw_session* session, tw_output what, const float* wanted, uint64_t n) {
  tw_tensor* t = fetch(session, 0, NULL, what);
  CHECK(t && tw_tensor_count(t) == n);
  for (uint64_t i = 0; t && tw_tensor_count(t) == n && i < n; ++i) CHECK(near(((const float*)tw_tensor_data(t))[i], wanted[i], 1e-6));
  tw_tensor_release(t);
}

/* ---- Conditions ---- */

static void AConditionRunsOneOfTwoBlocksAndIsDifferentiated(void) {
  begin();
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output positive = tw_scope_op2(s, "Greater", x, number(s, 0));
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  giving(then, tw_scope_op2(tw_block_scope(then), "Mul", x, x));
  giving(otherwise, tw_scope_op1(tw_block_scope(otherwise), "Neg", x));
  tw_output y = 0;
  const tw_operation* operation = tw_cond(s, "choice", positive, then, otherwise, &y, 1);
  tw_gradient dx;
  tw_scope_gradients(s, y, &x, 1, &dx);
  tw_session* session = session_of();
  CHECK(strcmp(tw_operation_name(operation), "choice") == 0 && strcmp(tw_operation_type(operation), "StatelessIf") == 0);
  CHECK(run_at(session, x, 3, y) == 9 && run_at(session, x, -3, y) == 3);
  CHECK(run_at(session, x, 3, dx.values) == 6 && run_at(session, x, -3, dx.values) == -1);
  end(session);
}

static void ABlockAssignsToAVariableFromAroundEachTimeItRuns(void) {
  begin();
  const tw_output v = tw_variable_create(s, "v", number(s, 1)), x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  tw_scope* in = tw_block_scope(then);
  tw_variable_assign(in, v, tw_scope_op2(in, "Add", tw_variable_read(in, v), x));
  const tw_operation *choice = tw_cond(s, NULL, tw_scope_op2(s, "Greater", x, number(s, 0)), then, otherwise, NULL, 0),
                     *init = tw_variable_initializer(s, "init");
  const tw_output now = tw_variable_read(s, v);
  tw_session* session = session_of();
  CHECK(strcmp(tw_operation_type(choice), "If") == 0);
  run(session, init);
  for (int i = 0; i < 4; ++i) {
    tw_tensor* in_value = scalar(i % 2 ? -5 : 2);
    const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .targets = &choice, .n_targets = 1};
    OK(tw_session_run(session, &what, &in_value, NULL, NULL));
    tw_tensor_release(in_value);
  }
  CHECK(as_float(fetch(session, 0, NULL, now)) == 5);
  end(session);
}

static void ANumberThatNoBranchHasChoosesTheLast(void) {
  begin();
  const tw_output i = tw_scope_placeholder(s, "i", TW_INT32, NULL, 0);
  tw_block* branches[3];
  for (int k = 0; k < 3; ++k) {
    branches[k] = tw_block_begin(s);
    giving(branches[k], number(tw_block_scope(branches[k]), 10 * k));
  }
  tw_output y = 0;
  tw_switch_case(s, NULL, i, branches, 3, &y, 1);
  tw_session* session = session_of();
  const int32_t at[] = {0, 1, 2, 3, -1};
  const float wanted[] = {0, 10, 20, 20, 20};
  for (int k = 0; k < 5; ++k) {
    tw_tensor* in = NULL;
    OK(tw_tensor_create_int32(at[k], &in));
    CHECK(as_float(fetch(session, i, in, y)) == wanted[k]);
    tw_tensor_release(in);
  }
  end(session);
}

static void BlocksThatDifferAreRefused(void) {
  const char* const says[] = {"`then` gives 1 result, `otherwise` 0; all must give the same",
                              "result 0 is float in `then` but int32 in `otherwise`",
                              "`otherwise` has 1 argument; it takes none",
                              "block 1 is NULL",
                              "block 0 is given twice",
                              "`then` gives 1 result, but 2 are asked for",
                              "inner dimensions differ",
                              "variable 'w' is made inside a function",
                              "there are no branches"};
  for (int which = 0; which < 9; ++which) {
    begin();
    tw_scope_set_place(s, "net.c:7");
    const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, (int64_t[]){2, 3}, 2);
    tw_block *then = tw_block_begin(s), *otherwise = which == 3 ? NULL : tw_block_begin(s);
    tw_scope* in = tw_block_scope(otherwise);
    tw_output y[2] = {1, 1};
    giving(then, x);
    if (which == 2) tw_block_argument(otherwise, TW_FLOAT, NULL, 0);
    if (which == 7) tw_variable_create(in, "w", number(in, 0));
    if (which != 0) giving(otherwise, which == 1 ? whole(in, 1) : which == 6 ? tw_scope_op2(in, "MatMul", x, x) : x);
    if (which == 4) tw_block_destroy(otherwise);
    if (which == 8) {
      tw_switch_case(s, NULL, 0, NULL, 0, y, 1);
      tw_block_destroy(then);
      tw_block_destroy(otherwise);
    } else {
      tw_cond(s, NULL, tw_scope_scalar(s, TW_BOOL, 1), then, which == 4 ? then : otherwise, y, which == 5 ? 2 : 1);
    }
    CHECK(y[0] == 0 && (which != 5 || y[1] == 0));
    if (which < 6) {
      tw_status* status = tw_scope_finish(s);
      CHECK(strstr(tw_status_message(status), "tw_cond (made at net.c:7): ") == tw_status_message(status));
      CHECK(strstr(tw_status_message(status), says[which]) != NULL);
      tw_status_release(status);
      tw_graph_destroy(graph);
    } else {
      refused(says[which]);
    }
  }
}

/* ---- Loops ---- */

/* Computes i and y after n rounds of i + 1, y * x, from 0 and 1. */
static void power(tw_scope* scope, tw_output x, tw_output n, tw_output most, tw_output* last) {
  const tw_output first[] = {whole(scope, 0), number(scope, 1)};
  tw_output at[2];
  tw_block *cond = tw_block_begin(scope), *body = tw_block_begin(scope);
  tw_block_arguments(cond, first, 2, NULL, at);
  giving(cond, tw_scope_op2(tw_block_scope(cond), "Less", at[0], n));
  tw_block_arguments(body, first, 2, NULL, at);
  giving(body, tw_scope_op2(tw_block_scope(body), "Add", at[0], whole(tw_block_scope(body), 1)));
  giving(body, tw_scope_op2(tw_block_scope(body), "Mul", at[1], x));
  tw_while_options options;
  tw_while_options_init(&options);
  options.maximum_iterations = most;
  tw_while_loop(scope, cond, body, first, 2, &options, last);
}

static void ALoopRunsAsLongAsItsConditionHoldsAndIsDifferentiatedTwice(void) {
  begin();
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_output last[2], limited[2];
  power(s, x, whole(s, 5), 0, last);
  power(s, x, whole(s, 5), whole(s, 2), limited);
  tw_gradient dx, ddx;
  tw_scope_gradients(s, last[1], &x, 1, &dx);
  tw_scope_gradients(s, dx.values, &x, 1, &ddx);
  tw_session* session = session_of();
  CHECK(run_at(session, x, 2, last[1]) == 32 && run_at(session, x, 2, dx.values) == 80 && run_at(session, x, 2, ddx.values) == 160);
  CHECK(run_at(session, x, 3, limited[1]) == 9);
  end(session);
}

static void BlocksLieWithinBlocks(void) {
  begin();
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), n = whole(s, 3);
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  tw_output last[2], y = 0;
  power(tw_block_scope(then), x, n, 0, last);
  giving(then, last[1]);
  giving(otherwise, x);
  tw_cond(s, NULL, tw_scope_op2(s, "Greater", x, number(s, 0)), then, otherwise, &y, 1);
  tw_gradient dx;
  tw_scope_gradients(s, y, &x, 1, &dx);
  tw_session* session = session_of();
  CHECK(run_at(session, x, 2, y) == 8 && run_at(session, x, 2, dx.values) == 12 && run_at(session, x, -2, y) == -2);
  end(session);
}

static void AShapeGrowsWhereItsInvariantLetsIt(void) {
  begin();
  const float two[] = {1, 2};
  const tw_output first[] = {whole(s, 0), vector_of(two, 2)};
  const int64_t any = -1;
  const tw_shape shapes[] = {{NULL, 0, 0}, {&any, 1, 0}};
  tw_output at[2], last[2];
  tw_block *cond = tw_block_begin(s), *body = tw_block_begin(s);
  tw_block_arguments(cond, first, 2, shapes, at);
  giving(cond, tw_scope_op2(tw_block_scope(cond), "Less", at[0], whole(tw_block_scope(cond), 2)));
  tw_block_arguments(body, first, 2, shapes, at);
  tw_scope* in = tw_block_scope(body);
  giving(body, tw_scope_op2(in, "Add", at[0], whole(in, 1)));
  const tw_output parts[] = {at[1], at[1], whole(in, 0)};
  tw_op* both = tw_scope_begin(in, "ConcatV2", NULL);
  tw_op_add_inputs(both, parts, 3);
  giving(body, tw_scope_end(in, both));
  tw_while_loop(s, cond, body, first, 2, NULL, last);
  tw_session* session = session_of();
  const float wanted[] = {1, 2, 1, 2, 1, 2, 1, 2};
  expect(session, last[1], wanted, 8);
  end(session);
}

static void WhatALoopVariableBreaksIsToldByNumberAndName(void) {
  const char* const says[] = {"loop variable 1 ('start') is float, but `body` makes it int32",
                              "loop variable 1 ('start') has shape [2], but `body` makes it [3]; say in its shape invariant",
                              "loop variable 1 ('start') has shape [2] in `body` but [?] in `cond`",
                              "there are 2 loop variables, but `body` gives 1",
                              "there are 2 loop variables, but `cond` takes 1",
                              "`cond` gives 2 results; it must give one value",
                              "loop variable 1 ('start') has shape [4], but it is at first [2]",
                              "loop variable 1 ('start') is float, but `body` takes int32",
                              "parallel_iterations is 0",
                              "cond is NULL"};
  for (int which = 0; which < 10; ++which) {
    begin();
    const int64_t two = 2, any = -1, four = 4;
    const tw_output first[] = {whole(s, 0), tw_scope_placeholder(s, "start", TW_FLOAT, &two, 1)};
    const tw_shape open[] = {{NULL, 0, 0}, {&any, 1, 0}}, larger[] = {{NULL, 0, 0}, {&four, 1, 0}};
    const tw_shape* kept = which == 6 ? larger : NULL;
    tw_output at[2], last[2] = {1, 1};
    tw_block *cond = which == 9 ? NULL : tw_block_begin(s), *body = tw_block_begin(s);
    tw_block_arguments(cond, first, which == 4 ? 1 : 2, which == 2 ? open : kept, at);
    if (cond) giving(cond, tw_scope_op2(tw_block_scope(cond), "Less", at[0], whole(tw_block_scope(cond), 2)));
    if (which == 5) giving(cond, at[0]);
    tw_scope* in = tw_block_scope(body);
    tw_block_arguments(body, first, which == 7 ? 1 : 2, kept, at);
    if (which == 7) at[1] = tw_block_argument(body, TW_INT32, &two, 1);
    giving(body, at[0]);
    const int32_t longer[] = {0, 1, 1};
    if (which == 0) giving(body, tw_scope_ints(in, longer, 2));
    if (which == 1) giving(body, tw_scope_op3(in, "GatherV2", at[1], tw_scope_ints(in, longer, 3), whole(in, 0)));
    if (which != 0 && which != 1 && which != 3) giving(body, at[1]);
    tw_while_options options;
    tw_while_options_init(&options);
    if (which == 8) options.parallel_iterations = 0;
    tw_while_loop(s, cond, body, first, 2, &options, last);
    CHECK(last[0] == 0 && last[1] == 0);
    refused(says[which]);
  }
}

/* ---- Functions ---- */

static void ABlockBecomesAFunctionThatOperationsCall(void) {
  begin();
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_block* twice = tw_block_begin(s);
  const tw_output a = tw_block_argument(twice, TW_FLOAT, NULL, 0);
  const char* name = tw_block_define(s, giving(twice, tw_scope_op2(tw_block_scope(twice), "Add", a, a)), "twice");
  CHECK(name && strcmp(name, "twice") == 0);
  const uint32_t type = TW_FLOAT;
  tw_op* op = tw_scope_begin(s, "PartitionedCall", NULL);
  tw_op_add_input(op, x);
  tw_op_set_types(op, "Tout", &type, 1);
  tw_op_set_func(op, "f", name);
  const tw_output y = tw_scope_end(s, op);
  tw_session* session = session_of();
  CHECK(run_at(session, x, 4, y) == 8);
  end(session);

  begin();
  const tw_output outside = tw_scope_placeholder(s, "outside", TW_FLOAT, NULL, 0);
  tw_block* bad = tw_block_begin(s);
  CHECK(tw_block_define(s, giving(bad, tw_scope_op1(tw_block_scope(bad), "Neg", outside)), "bad") == NULL);
  refused("function 'bad' uses 'outside', which is outside of it; give it as an argument");
}

/* ---- Over slices ---- */

static void SlicesAreMappedFoldedAndScanned(void) {
  for (int reverse = 0; reverse < 2; ++reverse) {
    begin();
    const float values[] = {1, 2, 3, 4};
    const tw_output x = vector_of(values, 4), zero = number(s, 0), factor = number(s, 10);
    tw_output at = 0, sum = 0, total = 0, made[3] = {0};
    tw_block* each = tw_each_begin(s, &x, 1, &zero, 1, (uint32_t)reverse, &at, &sum);
    tw_scope* in = tw_block_scope(each);
    sum = tw_scope_op2(in, "Add", tw_scope_op2(in, "Mul", sum, factor), at);
    tw_op* cast = tw_scope_begin(in, "Cast", NULL);
    tw_op_add_input(cast, tw_each_index(each));
    tw_op_set_type(cast, "DstT", TW_FLOAT);
    const tw_output results[] = {sum, tw_scope_op2(in, "Mul", at, at), tw_scope_end(in, cast)};
    tw_each_end(s, "digits", each, &sum, results, 3, &total, made);
    tw_gradient dx;
    tw_scope_gradients(s, total, &x, 1, &dx);
    tw_session* session = session_of();
    const float sums[2][4] = {{1, 12, 123, 1234}, {4321, 432, 43, 4}}, squares[] = {1, 4, 9, 16}, numbers[] = {0, 1, 2, 3},
                weights[2][4] = {{1000, 100, 10, 1}, {1, 10, 100, 1000}};
    expect(session, total, reverse ? sums[1] : sums[0] + 3, 1);
    expect(session, made[0], sums[reverse], 4);
    expect(session, made[1], squares, 4);
    expect(session, made[2], numbers, 4);
    expect(session, dx.values, weights[reverse], 4);
    end(session);
  }
}

static void AsManySlicesRunAsAStepBrings(void) {
  begin();
  const int64_t dims[] = {-1, 2};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  tw_output row = 0, squares = 0, y;
  tw_block* each = tw_each_begin(s, &x, 1, NULL, 0, 0, &row, NULL);
  y = tw_scope_op2(tw_block_scope(each), "Mul", row, row);
  tw_each_end(s, NULL, each, NULL, &y, 1, NULL, &squares);
  tw_session* session = session_of();
  for (int64_t n = 0; n < 4; ++n) {
    const float values[] = {1, 2, 3, 4, 5, 6};
    tw_tensor *in = floats((int64_t[]){n, 2}, 2, values), *out = fetch(session, x, in, squares);
    CHECK(out && tw_tensor_rank(out) == 2 && tw_tensor_dims(out)[0] == n && tw_tensor_dims(out)[1] == 2);
    for (int64_t i = 0; out && i < 2 * n; ++i) CHECK(((const float*)tw_tensor_data(out))[i] == values[i] * values[i]);
    tw_tensor_release(in);
    tw_tensor_release(out);
  }
  end(session);
}

static void SlicesThatDoNotFitAreRefused(void) {
  const char* const says[] = {"elems[0] is a scalar, which has no slices",
                              "elems[1] has shape [3], but one before it [4]; their first sizes must be the same",
                              "there are no elems",
                              "state 0 ('start') is float [] at first, but the block makes it float [2]",
                              "the block was not begun by tw_each_begin",
                              "the block was not begun by tw_each_begin",
                              "block is NULL"};
  for (int which = 0; which < 7; ++which) {
    begin();
    const float values[] = {1, 2, 3, 4};
    const tw_output elems[] = {which == 0 ? number(s, 1) : vector_of(values, 4), vector_of(values, 3)};
    const tw_output start = tw_scope_placeholder(s, "start", TW_FLOAT, NULL, 0);
    tw_output at[2], state = 0, last = 1;
    tw_block* each = which == 4 || which == 5 ? tw_block_begin(s) : NULL;
    if (which < 4) each = tw_each_begin(s, elems, which == 1 ? 2 : which == 2 ? 0 : 1, &start, 1, 0, at, &state);
    if (which == 5) CHECK(tw_each_index(each) == 0);
    const int32_t two[] = {2};
    tw_scope* in = tw_block_scope(each);
    const tw_output next = which == 3 ? tw_scope_op2(in, "Fill", tw_scope_ints(in, two, 1), state) : state;
    tw_each_end(s, NULL, each, &next, NULL, 0, &last, NULL);
    CHECK(last == 0 || which != 3);
    refused(says[which]);
  }
}

MAIN(TEST(AConditionRunsOneOfTwoBlocksAndIsDifferentiated), TEST(ABlockAssignsToAVariableFromAroundEachTimeItRuns),
     TEST(ANumberThatNoBranchHasChoosesTheLast), TEST(BlocksThatDifferAreRefused),
     TEST(ALoopRunsAsLongAsItsConditionHoldsAndIsDifferentiatedTwice), TEST(BlocksLieWithinBlocks),
     TEST(AShapeGrowsWhereItsInvariantLetsIt), TEST(WhatALoopVariableBreaksIsToldByNumberAndName),
     TEST(ABlockBecomesAFunctionThatOperationsCall), TEST(SlicesAreMappedFoldedAndScanned), TEST(AsManySlicesRunAsAStepBrings),
     TEST(SlicesThatDoNotFitAreRefused))
