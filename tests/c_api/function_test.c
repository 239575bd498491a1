/* Functions from C: creation, calls, refusals; functions of the program that graphs call. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "check.h"

typedef struct body {
  tw_graph* graph;
  tw_scope* scope;
  tw_output x;
} body;

/* Makes a body with one scalar argument. */
static body new_body(tw_graph* g, uint32_t dtype) {
  body b = {NULL, NULL, 0};
  OK(tw_graph_create_body(g, &b.graph));
  b.scope = tw_scope_create(b.graph, NULL);
  b.x = tw_scope_placeholder(b.scope, "x", dtype, NULL, 0);
  return b;
}

static void end_body(body* b) {
  OK(tw_scope_finish(b->scope));
  tw_graph_destroy(b->graph);
}

static tw_function_spec one_to_one(const char* name, const body* b, const tw_output* result) {
  const tw_function_spec spec = {sizeof spec, 0, name, &b->x, result, NULL, 1, 1, 0, 0};
  return spec;
}

static tw_status* add_call(tw_graph* g, const char* f, tw_output x, const tw_operation** out_made) {
  const uint32_t type = TW_FLOAT;
  tw_op* op = tw_op_create(g, "PartitionedCall", NULL);
  tw_op_add_inputs(op, &x, 1);
  tw_op_set_types(op, "Tout", &type, 1);
  tw_op_set_func(op, "f", f);
  return tw_op_finish(op, out_made);
}

static tw_output call(tw_graph* g, const char* f, tw_output x) {
  const tw_operation* made = NULL;
  OK(add_call(g, f, x, &made));
  return tw_operation_output(made, 0);
}

static void ABodyIsCalledAfterItsHandleIsGone(void) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  const char* name = NULL;
  OK(tw_graph_create(NULL, &g));
  for (int i = 0; i < 2; ++i) { /* the same name twice, made unique */
    body b = new_body(g, TW_FLOAT);
    const tw_output y = tw_scope_op2(b.scope, "Mul", b.x, tw_scope_scalar(b.scope, TW_FLOAT, 2 + i));
    tw_function_spec spec = one_to_one("times", &b, &y);
    spec.make_unique = 1;
    OK(tw_graph_add_function(g, b.graph, &spec, &name));
    end_body(&b);
  }
  CHECK(name && strcmp(name, "times_1") == 0);
  CHECK(tw_graph_function_count(g) == 2);
  tw_buffer* first = NULL;
  OK(tw_graph_function_name(g, 0, &first));
  CHECK(tw_buffer_bytes(first) == 5 && memcmp(tw_buffer_data(first), "times", 5) == 0);
  tw_buffer_release(first);
  FAILS(tw_graph_function_name(g, 2, &first), TW_INVALID_ARGUMENT, "2 functions");

  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  OK(tw_scope_finish(s));
  const tw_output y = call(g, "times", call(g, "times_1", x));
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* in = scalar(7);
  CHECK(as_float(fetch(session, x, in, y)) == 42);
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static void AValueOfTheOuterGraphIsCapturedAndAConstantCopied(void) {
  tw_graph *g = NULL, *inner = NULL;
  tw_output seen = 0;
  uint32_t is_argument = 7, dtype = 0;
  tw_shape shape;
  const int64_t dims[] = {-1, 3};
  OK(tw_graph_create(NULL, &g));
  OK(tw_graph_create_body(g, &inner));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_DOUBLE, dims, 2);
  const tw_output two = tw_scope_scalar(s, TW_FLOAT, 2);
  OK(tw_scope_finish(s));
  OK(tw_graph_capture(inner, g, x, NULL, &seen, &is_argument));
  OK(tw_graph_describe(inner, seen, &dtype, &shape));
  CHECK(is_argument == 1 && dtype == TW_DOUBLE && shape.rank == 2 && shape.dims[0] == -1 && shape.dims[1] == 3);
  OK(tw_graph_capture(inner, g, two, "two", &seen, &is_argument));
  CHECK(is_argument == 0 && tw_graph_has(inner, "two"));
  FAILS(tw_graph_capture(inner, g, seen, NULL, &seen, &is_argument), TW_INVALID_ARGUMENT, "output");
  tw_graph_destroy(inner);
  tw_graph_destroy(g);
}

static void AnOpenBodyTakesValuesFromAllThatIsAroundIt(void) {
  tw_graph *g = NULL, *outer = NULL, *inner = NULL, *other = NULL;
  OK(tw_graph_create(NULL, &g));
  OK(tw_graph_create(NULL, &other));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, (int64_t[]){2}, 1), two = tw_scope_scalar(s, TW_FLOAT, 2),
                  v = tw_variable_create(s, "v", x);
  OK(tw_scope_finish(s));
  OK(tw_graph_open_body(g, &outer));
  OK(tw_graph_open_body(outer, &inner));
  CHECK(tw_graph_is_body(inner) && tw_graph_is_body(outer) && !tw_graph_is_body(g));
  s = tw_scope_create(inner, NULL);
  const tw_output y = tw_scope_op2(s, "Mul", tw_scope_op2(s, "Add", x, two), x), read = tw_variable_read(s, v);
  OK(tw_scope_finish(s));
  CHECK(y && read && tw_graph_captured_count(inner) == 2 && tw_graph_captured_count(outer) == 2);
  tw_output from = 0, argument = 0, again = 0, beyond = 0;
  OK(tw_graph_captured(inner, 0, &from, &argument));
  OK(tw_graph_own(inner, x, &again));
  CHECK(again == argument);
  OK(tw_graph_own(inner, from, &again)); /* captures the value of the enclosing body */
  CHECK(again == argument && tw_graph_captured_count(inner) == 2);
  OK(tw_graph_captured(outer, 0, &beyond, &again));
  CHECK(beyond == x && again == from);
  FAILS(tw_graph_captured(inner, 2, NULL, NULL), TW_INVALID_ARGUMENT, "for 2 values from around, not one of number 2");
  uint32_t dtype = 0;
  tw_shape shape;
  OK(tw_graph_describe_contents(inner, v, &dtype, &shape));
  CHECK(dtype == TW_FLOAT && shape.rank == 1 && shape.dims[0] == 2);
  const int64_t any = -1;
  const tw_shape open = {&any, 1, 0}, wrong = {NULL, 3, 0};
  OK(tw_graph_add_argument(inner, x, &open, &argument));
  OK(tw_graph_describe(inner, argument, &dtype, &shape));
  CHECK(dtype == TW_FLOAT && shape.rank == 1 && shape.dims[0] == -1);
  FAILS(tw_graph_add_argument(inner, x, &wrong, &argument), TW_INVALID_ARGUMENT, "dims are NULL at rank 3");
  FAILS(tw_graph_add_argument(g, x, NULL, &argument), TW_INVALID_ARGUMENT, "no open body");
  s = tw_scope_create(other, NULL);
  const tw_output foreign = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  OK(tw_scope_finish(s));
  FAILS(tw_graph_own(inner, foreign, &again), TW_INVALID_ARGUMENT, "value");
  tw_graph_destroy(inner);
  tw_graph_destroy(outer);
  tw_graph_destroy(other);
  tw_graph_destroy(g);
}

static void WhatIsNoFunctionIsRefusedWithItsName(void) {
  tw_graph *g = NULL, *other = NULL;
  OK(tw_graph_create(NULL, &g));
  OK(tw_graph_create(NULL, &other));
  body b = new_body(g, TW_FLOAT);
  const tw_output free_one = tw_scope_placeholder(b.scope, "free", TW_FLOAT, NULL, 0);
  const tw_output y = tw_scope_op2(b.scope, "Add", b.x, free_one), z = tw_scope_op1(b.scope, "Neg", b.x);
  tw_function_spec spec = one_to_one("f", &b, &y);
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "function 'f': it needs 'free'");
  spec.results = &z;
  spec.args = &z;
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "argument 0 is no placeholder");
  const tw_output twice[] = {b.x, b.x};
  spec.args = twice;
  spec.n_args = 2;
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "argument 1, 'x', stands twice");
  spec = one_to_one("not a name", &b, &z);
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "not a name");
  spec.name = "f";
  FAILS(tw_graph_add_function(other, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "made for another graph");
  spec.results = NULL;
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_INVALID_ARGUMENT, "NULL");
  spec.results = &z;
  OK(tw_graph_add_function(g, b.graph, &spec, NULL));
  FAILS(tw_graph_add_function(g, b.graph, &spec, NULL), TW_ALREADY_EXISTS, "function 'f'");
  end_body(&b);
  tw_graph_destroy(other);
  tw_graph_destroy(g);
}

static void ACallOfAWrongFunctionIsRefusedAndOneOfNoFunctionFailsItsStep(void) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  body b = new_body(g, TW_INT32);
  const tw_output y = tw_scope_op1(b.scope, "Neg", b.x);
  const tw_function_spec spec = one_to_one("whole", &b, &y);
  OK(tw_graph_add_function(g, b.graph, &spec, NULL));
  end_body(&b);
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  OK(tw_scope_finish(s));
  const tw_operation* none = NULL;
  FAILS(add_call(g, "whole", x, &none), TW_INVALID_ARGUMENT,
        "argument 0 of function 'whole' (int32) -> (int32) is int32, but that of the node is float");
  const tw_output missing = call(g, "nobody", x);
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* in = scalar(7);
  tw_tensor* out = NULL;
  tw_signature what = {sizeof what, 0, &x, &missing, NULL, 1, 1, 0, 0};
  FAILS(tw_session_run(session, &what, &in, NULL, &out), TW_NOT_FOUND, "the graph has no function 'nobody'");
  what.fetches = &x;
  OK(tw_session_run(session, &what, &in, NULL, &out));
  tw_tensor_release(out);
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

/* y = (2 a + v) a, with v = 10 and a = x + 1; w counts the calls. */
typedef struct part {
  tw_graph* graph;
  tw_output x, a, y, v, w;
  const tw_operation *init, *count;
} part;

static part new_part(void) {
  part p = {NULL, 0, 0, 0, 0, 0, NULL, NULL};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  p.v = tw_variable_create(s, "outline_v", tw_scope_scalar(s, TW_FLOAT, 10));
  p.w = tw_variable_create(s, "outline_w", tw_scope_scalar(s, TW_FLOAT, 0));
  p.init = tw_variable_initializer(s, "init");
  p.a = tw_scope_op2(s, "Add", p.x, tw_scope_scalar(s, TW_FLOAT, 1));
  tw_op* op = tw_scope_begin(s, "AssignAddVariableOp", "count");
  const tw_output in[] = {p.w, p.a};
  tw_op_add_inputs(op, in, 2);
  p.count = tw_scope_end_operation(s, op);
  const tw_output twice = tw_scope_op2(s, "Mul", p.a, tw_scope_scalar(s, TW_FLOAT, 2));
  op = tw_scope_begin(s, "Add", "sum");
  const tw_output added[] = {twice, tw_variable_read(s, p.v)};
  tw_op_add_inputs(op, added, 2);
  tw_op_add_control(op, p.count);
  p.y = tw_scope_op2(s, "Mul", tw_scope_end(s, op), p.a);
  OK(tw_scope_finish(s));
  return p;
}

static tw_function_spec from_to(const char* name, const tw_output* arg, const tw_output* result) {
  const tw_function_spec spec = {sizeof spec, 0, name, arg, result, NULL, 1, 1, 0, 0};
  return spec;
}

static float run_for(tw_session* session, const part* p, float x, tw_output what) {
  tw_tensor* in = scalar(x);
  const float value = as_float(fetch(session, p->x, in, what));
  tw_tensor_release(in);
  return value;
}

static void APartOfAGraphBecomesAFunctionThatDoesTheSameOnce(void) {
  part p = new_part();
  const tw_operation *call = NULL, *whole = NULL;
  tw_function_spec spec = from_to("part", &p.a, &p.y);
  OK(tw_graph_outline(p.graph, &spec, &call));
  CHECK(strcmp(tw_operation_type(call), "StatefulPartitionedCall") == 0 && tw_operation_input_count(call) == 3); /* a, and two handles */
  CHECK(tw_graph_function_count(p.graph) == 1);
  spec.args = &p.x;
  spec.make_unique = 1;
  OK(tw_graph_outline(p.graph, &spec, &whole));
  CHECK(tw_graph_function_count(p.graph) == 2);
  tw_scope* s = tw_scope_create(p.graph, NULL);
  const tw_output counted = tw_variable_read(s, p.w), slope_of[] = {tw_operation_output(call, 0)};
  tw_gradient slope;
  tw_scope_gradients(s, slope_of[0], &p.x, 1, &slope);
  OK(tw_scope_finish(s));
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, NULL, 0, &session));
  const tw_signature init = {.size = sizeof init, .targets = &p.init, .n_targets = 1};
  OK(tw_session_run(session, &init, NULL, NULL, NULL));
  CHECK(run_for(session, &p, 2, p.y) == 48);
  CHECK(run_for(session, &p, 2, tw_operation_output(call, 0)) == 48);
  CHECK(run_for(session, &p, 2, tw_operation_output(whole, 0)) == 48);
  CHECK(run_for(session, &p, 0, counted) == 9);               /* each call counted once */
  CHECK(run_for(session, &p, 2, slope.values) == 4 * 3 + 10); /* through the call: its function is differentiated */
  tw_session_destroy(session);
  tw_graph_destroy(p.graph);
}

static void WhatCannotBeAPartIsRefusedAndChangesNothing(void) {
  part p = new_part();
  const tw_operation* call = NULL;
  const uint32_t before = tw_graph_count(p.graph);
  tw_function_spec spec = from_to("part", &p.v, &p.y);
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_INVALID_ARGUMENT, "function 'part': it needs 'x', a placeholder");
  spec = from_to("part", &p.y, &p.y);
  spec.targets = &p.count;
  spec.n_targets = 1;
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_INVALID_ARGUMENT, "'count': it is over before the arguments are there");
  tw_scope* s = tw_scope_create(p.graph, NULL);
  const tw_output yes = tw_scope_placeholder(s, "yes", TW_BOOL, NULL, 0),
                  chosen = tw_scope_op1(s, "Neg", tw_scope_op2(s, "Switch", p.a, yes));
  OK(tw_scope_finish(s));
  spec = from_to("part", &p.a, &chosen);
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_INVALID_ARGUMENT, "Switch 'Switch': what decides what runs cannot be in the part");
  spec = from_to("no name", &p.a, &p.y);
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_INVALID_ARGUMENT, "no name");
  const tw_output none = 0;
  spec = from_to("part", &p.a, &none);
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_INVALID_ARGUMENT, "result 0");
  CHECK(call == NULL && tw_graph_count(p.graph) == before + 3 && tw_graph_function_count(p.graph) == 0);
  spec = from_to("part", &p.a, &p.y);
  OK(tw_graph_outline(p.graph, &spec, &call));
  FAILS(tw_graph_outline(p.graph, &spec, &call), TW_ALREADY_EXISTS, "'part'");
  tw_graph_destroy(p.graph);
}

/* Adds a function that multiplies by `by`. */
static void add_times(tw_graph* g, const char* name, double by) {
  body b = new_body(g, TW_FLOAT);
  const tw_output y = tw_scope_op2(b.scope, "Mul", b.x, tw_scope_scalar(b.scope, TW_FLOAT, by));
  const tw_function_spec spec = one_to_one(name, &b, &y);
  OK(tw_graph_add_function(g, b.graph, &spec, NULL));
  end_body(&b);
}

static tw_output add_if(tw_scope* s, tw_output yes, tw_output x) {
  const uint32_t type = TW_FLOAT;
  tw_op* op = tw_scope_begin(s, "If", NULL);
  tw_op_add_input(op, yes);
  tw_op_add_inputs(op, &x, 1);
  tw_op_set_types(op, "Tout", &type, 1);
  tw_op_set_func(op, "then_branch", "twice");
  tw_op_set_func(op, "else_branch", "thrice");
  return tw_scope_end(s, op);
}

static void AFlatGraphHasTheChosenBranchesInPlaceOfCalls(void) {
  tw_graph *g = NULL, *flat = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  add_times(g, "twice", 2);
  add_times(g, "thrice", 3);
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), asked = tw_scope_placeholder(s, "asked", TW_BOOL, NULL, 0);
  tw_op* op = tw_scope_begin(s, "PlaceholderWithDefault", "training");
  tw_op_add_input(op, tw_scope_scalar(s, TW_BOOL, 0));
  tw_op_set_shape(op, "shape", NULL, 0);
  const tw_output training = tw_scope_end(s, op);
  const tw_output y = tw_scope_op2(s, "Add", call(g, "twice", add_if(s, training, x)), x), z = add_if(s, asked, y);
  OK(tw_scope_finish(s));
  const tw_output in[] = {x, asked, training}, out[] = {y, z};
  tw_output flat_in[3], flat_out[2];
  OK(tw_graph_flatten(g, in, 1, out, 1, &flat, flat_in, flat_out));
  CHECK(tw_graph_has(flat, "If/Mul") && tw_graph_has(flat, "PartitionedCall/Mul"));
  for (uint32_t i = 0; i < tw_graph_count(flat); ++i) {
    const char* type = tw_operation_type(tw_graph_operation(flat, i));
    CHECK(strcmp(type, "If") != 0 && strcmp(type, "PartitionedCall") != 0 && strcmp(type, "PlaceholderWithDefault") != 0);
  }
  const tw_function_spec spec = {sizeof spec, 0, "flat", flat_in, flat_out, NULL, 1, 1, 0, 0};
  OK(tw_graph_add_function(g, flat, &spec, NULL));
  const tw_output again = call(g, "flat", x);
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* seven = scalar(7);
  CHECK(as_float(fetch(session, x, seven, y)) == 49);
  CHECK(as_float(fetch(session, x, seven, again)) == 49);
  tw_tensor_release(seven);
  tw_graph_destroy(flat);
  flat = NULL;

  /* A choice that a run makes stays an If, and so does one that depends on an input. */
  OK(tw_graph_flatten(g, in, 3, out, 2, &flat, flat_in, flat_out));
  const tw_operation* last = NULL;
  OK(tw_graph_producer(flat, flat_out[1], &last, NULL));
  CHECK(strcmp(tw_operation_type(last), "If") == 0 && tw_graph_has(flat, "If") && tw_graph_has(flat, "training"));
  tw_graph_destroy(flat);

  s = tw_scope_create(g, NULL);
  const tw_output chosen = tw_scope_op2(s, "Switch", x, asked);
  OK(tw_scope_finish(s));
  flat = NULL;
  FAILS(tw_graph_flatten(g, in, 2, &chosen, 1, &flat, flat_in, flat_out), TW_INVALID_ARGUMENT, "Switch 'Switch': control flow of Switch");
  const tw_output none = 0;
  FAILS(tw_graph_flatten(g, in, 2, &none, 1, &flat, flat_in, flat_out), TW_INVALID_ARGUMENT, "output 0");
  CHECK(flat == NULL);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

/* ---- Functions of the program ---- */

/* The sum of the first elements of all inputs, and the number of inputs. */
static void sum_and_count(void* user, tw_host_call* call) {
  const uint32_t n = tw_host_call_input_count(call);
  float sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += *(const float*)tw_tensor_data(tw_host_call_input(call, i));
  CHECK(tw_host_call_input(call, n) == NULL && strcmp(tw_host_call_operation(call), "f") == 0 && !tw_host_call_cancelled(call));
  CHECK(tw_host_call_output_count(call) == 2 && tw_host_call_output_dtype(call, 1) == TW_INT32 && tw_host_call_output_dtype(call, 2) == 0);
  tw_tensor* outputs[2] = {scalar(sum + *(const float*)user), NULL};
  OK(tw_tensor_create_int32((int32_t)n, &outputs[1]));
  tw_host_call_finish(call, outputs, 2);
  tw_tensor_release(outputs[0]);
  tw_tensor_release(outputs[1]);
}

/* A graph with one operation that calls a function of the program on x. */
typedef struct host_program {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y;
} host_program;

static host_program new_host_program_on(tw_runtime* runtime, const char* op, const char* token, uint32_t n_inputs, uint32_t n_outputs) {
  const uint32_t types[] = {TW_FLOAT, TW_INT32};
  const tw_operation* made = NULL;
  host_program p = {0};
  OK(tw_graph_create(runtime, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  OK(tw_scope_finish(s));
  tw_op* builder = tw_op_create(p.graph, op, "f");
  for (uint32_t i = 0; i < n_inputs; ++i) tw_op_add_input(builder, p.x);
  tw_op_set_string(builder, "token", token, strlen(token));
  tw_op_set_types(builder, "Tout", types, n_outputs);
  OK(tw_op_finish(builder, &made));
  p.y = tw_operation_output(made, 0);
  OK(tw_session_create(p.graph, NULL, 0, &p.session));
  return p;
}

static host_program new_host_program(const char* op, const char* token, uint32_t n_inputs, uint32_t n_outputs) {
  return new_host_program_on(NULL, op, token, n_inputs, n_outputs);
}

static tw_status* run_host_program(const host_program* p, tw_output what, float x, const tw_run_options* options, float* out) {
  tw_tensor *in = scalar(x), *result = NULL;
  const tw_signature signature = {.size = sizeof signature, .feeds = &p->x, .n_feeds = 1, .fetches = &what, .n_fetches = 1};
  tw_status* s = tw_session_run(p->session, &signature, &in, options, &result);
  tw_tensor_release(in);
  *out = as_float(result);
  return s;
}

static void free_host_program(host_program* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

static void AFunctionOfTheProgramIsAnOperation(void) {
  static const float more = 100;
  float y = 0;
  FAILS(tw_host_function_register(NULL, "", sum_and_count, NULL), TW_INVALID_ARGUMENT, "token");
  OK(tw_host_function_register(NULL, "test/sum", sum_and_count, (void*)&more));
  FAILS(tw_host_function_register(NULL, "test/sum", sum_and_count, NULL), TW_ALREADY_EXISTS, "'test/sum'");
  const char* const ops[] = {"PyFunc", "PyFuncStateless", "EagerPyFunc"};
  for (int i = 0; i < 3; ++i) {
    host_program p = new_host_program(ops[i], "test/sum", 3, 2);
    for (int k = 0; k < 3; ++k) {
      OK(run_host_program(&p, p.y, (float)k, NULL, &y));
      CHECK(y == 100 + 3 * (float)k);
    }
    free_host_program(&p);
  }
  host_program p = new_host_program("PyFunc", "test/sum", 1, 2);
  OK(run_host_program(&p, p.y, 1, NULL, &y));
  OK(tw_host_function_unregister(NULL, "test/sum"));
  FAILS(tw_host_function_unregister(NULL, "test/sum"), TW_NOT_FOUND, "'test/sum'");
  FAILS(run_host_program(&p, p.y, 1, NULL, &y), TW_FAILED_PRECONDITION, "no function of this process has the token 'test/sum'");
  free_host_program(&p);
}

/* As in a process that has read the graph of another: nothing runs. */
static void AGraphWithAFunctionThatIsNotThereDoesNotBegin(void) {
  tw_buffer* bytes = NULL;
  tw_graph* read = NULL;
  host_program p = new_host_program("PyFunc", "test/gone", 1, 1);
  OK(tw_graph_export(p.graph, &bytes));
  OK(tw_graph_create(NULL, &read));
  OK(tw_graph_import(read, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  tw_buffer_release(bytes);
  free_host_program(&p);
  host_program again = {.graph = read};
  float y = 0;
  OK(tw_graph_find_output(read, "x", &again.x));
  OK(tw_graph_find_output(read, "f", &again.y));
  OK(tw_session_create(read, NULL, 0, &again.session));
  FAILS(run_host_program(&again, again.y, 1, NULL, &y), TW_FAILED_PRECONDITION, "PyFunc 'f'");
  free_host_program(&again);
}

static void fail_with_cookie(void* user, tw_host_call* call) {
  tw_host_call_fail(call, TW_DATA_LOSS, "the disk is on fire", *(const uint64_t*)user);
}

static void give_nothing(void* user, tw_host_call* call) {
  (void)user;
  tw_host_call_finish(call, NULL, 0);
}

static void give_an_integer(void* user, tw_host_call* call) {
  tw_tensor* y = NULL;
  (void)user;
  OK(tw_tensor_create_int32(1, &y));
  tw_host_call_finish(call, &y, 1);
  tw_tensor_release(y);
}

static void AFailureOfTheFunctionIsThatOfTheRun(void) {
  static const uint64_t cookie = 12345678901234567890u;
  const struct {
    tw_host_function function;
    uint32_t code;
    const char* part;
    uint64_t cookie;
  } wrong[] = {{fail_with_cookie, TW_DATA_LOSS, "PyFunc 'f' on CPU:0: the disk is on fire", 12345678901234567890u},
               {give_nothing, TW_INVALID_ARGUMENT, "gave 0 outputs, but 'Tout' has 1", 0},
               {give_an_integer, TW_INVALID_ARGUMENT, "gave int32 for output 0, but 'Tout' says float", 0}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    float y = 0;
    OK(tw_host_function_register(NULL, "test/wrong", wrong[i].function, (void*)&cookie));
    host_program p = new_host_program("PyFunc", "test/wrong", 1, 1);
    tw_status* s = run_host_program(&p, p.y, 1, NULL, &y);
    CHECK(tw_status_cookie(s) == wrong[i].cookie);
    FAILS(s, wrong[i].code, wrong[i].part);
    free_host_program(&p);
    OK(tw_host_function_unregister(NULL, "test/wrong"));
  }
}

typedef struct stopped_call {
  tw_cancel_token* cancel;
  int ended;
} stopped_call;

/* Cancels the step that waits for the output, and ends the call nevertheless. */
static void cancel_the_step(void* user, tw_host_call* call) {
  stopped_call* stopped = user;
  CHECK(!tw_host_call_cancelled(call));
  tw_cancel_token_cancel(stopped->cancel);
  while (!tw_host_call_cancelled(call)) sched_yield();
  tw_tensor* y = scalar(1);
  tw_host_call_finish(call, &y, 1);
  tw_tensor_release(y);
  ++stopped->ended;
}

static void AStepThatIsCancelledDoesNotWaitForItsFunction(void) {
  stopped_call stopped = {NULL, 0};
  float y = 0;
  OK(tw_cancel_token_create(&stopped.cancel));
  OK(tw_host_function_register(NULL, "test/slow", cancel_the_step, &stopped));
  host_program p = new_host_program("PyFunc", "test/slow", 1, 1);
  const tw_run_options until_cancelled = {.size = sizeof until_cancelled, .cancel = stopped.cancel};
  FAILS(run_host_program(&p, p.y, 1, &until_cancelled, &y), TW_CANCELLED, "");
  free_host_program(&p);
  OK(tw_host_function_unregister(NULL, "test/slow")); /* waits for the thread in the function */
  CHECK(stopped.ended == 1);
  tw_cancel_token_destroy(stopped.cancel);
}

typedef struct stuck_call {
  tw_cancel_token* cancel;
  sem_t go, left;
} stuck_call;

/* Cancels the step that waits for the output, then waits for the program. */
static void wait_for_the_program(void* user, tw_host_call* call) {
  stuck_call* stuck = user;
  tw_cancel_token_cancel(stuck->cancel);
  while (sem_wait(&stuck->go) != 0) {
  }
  tw_host_call_fail(call, TW_ABORTED, "too late", 0);
  sem_post(&stuck->left);
}

static void AFunctionThatDoesNotReturnIsGivenUp(void) {
  stuck_call stuck = {0};
  tw_runtime* runtime = NULL;
  uint32_t inside = 7;
  float y = 0;
  CHECK(sem_init(&stuck.go, 0, 0) == 0 && sem_init(&stuck.left, 0, 0) == 0);
  OK(tw_cancel_token_create(&stuck.cancel));
  OK(tw_runtime_create(NULL, 0, &runtime));
  OK(tw_host_function_register(runtime, "test/stuck", wait_for_the_program, &stuck));
  host_program p = new_host_program_on(runtime, "PyFunc", "test/stuck", 1, 1);
  const tw_run_options until_cancelled = {.size = sizeof until_cancelled, .cancel = stuck.cancel};
  FAILS(run_host_program(&p, p.y, 1, &until_cancelled, &y), TW_CANCELLED, "");
  FAILS(tw_host_function_unregister_within(runtime, "test/stuck", -1, &inside), TW_INVALID_ARGUMENT, "wait_ns is -1");
  CHECK(inside == 0);
  OK(tw_host_function_unregister_within(runtime, "test/stuck", 1000, &inside));
  CHECK(inside == 1);
  FAILS(tw_host_function_unregister_within(runtime, "test/stuck", 0, &inside), TW_NOT_FOUND, "'test/stuck'");
  FAILS(run_host_program(&p, p.y, 1, NULL, &y), TW_FAILED_PRECONDITION, "no function of this process has the token 'test/stuck'");
  free_host_program(&p);
  tw_runtime_release(runtime); /* the last reference: its threads end, except the one in the function */
  sem_post(&stuck.go);
  while (sem_wait(&stuck.left) != 0) {
  }
  tw_cancel_token_destroy(stuck.cancel);
}

static void AFunctionThatReturnsInTimeIsNotGivenUp(void) {
  stopped_call stopped = {NULL, 0};
  uint32_t inside = 7;
  float y = 0;
  OK(tw_cancel_token_create(&stopped.cancel));
  OK(tw_host_function_register(NULL, "test/slow", cancel_the_step, &stopped));
  host_program p = new_host_program("PyFunc", "test/slow", 1, 1);
  const tw_run_options until_cancelled = {.size = sizeof until_cancelled, .cancel = stopped.cancel};
  FAILS(run_host_program(&p, p.y, 1, &until_cancelled, &y), TW_CANCELLED, "");
  free_host_program(&p);
  OK(tw_host_function_unregister_within(NULL, "test/slow", INT64_MAX, &inside)); /* waits for the thread in the function */
  CHECK(stopped.ended == 1 && inside == 0);
  tw_cancel_token_destroy(stopped.cancel);
}

static void end_the_thread(void* user, tw_host_call* call) {
  (void)user;
  tw_host_call_fail(call, TW_ABORTED, "the thread ends", 0);
  pthread_exit(NULL);
}

/* As Python's interpreter does to threads that outlive it. */
static void AThreadThatIsEndedInAFunctionIsNotWaitedFor(void) {
  tw_runtime* runtime = NULL;
  float y = 0;
  OK(tw_runtime_create(NULL, 0, &runtime));
  OK(tw_host_function_register(runtime, "test/ends", end_the_thread, NULL));
  host_program p = new_host_program_on(runtime, "PyFunc", "test/ends", 1, 1);
  for (int i = 0; i < 2; ++i) FAILS(run_host_program(&p, p.y, 1, NULL, &y), TW_ABORTED, "the thread ends");
  OK(tw_host_function_unregister(runtime, "test/ends"));
  free_host_program(&p);
  tw_runtime_release(runtime);
}

/* Ends its call on a thread of its own, after it has returned. */
static void* square_later(void* arg) {
  tw_host_call* call = arg;
  const float x = *(const float*)tw_tensor_data(tw_host_call_input(call, 0));
  tw_tensor* y = scalar(x * x);
  tw_host_call_finish(call, &y, 1);
  tw_tensor_release(y);
  return NULL;
}

static void square(void* user, tw_host_call* call) {
  pthread_t thread;
  (void)user;
  CHECK(pthread_create(&thread, NULL, square_later, call) == 0 && pthread_detach(thread) == 0);
}

static void square_gradient(void* user, tw_host_call* call) { /* of x, y and dy */
  float values[3];
  (void)user;
  CHECK(tw_host_call_input_count(call) == 3);
  for (uint32_t i = 0; i < 3; ++i) values[i] = *(const float*)tw_tensor_data(tw_host_call_input(call, i));
  CHECK(values[1] == values[0] * values[0]);
  tw_tensor* dx = scalar(2 * values[0] * values[2]);
  tw_host_call_finish(call, &dx, 1);
  tw_tensor_release(dx);
}

static void AFunctionOfTheProgramMayHaveAGradient(void) {
  float y = 0;
  tw_gradient dx = {0, 0}, again = {0, 0};
  OK(tw_host_function_register(NULL, "test/square", square, NULL));
  OK(tw_host_function_register(NULL, "test/square" TW_HOST_GRADIENT, square_gradient, NULL));
  host_program p = new_host_program("EagerPyFunc", "test/square", 1, 1);
  OK(tw_gradients_add(p.graph, &p.y, NULL, 1, &p.x, 1, &dx));
  OK(run_host_program(&p, p.y, 3, NULL, &y));
  CHECK(y == 9);
  OK(run_host_program(&p, dx.values, 3, NULL, &y));
  CHECK(y == 6);
  FAILS(tw_gradients_add(p.graph, &dx.values, NULL, 1, &p.x, 1, &again), TW_FAILED_PRECONDITION, "op PyFunc is not differentiable");
  free_host_program(&p);
  OK(tw_host_function_unregister(NULL, "test/square"));
  OK(tw_host_function_unregister(NULL, "test/square" TW_HOST_GRADIENT));
}

MAIN(TEST(ABodyIsCalledAfterItsHandleIsGone), TEST(AValueOfTheOuterGraphIsCapturedAndAConstantCopied),
     TEST(AnOpenBodyTakesValuesFromAllThatIsAroundIt), TEST(WhatIsNoFunctionIsRefusedWithItsName),
     TEST(ACallOfAWrongFunctionIsRefusedAndOneOfNoFunctionFailsItsStep), TEST(APartOfAGraphBecomesAFunctionThatDoesTheSameOnce),
     TEST(WhatCannotBeAPartIsRefusedAndChangesNothing), TEST(AFlatGraphHasTheChosenBranchesInPlaceOfCalls),
     TEST(AFunctionOfTheProgramIsAnOperation), TEST(AGraphWithAFunctionThatIsNotThereDoesNotBegin),
     TEST(AFailureOfTheFunctionIsThatOfTheRun), TEST(AStepThatIsCancelledDoesNotWaitForItsFunction),
     TEST(AFunctionThatDoesNotReturnIsGivenUp), TEST(AFunctionThatReturnsInTimeIsNotGivenUp),
     TEST(AThreadThatIsEndedInAFunctionIsNotWaitedFor), TEST(AFunctionOfTheProgramMayHaveAGradient))
