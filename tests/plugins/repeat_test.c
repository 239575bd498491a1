/* Ops of a third-party plugin whose kernels call functions of the graph: in a step, in a loop,
 * as a loop, and with invalid functions. */
#include "check.h"

typedef struct program {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_scope* s;
  tw_output x;
} program;

static program begin(void) {
  program p = {NULL, NULL, NULL, 0};
  OK(tw_runtime_create(NULL, 0, &p.runtime));
  OK(tw_plugin_load(p.runtime, REPEAT));
  OK(tw_graph_create(p.runtime, &p.graph));
  p.s = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(p.s, "x", TW_FLOAT, NULL, 0);
  return p;
}

static void end(program* p) {
  tw_graph_destroy(p->graph);
  tw_runtime_release(p->runtime);
}

/* A function of one number that returns 2 x + 1; for another n_results, also x. */
static const char* doubled(const program* p, const char* name, uint32_t n_results) {
  tw_block* block = tw_block_begin(p->s);
  tw_scope* in = tw_block_scope(block);
  const tw_output x = tw_block_argument(block, TW_FLOAT, NULL, 0);
  const tw_output twice = tw_scope_op2(in, "Mul", x, tw_scope_scalar(in, TW_FLOAT, 2));
  const tw_output results[] = {tw_scope_op2(in, "AddV2", twice, tw_scope_scalar(in, TW_FLOAT, 1)), x};
  tw_block_give(block, results, n_results);
  return tw_block_define(p->s, block, name);
}

static tw_output repeat(tw_scope* s, const char* f, int64_t times, tw_output x) {
  tw_op* op = tw_scope_begin(s, "Repeat", NULL);
  tw_op_add_inputs(op, &x, 1);
  tw_op_set_func(op, "f", f);
  tw_op_set_int(op, "times", times);
  return tw_scope_end(s, op);
}

static float at(tw_session* session, const program* p, float x, tw_output y) {
  tw_tensor* in = scalar(x);
  const float value = as_float(fetch(session, p->x, in, y));
  tw_tensor_release(in);
  return value;
}

static void AKernelOfAPluginCallsAFunctionOfTheGraph(void) {
  program p = begin();
  const tw_output y = repeat(p.s, doubled(&p, "doubled", 1), 3, p.x), same = repeat(p.s, "doubled", 0, p.x);
  OK(tw_scope_finish(p.s));
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  CHECK(at(session, &p, 1, y) == 15 && at(session, &p, 1, same) == 1);
  tw_buffer* bytes = NULL;
  tw_graph* again = NULL;
  OK(tw_graph_export(p.graph, &bytes));
  OK(tw_graph_create(p.runtime, &again));
  OK(tw_graph_import(again, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  CHECK(tw_graph_function_count(again) == 1);
  tw_buffer_release(bytes);
  tw_graph_destroy(again);
  tw_session_destroy(session);
  end(&p);
}

static void ItDoesSoInTheFunctionsOfLoops(void) {
  program p = begin();
  const char* f = doubled(&p, "doubled", 1);
  tw_block *cond = tw_block_begin(p.s), *body = tw_block_begin(p.s);
  tw_output at_start, last;
  tw_block_arguments(cond, &p.x, 1, NULL, &at_start);
  const tw_output more = tw_scope_op2(tw_block_scope(cond), "Less", at_start, tw_scope_scalar(tw_block_scope(cond), TW_FLOAT, 100));
  tw_block_give(cond, &more, 1);
  tw_block_arguments(body, &p.x, 1, NULL, &at_start);
  const int32_t none = 0;
  tw_output next = repeat(tw_block_scope(body), f, 2, at_start); /* 4 x + 3 */
  next = tw_scope_op2(tw_block_scope(body), "Reshape", next, tw_scope_ints(tw_block_scope(body), &none, 0));
  tw_block_give(body, &next, 1);
  tw_while_loop(p.s, cond, body, &p.x, 1, NULL, &last);
  OK(tw_scope_finish(p.s));
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  CHECK(at(session, &p, 1, last) == 127);
  tw_session_destroy(session);
  end(&p);
}

static void WrongFunctionsFailTheirStepAndNoOther(void) {
  program p = begin();
  const tw_output y = repeat(p.s, doubled(&p, "doubled", 1), 1, p.x), two = repeat(p.s, doubled(&p, "pair", 2), 1, p.x);
  const tw_output none = repeat(p.s, "nobody", 1, p.x);
  OK(tw_scope_finish(p.s));
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  tw_tensor *in = scalar(1), *out = NULL;
  tw_signature what = {.size = sizeof what, .feeds = &p.x, .n_feeds = 1, .fetches = &two, .n_fetches = 1};
  FAILS(tw_session_run(session, &what, &in, NULL, &out), TW_INVALID_ARGUMENT, "the function gives 2 values where 1 are wanted");
  what.fetches = &none;
  FAILS(tw_session_run(session, &what, &in, NULL, &out), TW_NOT_FOUND, "the graph has no function 'nobody'");
  tw_tensor_release(in);
  CHECK(at(session, &p, 1, y) == 3);
  tw_session_destroy(session);
  end(&p);
}

/* ---- Loops that the host runs for a kernel ---- */

static tw_output cast(tw_scope* s, tw_output x, uint32_t dtype) {
  tw_op* op = tw_scope_begin(s, "Cast", NULL);
  tw_op_add_input(op, x);
  tw_op_set_type(op, "DstT", dtype);
  return tw_scope_end(s, op);
}

/* A function that returns whether its number is less than 3, in the given type. */
static const char* less(const program* p, const char* name, uint32_t takes, uint32_t gives) {
  tw_block* block = tw_block_begin(p->s);
  tw_scope* in = tw_block_scope(block);
  tw_output yes = tw_scope_op2(in, "Less", tw_block_argument(block, takes, NULL, 0), tw_scope_scalar(in, takes, 3));
  if (gives != TW_BOOL) yes = cast(in, yes, gives);
  tw_block_give(block, &yes, 1);
  return tw_block_define(p->s, block, name);
}

/* A function that adds 1 to a number, in that type. */
static const char* next(const program* p, const char* name, uint32_t takes, uint32_t gives) {
  tw_block* block = tw_block_begin(p->s);
  tw_scope* in = tw_block_scope(block);
  tw_output more = tw_scope_op2(in, "AddV2", tw_block_argument(block, takes, NULL, 0), tw_scope_scalar(in, takes, 1));
  if (gives != takes) more = cast(in, more, gives);
  tw_block_give(block, &more, 1);
  return tw_block_define(p->s, block, name);
}

/* asks: the kernel first checks that the two functions make a loop. */
static tw_output until(tw_scope* s, const char* cond, const char* body, const tw_output* x, uint32_t n, uint8_t asks) {
  tw_op* op = tw_scope_begin(s, "Until", NULL);
  tw_op_add_inputs(op, x, n);
  tw_op_set_func(op, "cond", cond);
  tw_op_set_func(op, "body", body);
  tw_op_set_bool(op, "asks", asks);
  return tw_scope_end(s, op);
}

static tw_status* failure(tw_graph* graph, tw_output what) {
  tw_session* session = NULL;
  tw_tensor* out = NULL;
  const tw_signature signature = {.size = sizeof signature, .fetches = &what, .n_fetches = 1};
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_status* s = tw_session_run(session, &signature, NULL, NULL, &out);
  CHECK(!out);
  tw_tensor_release(out);
  tw_session_destroy(session);
  return s;
}

static void ALoopHasValuesOfAllTypes(void) {
  program p = begin();
  tw_tensor *none = NULL, *letters = NULL;
  OK(tw_tensor_create_string("", 0, &none));
  OK(tw_tensor_create_string("ab", 2, &letters));
  const tw_output start[] = {tw_scope_scalar(p.s, TW_INT64, 0), p.x, tw_scope_constant(p.s, none), tw_scope_scalar(p.s, TW_BOOL, 0)};
  tw_block *cond = tw_block_begin(p.s), *body = tw_block_begin(p.s);
  tw_output in[4], out[4];
  tw_block_arguments(cond, start, 4, NULL, in);
  tw_output more = tw_scope_op2(tw_block_scope(cond), "Less", in[0], tw_scope_scalar(tw_block_scope(cond), TW_INT64, 3));
  tw_block_give(cond, &more, 1);
  tw_scope* s = tw_block_scope(body);
  tw_block_arguments(body, start, 4, NULL, in);
  out[0] = tw_scope_op2(s, "AddV2", in[0], tw_scope_scalar(s, TW_INT64, 1));
  out[1] = tw_scope_op2(s, "Mul", in[1], tw_scope_scalar(s, TW_FLOAT, 2));
  out[2] = tw_scope_op2(s, "Add", in[2], tw_scope_constant(s, letters));
  out[3] = tw_scope_op1(s, "LogicalNot", in[3]);
  tw_block_give(body, out, 4);
  const char *asks = tw_block_define(p.s, cond, "asks"), *does = tw_block_define(p.s, body, "does");
  const tw_output y = until(p.s, asks, does, start, 4, 1);
  tw_output all[4];
  for (uint32_t i = 0; i < 4; ++i) all[i] = tw_scope_output(p.s, y, i);
  OK(tw_scope_finish(p.s));
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  for (int round = 0; round < 2; ++round) {
    tw_tensor *x = scalar(5), *results[4] = {NULL};
    const tw_signature what = {.size = sizeof what, .feeds = &p.x, .n_feeds = 1, .fetches = all, .n_fetches = 4};
    OK(tw_session_run(session, &what, &x, NULL, results));
    uint64_t size = 0;
    const char* text = NULL;
    OK(tw_tensor_get_string(results[2], 0, &text, &size));
    CHECK(results[0] && *(const int64_t*)tw_tensor_data(results[0]) == 3);
    CHECK(results[1] && *(const float*)tw_tensor_data(results[1]) == 40);
    CHECK(text && size == 6 && memcmp(text, "ababab", 6) == 0);
    CHECK(results[3] && *(const uint8_t*)tw_tensor_data(results[3]) == 1);
    for (int i = 0; i < 4; ++i) tw_tensor_release(results[i]);
    tw_tensor_release(x);
  }
  tw_session_destroy(session);
  tw_tensor_release(none);
  tw_tensor_release(letters);
  end(&p);
}

/* Later iterations reuse the memory of the first: types that do not fit would cause reads beyond
 * it. */
static void FunctionsWhoseTypesDifferMakeNoLoop(void) {
  static const struct {
    uint32_t cond_takes, cond_gives, body_takes, body_gives;
    const char* says;
  } cases[] = {
      {TW_FLOAT, TW_BOOL, TW_FLOAT, TW_DOUBLE, "'body' (float) -> (double) are no condition and body of a loop"},
      {TW_FLOAT, TW_BOOL, TW_DOUBLE, TW_FLOAT, "'body' (double) -> (float) are no condition and body of a loop"},
      {TW_DOUBLE, TW_BOOL, TW_FLOAT, TW_FLOAT, "functions 'cond' (double) -> (bool) and 'body' (float) -> (float) are no"},
      {TW_FLOAT, TW_INT64, TW_FLOAT, TW_FLOAT, "functions 'cond' (float) -> (int64) and 'body' (float) -> (float) are no"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    program p = begin();
    const char *cond = less(&p, "cond", cases[i].cond_takes, cases[i].cond_gives),
               *body = next(&p, "body", cases[i].body_takes, cases[i].body_gives);
    const tw_output one = tw_scope_scalar(p.s, cases[i].body_takes, 1);
    const tw_output blind = until(p.s, cond, body, &one, 1, 0), careful = until(p.s, cond, body, &one, 1, 1);
    OK(tw_scope_finish(p.s));
    FAILS(failure(p.graph, blind), TW_INVALID_ARGUMENT, cases[i].says);
    FAILS(failure(p.graph, careful), TW_FAILED_PRECONDITION, "these make no loop");
    end(&p);
  }
}

static void ALoopTakesWhatItsFunctionsTake(void) {
  program p = begin();
  const char *cond = less(&p, "cond", TW_FLOAT, TW_BOOL), *body = next(&p, "body", TW_FLOAT, TW_FLOAT);
  const tw_output x[] = {tw_scope_scalar(p.s, TW_FLOAT, 1), tw_scope_scalar(p.s, TW_INT32, 1)};
  const tw_output other = until(p.s, cond, body, x + 1, 1, 0), many = until(p.s, cond, body, x, 2, 0),
                  good = until(p.s, cond, body, x, 1, 0);
  OK(tw_scope_finish(p.s));
  FAILS(failure(p.graph, other), TW_INVALID_ARGUMENT, "is int32 but must be float");
  FAILS(failure(p.graph, many), TW_INVALID_ARGUMENT, "function 'body' takes 1 arguments, but gets 2");
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  CHECK(as_float(fetch(session, 0, NULL, good)) == 3);
  tw_session_destroy(session);
  end(&p);
}

static void ALoopThatFailsSaysHowFarItGot(void) {
  program p = begin();
  tw_block* block = tw_block_begin(p.s);
  tw_scope* in = tw_block_scope(block);
  tw_op* op = tw_scope_begin(in, "CheckNumerics", NULL);
  tw_op_add_input(op, tw_scope_op2(in, "Mul", tw_block_argument(block, TW_FLOAT, NULL, 0), tw_scope_scalar(in, TW_FLOAT, -1e20)));
  tw_op_set_string(op, "message", "too large", 9);
  const tw_output y = tw_scope_end(in, op), one = tw_scope_scalar(p.s, TW_FLOAT, 1);
  tw_block_give(block, &y, 1);
  const char *cond = less(&p, "cond", TW_FLOAT, TW_BOOL), *body = tw_block_define(p.s, block, "body");
  const tw_output grows = until(p.s, cond, body, &one, 1, 0), still = until(p.s, cond, next(&p, "next", TW_FLOAT, TW_FLOAT), &one, 1, 0);
  OK(tw_scope_finish(p.s));
  FAILS(failure(p.graph, grows), TW_INVALID_ARGUMENT, "after 1 times");
  FAILS(failure(p.graph, grows), TW_INVALID_ARGUMENT, "too large");
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  CHECK(as_float(fetch(session, 0, NULL, still)) == 3);
  tw_session_destroy(session);
  end(&p);
}

MAIN(TEST(AKernelOfAPluginCallsAFunctionOfTheGraph), TEST(ItDoesSoInTheFunctionsOfLoops), TEST(WrongFunctionsFailTheirStepAndNoOther),
     TEST(ALoopHasValuesOfAllTypes), TEST(FunctionsWhoseTypesDifferMakeNoLoop), TEST(ALoopTakesWhatItsFunctionsTake),
     TEST(ALoopThatFailsSaysHowFarItGot))
