/* An op of a stranger's plugin whose kernel calls a function of the graph: in a step, in a loop, and where the function is a wrong one. */
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

/* A function of one number: 2 x + 1, or, of another number of results, that and x. */
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

MAIN(TEST(AKernelOfAPluginCallsAFunctionOfTheGraph), TEST(ItDoesSoInTheFunctionsOfLoops), TEST(WrongFunctionsFailTheirStepAndNoOther))
