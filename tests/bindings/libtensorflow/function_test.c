/* Functions that are made of a part of a graph: their names and edges, calls, gradients, attributes, failures. Inputs and expected results
 * of the cases are those of TensorFlow's own tests of this part of the API. */
#include "message.h"
#include "support.h"

typedef struct Functions {
  TF_Graph *body, *host;
  TF_Function* f;
} Functions;

static Functions start(void) {
  Functions t = {TF_NewGraph(), TF_NewGraph(), NULL};
  return t;
}
static void end(Functions* t) {
  TF_DeleteFunction(t->f);
  TF_DeleteGraph(t->host);
  TF_DeleteGraph(t->body);
}

static TF_Operation* feed_of(TF_Graph* g, const char* name, TF_Status* s) { return placeholder(g, TF_INT32, name, s); }
static TF_Operation* neg_of(TF_Graph* g, TF_Operation* x, TF_Status* s) { return op1(g, "Neg", "neg", out(x, 0), s); }
static TF_Operation* split3(TF_Graph* g, TF_Operation* x, TF_Status* s) {
  TF_Operation* axis = scalar(g, 0, "split3_const0", s);
  TF_OperationDescription* d = TF_NewOperation(g, "Split", "split3");
  TF_AddInput(d, out(axis, 0));
  TF_AddInput(d, out(x, 0));
  TF_SetAttrInt(d, "num_split", 3);
  TF_SetAttrType(d, "T", TF_INT32);
  TF_Operation* split = TF_FinishOperation(d, s);
  OK(s);
  return split;
}
static TF_Operation* add_outputs(TF_Graph* g, TF_Output a, TF_Output b, TF_Operation* control, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "AddN", "add");
  TF_Output inputs[2] = {a, b};
  TF_AddInputList(d, inputs, 2);
  if (control) TF_AddControlInput(d, control);
  TF_Operation* add = TF_FinishOperation(d, s);
  OK(s);
  return add;
}

/* ---- What a case does with a function ---- */

typedef struct Values {
  int n;
  TF_Output of[4];
} Values;
static Values none(void) {
  Values v = {0, {{NULL, 0}}};
  return v;
}
static Values one(TF_Output a) {
  Values v = {1, {a}};
  return v;
}
static Values two(TF_Output a, TF_Output b) {
  Values v = {2, {a, b}};
  return v;
}
static Values three(TF_Output a, TF_Output b, TF_Output c) {
  Values v = {3, {a, b, c}};
  return v;
}

/* The body is `only` if it is given, and otherwise everything but the sources of the inputs. */
static TF_Function* make(Functions* t, TF_Operation* only, Values in, Values results, const char* const* names, TF_Status* s) {
  const TF_Operation* const list[] = {only};
  return TF_GraphToFunction(t->body, "MyFunc", 0, only ? 1 : -1, only ? list : NULL, in.n, in.of, results.n, results.of, names, NULL, NULL,
                            s);
}
static void define(Functions* t, TF_Operation* only, Values in, Values results, const char* const* names, TF_Status* s) {
  t->f = make(t, only, in, results, names, s);
  OK(s);
  if (!t->f) return;
  SAME(TF_FunctionName(t->f), "MyFunc");
  TF_GraphCopyFunction(t->host, t->f, NULL, s);
  OK(s);
}
static void refuse(Functions* t, TF_Operation* only, Values in, Values results, const char* const* names, TF_Code code, const char* message,
                   TF_Status* s) {
  t->f = make(t, only, in, results, names, s);
  CHECK(t->f == NULL);
  CODE(s, code);
  HAS(TF_Message(s), message);
  end(t);
}

static TF_Operation* use(Functions* t, Values in, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(t->host, "MyFunc", "MyFunc_0");
  for (int i = 0; i < in.n; ++i) TF_AddInput(d, in.of[i]);
  TF_SetDevice(d, "/cpu:0");
  TF_Operation* call = TF_FinishOperation(d, s);
  OK(s);
  CHECK(call != NULL);
  return call;
}
/* Feeds 3 and fetches the first results of the call. */
static void run_call(Functions* t, TF_Operation* feed, TF_Operation* call, int n, const int32_t* wanted, TF_Status* s) {
  if (!call) return;
  TF_Session* session = session_of(t->host, s);
  OK(s);
  for (int i = 0; i < n; ++i) {
    const int32_t got = take_int32(run1(session, feed, feed ? int32_tensor(3) : NULL, out(call, i), s));
    OK(s);
    if (got != wanted[i]) ++failures, fprintf(stderr, "result %d is %d, not %d\n", i, (int)got, (int)wanted[i]);
  }
  end_session(session, s);
}
static void run_scalar(Functions* t, TF_Operation* feed, TF_Operation* call, int32_t wanted, TF_Status* s) {
  run_call(t, feed, call, 1, &wanted, s);
}

static Bytes def_of(TF_Function* f, TF_Buffer* buffer, TF_Status* s) {
  TF_FunctionToFunctionDef(f, buffer, s);
  OK(s);
  const Bytes bytes = {buffer->data, buffer->length};
  return bytes;
}
static void expect(Functions* t, const char* wanted, TF_Status* s) {
  TF_Buffer* buffer = TF_NewBuffer();
  const Text got = function_text(def_of(t->f, buffer, s));
  if (strcmp(got.chars, wanted) != 0) ++failures, fprintf(stderr, "wanted %s\n   got %s\n", wanted, got.chars);
  TF_DeleteBuffer(buffer);
}

/* ---- Names and edges ---- */

static void constant_alone(TF_Status* s) {
  Functions t = start();
  define(&t, NULL, none(), one(out(scalar(t.body, 10, "scalar10", s), 0)), NULL, s);
  run_scalar(&t, NULL, use(&t, none(), s), 10, s);
  expect(&t, "in:; scalar10_0 = Const(); out: scalar10:3; scalar10 = scalar10_0:output:0", s);
  end(&t);
}

/* Negates 3 in the host through a function of one argument. */
static void negate(const char* input, const char* const* names, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation* feed = feed_of(t.body, input, s);
  define(&t, NULL, one(out(feed, 0)), one(out(neg_of(t.body, feed, s), 0)), names, s);
  TF_Operation* host_feed = feed_of(t.host, "feed", s);
  run_scalar(&t, host_feed, use(&t, one(out(host_feed, 0)), s), -3, s);
  expect(&t, wanted, s);
  end(&t);
}
static void one_op(TF_Status* s) { negate("feed", NULL, "in: feed:3; neg_0 = Neg(feed); out: neg:3; neg = neg_0:y:0", s); }
static void output_names(TF_Status* s) {
  const char* const names[] = {"negated_num"};
  negate("feed", names, "in: feed:3; neg = Neg(feed); out: negated_num:3; negated_num = neg:y:0", s);
}
static void output_name_of_input(TF_Status* s) {
  const char* const names[] = {"negation"};
  negate("negation", names, "in: negation_0:3; neg = Neg(negation_0); out: negation:3; negation = neg:y:0", s);
}

static void identity(TF_Status* s) {
  Functions t = start();
  TF_Operation* feed = feed_of(t.body, "feed", s);
  define(&t, NULL, one(out(feed, 0)), one(out(feed, 0)), NULL, s);
  TF_Operation* host_feed = feed_of(t.host, "feed", s);
  run_scalar(&t, host_feed, use(&t, one(out(host_feed, 0)), s), 3, s);
  expect(&t, "in: feed_0:3; out: feed:3; feed = feed_0", s);
  end(&t);
}
static void permute(const char* const* names, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  define(&t, NULL, two(out(feed1, 0), out(feed2, 0)), two(out(feed2, 0), out(feed1, 0)), names, s);
  TF_Operation *first = scalar(t.host, 2, "scalar", s), *feed = feed_of(t.host, "feed", s);
  const int32_t swapped[] = {3, 2};
  run_call(&t, feed, use(&t, two(out(first, 0), out(feed, 0)), s), 2, swapped, s);
  expect(&t, wanted, s);
  end(&t);
}
static void permutation(TF_Status* s) {
  permute(NULL, "in: feed1_0:3 feed2_0:3; out: feed2:3 feed1:3; feed2 = feed2_0; feed1 = feed1_0", s);
}
static void permutation_named(TF_Status* s) {
  const char* const names[] = {"first", "second"};
  permute(names, "in: feed1:3 feed2:3; out: first:3 second:3; first = feed2; second = feed1", s);
}

/* A sum of two arguments, given out `copies` times. */
static void sum(int copies, const char* const* names, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  TF_Output add = out(add_n(t.body, feed1, feed2, "add", s), 0);
  define(&t, NULL, two(out(feed1, 0), out(feed2, 0)), copies == 0 ? none() : copies == 1 ? one(add) : two(add, add), names, s);
  TF_Operation *first = scalar(t.host, 2, "scalar", s), *feed = feed_of(t.host, "feed", s);
  const int32_t five[] = {5, 5};
  run_call(&t, feed, use(&t, two(out(first, 0), out(feed, 0)), s), copies, five, s);
  expect(&t, wanted, s);
  end(&t);
}
static void two_inputs(TF_Status* s) { sum(1, NULL, "in: feed1:3 feed2:3; add_0 = AddN(feed1, feed2); out: add:3; add = add_0:sum:0", s); }
static void no_outputs(TF_Status* s) { sum(0, NULL, "in: feed1:3 feed2:3; add = AddN(feed1, feed2); out:", s); }
static void duplicate_outputs(TF_Status* s) {
  sum(2, NULL, "in: feed1:3 feed2:3; add_1 = AddN(feed1, feed2); out: add:3 add_0:3; add = add_1:sum:0; add_0 = add_1:sum:0", s);
}
static void duplicate_outputs_named(TF_Status* s) {
  const char* const names[] = {"out1", "out2"};
  sum(2, names, "in: feed1:3 feed2:3; add = AddN(feed1, feed2); out: out1:3 out2:3; out1 = add:sum:0; out2 = add:sum:0", s);
}

/* (a + b) and (a + b) + c of 2, 10 and the feed. */
static void sums(int both, const char* const* names, int again, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s), *feed3 = feed_of(t.body, "feed3", s);
  TF_Operation* add1 = add_n(t.body, feed1, feed2, "add1", s);
  TF_Output add2 = out(add_n(t.body, add1, feed3, "add2", s), 0);
  define(&t, NULL, three(out(feed1, 0), out(feed2, 0), out(feed3, 0)), both ? two(out(add1, 0), add2) : one(add2), names, s);
  if (again) { /* through its message */
    TF_Buffer* buffer = TF_NewBuffer();
    def_of(t.f, buffer, s);
    TF_DeleteFunction(t.f);
    t.f = TF_FunctionImportFunctionDef(buffer->data, buffer->length, s);
    OK(s);
    TF_DeleteBuffer(buffer);
    TF_GraphCopyFunction(t.host, t.f, NULL, s);
    OK(s);
  }
  TF_Operation *first = scalar(t.host, 2, "two", s), *second = scalar(t.host, 10, "ten", s), *feed = feed_of(t.host, "feed", s);
  const int32_t pair[] = {12, 15};
  run_call(&t, feed, use(&t, three(out(first, 0), out(second, 0), out(feed, 0)), s), both ? 2 : 1, both ? pair : pair + 1, s);
  expect(&t, wanted, s);
  end(&t);
}
static void two_ops(TF_Status* s) {
  sums(0, NULL, 0,
       "in: feed1:3 feed2:3 feed3:3; add1 = AddN(feed1, feed2); add2_0 = AddN(add1:sum:0, feed3); out: add2:3; add2 = add2_0:sum:0", s);
}
static void two_ops_two_outputs(TF_Status* s) {
  sums(1, NULL, 0,
       "in: feed1:3 feed2:3 feed3:3; add1_0 = AddN(feed1, feed2); add2_0 = AddN(add1_0:sum:0, feed3); out: add1:3 add2:3; "
       "add1 = add1_0:sum:0; add2 = add2_0:sum:0",
       s);
}
static void import_function_def(TF_Status* s) {
  const char* const names[] = {"internal_out", "final_out"};
  sums(1, names, 1,
       "in: feed1:3 feed2:3 feed3:3; add1 = AddN(feed1, feed2); add2 = AddN(add1:sum:0, feed3); out: internal_out:3 final_out:3; "
       "internal_out = add1:sum:0; final_out = add2:sum:0",
       s);
}

static void subset(TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s), *feed3 = feed_of(t.body, "feed3", s);
  TF_Operation* add1 = add_n(t.body, feed1, feed2, "add1", s);
  TF_Operation* add2 = add_n(t.body, add1, feed3, "add2", s);
  define(&t, add2, two(out(add1, 0), out(feed3, 0)), one(out(add2, 0)), NULL, s);
  TF_Operation *first = scalar(t.host, 2, "two", s), *feed = feed_of(t.host, "feed", s);
  run_scalar(&t, feed, use(&t, two(out(first, 0), out(feed, 0)), s), 5, s);
  expect(&t, "in: add1:3 feed3:3; add2_0 = AddN(add1, feed3); out: add2:3; add2 = add2_0:sum:0", s);
  end(&t);
}

/* Gives out parts of [1, 2, 3, 4, 5, 6]. */
static void parts(int n, const int* which, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation* feed = feed_of(t.body, "feed", s);
  TF_Operation* split = split3(t.body, feed, s);
  define(&t, NULL, one(out(feed, 0)), n == 1 ? one(out(split, which[0])) : two(out(split, which[0]), out(split, which[1])), NULL, s);
  TF_Operation* host_feed = feed_of(t.host, "feed", s);
  TF_Operation* call = use(&t, one(out(host_feed, 0)), s);
  TF_Session* session = session_of(t.host, s);
  const int64_t dims[] = {6};
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  for (int i = 0; i < n; ++i) {
    TF_Tensor* part = run1(session, host_feed, tensor_of(TF_INT32, dims, 1, values, sizeof values), out(call, i), s);
    OK(s);
    CHECK(part && TF_TensorByteSize(part) == 8 && memcmp(TF_TensorData(part), values + 2 * which[i], 8) == 0);
    TF_DeleteTensor(part);
  }
  end_session(session, s);
  expect(&t, wanted, s);
  end(&t);
}
static void one_output_of_split(TF_Status* s) {
  const int which[] = {1};
  parts(1, which,
        "in: feed:3; split3_const0 = Const(); split3_0 = Split(split3_const0:output:0, feed); out: split3:3; split3 = split3_0:output:1",
        s);
}
static void two_outputs_of_split(TF_Status* s) {
  const int which[] = {0, 2};
  parts(2, which,
        "in: feed:3; split3_const0 = Const(); split3_1 = Split(split3_const0:output:0, feed); out: split3:3 split3_0:3; "
        "split3 = split3_1:output:0; split3_0 = split3_1:output:2",
        s);
}
static void outputs_of_split_as_inputs(TF_Status* s) {
  Functions t = start();
  TF_Operation* split = split3(t.body, feed_of(t.body, "feed", s), s);
  TF_Operation* add = add_outputs(t.body, out(split, 0), out(split, 2), NULL, s);
  define(&t, add, two(out(split, 0), out(split, 2)), one(out(add, 0)), NULL, s);
  TF_Operation *first = scalar(t.host, 2, "two", s), *feed = feed_of(t.host, "feed", s);
  run_scalar(&t, feed, use(&t, two(out(first, 0), out(feed, 0)), s), 5, s);
  expect(&t, "in: split3:3 split3_0:3; add_0 = AddN(split3, split3_0); out: add:3; add = add_0:sum:0", s);
  end(&t);
}

static void while_loop(TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  TF_Output inputs[] = {{feed1, 0}, {feed2, 0}}, outputs[2] = {{NULL, -1}, {NULL, -1}};
  TF_WhileParams p = TF_NewWhile(t.body, inputs, 2, s);
  OK(s);
  p.name = "test_loop"; /* while (a < b) a += b + 1 */
  p.cond_output = out(op2(p.cond_graph, "Less", "less", p.cond_inputs[0], p.cond_inputs[1], s), 0);
  TF_Operation* add1 = add_outputs(p.body_graph, p.body_inputs[0], p.body_inputs[1], NULL, s);
  TF_Operation* add2 = add_n(p.body_graph, add1, scalar(p.body_graph, 1, "scalar", s), "add2", s);
  p.body_outputs[0] = out(add2, 0);
  p.body_outputs[1] = p.body_inputs[1];
  TF_FinishWhile(&p, s, outputs);
  OK(s);
  define(&t, NULL, two(out(feed1, 0), out(feed2, 0)), one(outputs[0]), NULL, s);
  TF_Operation *five = scalar(t.host, 5, "five", s), *feed = feed_of(t.host, "feed", s);
  run_scalar(&t, feed, use(&t, two(out(feed, 0), out(five, 0)), s), 9, s);
  TF_Buffer* buffer = TF_NewBuffer();
  const Text text = function_text(def_of(t.f, buffer, s));
  TF_DeleteBuffer(buffer);
  HAS(text.chars, "in: feed1:3 feed2:3;");
  HAS(text.chars, "test_loop/Enter = Enter(feed1)");
  HAS(text.chars, "test_loop/Merge = Merge(test_loop/Enter:output:0, ");
  HAS(text.chars, "test_loop/Switch = Switch(test_loop/Merge:output:0, ");
  HAS(text.chars, "test_loop/Exit = Exit(test_loop/Switch:output_false:0)");
  HAS(text.chars, "out: test_loop_exit:3; test_loop_exit = test_loop/Exit:output:0");
  end(&t);
}

/* ---- Control edges ---- */

static void control(int from_input, const char* wanted, TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  TF_Operation* before = from_input ? feed1 : scalar(t.body, 5, "scalar", s);
  TF_Operation* add = add_outputs(t.body, out(feed1, 0), out(feed2, 0), before, s);
  define(&t, NULL, two(out(feed1, 0), out(feed2, 0)), one(out(add, 0)), NULL, s);
  TF_Operation *first = scalar(t.host, 2, "scalar", s), *feed = feed_of(t.host, "feed", s);
  run_scalar(&t, feed, use(&t, two(out(first, 0), out(feed, 0)), s), 5, s);
  expect(&t, wanted, s);
  end(&t);
}
static void control_dependency(TF_Status* s) {
  control(0, "in: feed1:3 feed2:3; scalar = Const(); add_0 = AddN(feed1, feed2, ^scalar); out: add:3; add = add_0:sum:0", s);
}
static void control_from_input(TF_Status* s) {
  control(1, "in: feed1:3 feed2:3; add_0 = AddN(feed1, feed2, ^feed1); out: add:3; add = add_0:sum:0", s);
}
static void control_outside(TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  TF_Operation* add = add_outputs(t.body, out(feed1, 0), out(feed2, 0), scalar(t.body, 5, "scalar", s), s);
  refuse(&t, add, two(out(feed1, 0), out(feed2, 0)), one(out(add, 0)), NULL, TF_INVALID_ARGUMENT,
         "The source of control edge [id=3 scalar:-1 -> add:-1] is not in the body. Encountered while creating function 'MyFunc'", s);
}

/* ---- Failures ---- */

static void inputs_with_outputs(TF_Status* s) {
  Functions t = start();
  const int64_t dims[] = {3};
  const int32_t values[] = {1, 2, 3};
  TF_Operation* split = split3(t.body, constant(t.body, tensor_of(TF_INT32, dims, 1, values, sizeof values), "const_array", s), s);
  TF_Operation* add = add_outputs(t.body, out(split, 0), out(split, 2), NULL, s);
  refuse(
      &t, NULL, two(out(split, 0), out(split, 2)), one(out(add, 0)), NULL, TF_INVALID_ARGUMENT,
      "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. Node split3 has 3 outputs. Encountered while "
      "creating function 'MyFunc'",
      s);
}
static void duplicate_inputs(TF_Status* s) {
  Functions t = start();
  TF_Operation* feed1 = feed_of(t.body, "feed1", s);
  TF_Operation* add = add_n(t.body, feed1, feed1, "add", s);
  refuse(&t, NULL, two(out(feed1, 0), out(feed1, 0)), one(out(add, 0)), NULL, TF_INVALID_ARGUMENT,
         "TF_Output feed1:0 appears more than once in the input list", s);
}
static void duplicate_names(TF_Status* s) {
  Functions t = start();
  TF_Operation *feed1 = feed_of(t.body, "feed1", s), *feed2 = feed_of(t.body, "feed2", s);
  TF_Operation* add1 = add_n(t.body, feed1, feed2, "add1", s);
  TF_Operation* add2 = add_n(t.body, add1, feed2, "add2", s);
  const char* const names[] = {"my_out", "my_out"};
  refuse(&t, NULL, two(out(feed1, 0), out(feed2, 0)), two(out(add1, 0), out(add2, 0)), names, TF_INVALID_ARGUMENT,
         "Cannot have duplicate output names. Name 'my_out' appears more than once in 'output_names' array.", s);
}
/* Two feeds and their sum, of which the case names wrong parts. */
static TF_Operation* wrong(Functions* t, Values* in, TF_Status* s) {
  *t = start();
  *in = two(out(feed_of(t->body, "feed1", s), 0), out(feed_of(t->body, "feed2", s), 0));
  return add_n(t->body, in->of[0].oper, in->of[1].oper, "add", s);
}
static void input_index(TF_Status* s) {
  Functions t;
  Values in;
  TF_Operation* add = wrong(&t, &in, s);
  in.of[1].index = 2;
  refuse(
      &t, NULL, in, one(out(add, 0)), NULL, TF_OUT_OF_RANGE,
      "Node 'feed2' (type: 'Placeholder', num of outputs: 1) does not have output 2\n\tEncountered while processing input 1 into function "
      "'MyFunc'",
      s);
}
static void input_null(TF_Status* s) {
  Functions t;
  Values in;
  TF_Operation* add = wrong(&t, &in, s);
  in.of[1].oper = NULL;
  refuse(&t, NULL, in, one(out(add, 0)), NULL, TF_INVALID_ARGUMENT,
         "Node is null\n\tEncountered while processing input 1 into function 'MyFunc'", s);
}
static void output_index(TF_Status* s) {
  Functions t;
  Values in;
  TF_Operation* add = wrong(&t, &in, s);
  refuse(
      &t, NULL, in, one(out(add, 3)), NULL, TF_OUT_OF_RANGE,
      "Node 'add' (type: 'AddN', num of outputs: 1) does not have output 3\n\tEncountered while processing output 0 from function 'MyFunc'",
      s);
}
static void output_null(TF_Status* s) {
  Functions t;
  Values in;
  wrong(&t, &in, s);
  refuse(&t, NULL, in, one(out(NULL, 3)), NULL, TF_INVALID_ARGUMENT,
         "Node is null\n\tEncountered while processing output 0 from function 'MyFunc'", s);
}
static void missing_input(TF_Status* s) {
  Functions t;
  Values in;
  TF_Operation* add = wrong(&t, &in, s);
  in.n = 1;
  refuse(&t, add, in, one(out(add, 0)), NULL, TF_INVALID_ARGUMENT,
         "Input 1, 'feed2:0', of node 'add' in function 'MyFunc' is not available. You might need to include it in inputs or include its "
         "source "
         "node in the body",
         s);
}
static void output_outside(TF_Status* s) {
  Functions t;
  Values in;
  TF_Operation* add = wrong(&t, &in, s);
  TF_Operation* constant2 = scalar(t.body, 2, "scalar", s);
  refuse(&t, add, in, two(out(add, 0), out(constant2, 0)), NULL, TF_INVALID_ARGUMENT,
         "TF_Output scalar:0 is neither in the function body nor among function inputs. Encountered while creating function 'MyFunc'", s);
}

/* ---- Attributes and names ---- */

static TF_Function* negation(const char* name, const char* description, int append_hash, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = feed_of(g, "feed", s);
  TF_Output in = out(feed, 0), result = out(neg_of(g, feed, s), 0);
  TF_Function* f = TF_GraphToFunction(g, name, (unsigned char)append_hash, -1, NULL, 1, &in, 1, &result, NULL, NULL, description, s);
  OK(s);
  TF_DeleteGraph(g);
  return f;
}
static Bytes signature_of(TF_Function* f, TF_Buffer* buffer, TF_Status* s) {
  return find_field(def_of(f, buffer, s), FUNCTION_SIGNATURE).bytes;
}
static void is_text(Bytes b, const char* text) { CHECK(b.n == strlen(text) && memcmp(b.at, text, b.n) == 0); }

static void arg_attr(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", "node");
  TF_SetAttrType(d, "dtype", TF_INT32);
  TF_SetAttrString(d, "_test_attr", "value", 5);
  TF_Output in = out(TF_FinishOperation(d, s), 0);
  OK(s);
  TF_Function* f = TF_GraphToFunction(g, "func", 0, -1, NULL, 1, &in, 0, NULL, NULL, NULL, NULL, s);
  OK(s);
  TF_Buffer* buffer = TF_NewBuffer();
  const Bytes def = def_of(f, buffer, s);
  CHECK(count_fields(def, FUNCTION_ARG_ATTR) == 1);
  const Field attrs = find_field(find_field(def, FUNCTION_ARG_ATTR).bytes, 2);
  is_text(find_field(find_entry(attrs.bytes, 1, "_test_attr", 10), 2).bytes, "value");
  TF_DeleteBuffer(buffer);
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}
static void invalid_proto(TF_Status* s) {
  const char zeros[4] = {0, 0, 0, 0};
  CHECK(TF_FunctionImportFunctionDef(zeros, 4, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
}
static void attribute(TF_Status* s) {
  TF_Function* f = negation("MyFunc", NULL, 0, s);
  TF_Buffer* b = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(f, "foo_attr", b, s);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "Function 'MyFunc' has no attr named 'foo_attr'.");
  TF_DeleteBuffer(b);
  const char value[] = "\x12\x0ftest_attr_value"; /* a string */
  TF_FunctionSetAttrValueProto(f, "test_attr_name", value, 17, s);
  OK(s);
  for (int again = 0; again < 2; ++again) {
    b = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(f, "test_attr_name", b, s);
    OK(s);
    CHECK(b->length == 17 && memcmp(b->data, value, 17) == 0);
    TF_DeleteBuffer(b);
    b = TF_NewBuffer(); /* the same through the message of the function */
    def_of(f, b, s);
    TF_DeleteFunction(f);
    f = TF_FunctionImportFunctionDef(b->data, b->length, s);
    OK(s);
    TF_DeleteBuffer(b);
  }
  TF_DeleteFunction(f);
}
static void description(TF_Status* s) {
  TF_Function* f = negation("MyFunc", "Return something", 0, s);
  TF_Buffer* b = TF_NewBuffer();
  is_text(find_field(signature_of(f, b, s), OP_DESCRIPTION).bytes, "Return something");
  TF_DeleteBuffer(b);
  TF_DeleteFunction(f);
}
static void name(TF_Status* s) {
  TF_Function* f = negation("long_func_name", "Return something", 0, s);
  TF_Buffer* b = TF_NewBuffer();
  is_text(find_field(signature_of(f, b, s), OP_NAME).bytes, "long_func_name");
  TF_DeleteBuffer(b);
  TF_DeleteFunction(f);
}
/* TensorFlow's text of the hash is its own; equal functions have equal names, others have not. */
static void append_hash(TF_Status* s) {
  TF_Function *f = negation("func_name_base", NULL, 1, s), *same = negation("func_name_base", NULL, 1, s),
              *other = negation("func_name_base", "Return something", 1, s);
  CHECK(strncmp(TF_FunctionName(f), "func_name_base_", 15) == 0 && strlen(TF_FunctionName(f)) > 20);
  SAME(TF_FunctionName(same), TF_FunctionName(f));
  CHECK(strcmp(TF_FunctionName(other), TF_FunctionName(f)) != 0);
  TF_DeleteFunction(f);
  TF_DeleteFunction(same);
  TF_DeleteFunction(other);
}

/* ---- Functions of graphs ---- */

static void op_def_of(TF_Function* f, int inputs, int stateful, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, NULL, s);
  OK(s);
  TF_Buffer* b = TF_NewBuffer();
  TF_GraphGetOpDef(g, TF_FunctionName(f), b, s);
  OK(s);
  const Bytes def = {b->data, b->length};
  is_text(find_field(def, OP_NAME).bytes, TF_FunctionName(f));
  CHECK(count_fields(def, OP_INPUT) == inputs && count_fields(def, OP_OUTPUT) == 1);
  CHECK((int)find_field(def, OP_STATEFUL).value == stateful);
  TF_DeleteBuffer(b);
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}
static void op_def(TF_Status* s) { op_def_of(negation("MyFunc", NULL, 0, s), 1, 0, s); }
static void stateful_op_def(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const int64_t dims[] = {2};
  const int32_t shape[] = {37, 1};
  TF_Operation* shape_op = constant(g, tensor_of(TF_INT32, dims, 1, shape, sizeof shape), "shape", s);
  TF_OperationDescription* d = TF_NewOperation(g, "RandomUniform", "random_uniform");
  TF_AddInput(d, out(shape_op, 0));
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Output random = out(TF_FinishOperation(d, s), 0);
  OK(s);
  TF_Function* f = TF_GraphToFunction(g, "MyFunc", 0, -1, NULL, 0, NULL, 1, &random, NULL, NULL, "", s);
  OK(s);
  TF_DeleteGraph(g);
  op_def_of(f, 0, 1, s);
}

static void functions_of_graph(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Function *f0 = negation("FooFunc0", NULL, 0, s), *f1 = negation("FooFunc1", NULL, 0, s), *got[2] = {NULL, NULL};
  CHECK(TF_GraphNumFunctions(g) == 0);
  TF_GraphGetFunctions(g, NULL, 0, s);
  OK(s);
  TF_GraphCopyFunction(g, f0, NULL, s);
  CHECK(TF_GraphNumFunctions(g) == 1 && TF_GraphGetFunctions(g, got, 0, s) == 0);
  CHECK(TF_GraphGetFunctions(g, got, 1, s) == 1);
  TF_Buffer *a = TF_NewBuffer(), *b = TF_NewBuffer();
  def_of(f0, a, s);
  def_of(got[0], b, s);
  const Text wanted = function_text((Bytes){a->data, a->length}), found = function_text((Bytes){b->data, b->length});
  SAME(wanted.chars, found.chars);
  TF_DeleteBuffer(a);
  TF_DeleteBuffer(b);
  TF_DeleteFunction(got[0]);
  TF_GraphCopyFunction(g, f1, NULL, s);
  CHECK(TF_GraphNumFunctions(g) == 2 && TF_GraphGetFunctions(g, got, 2, s) == 2);
  CHECK(strcmp(TF_FunctionName(got[0]), TF_FunctionName(got[1])) != 0);
  TF_DeleteFunction(got[0]);
  TF_DeleteFunction(got[1]);
  TF_DeleteFunction(f0);
  TF_DeleteFunction(f1);
  TF_DeleteGraph(g);
}

/* ---- Gradients of functions ---- */

/* Checks the numbers of functions and of gradients in the GraphDef, and the pairs "function:gradient". */
static void library(TF_Graph* g, int functions, int n, const char* const* pairs, TF_Status* s) {
  TF_Buffer* b = TF_NewBuffer();
  TF_GraphToGraphDef(g, b, s);
  OK(s);
  const Bytes def = {b->data, b->length};
  Bytes lib = find_field(def, GRAPH_LIBRARY).bytes;
  CHECK(count_fields(lib, LIBRARY_FUNCTION) == functions);
  int seen = 0;
  for (Field f; next_field(&lib, &f);) {
    if (f.number != LIBRARY_GRADIENT) continue;
    Text pair = {"", 0};
    put_bytes(&pair, find_field(f.bytes, 1).bytes);
    put_text(&pair, ":");
    put_bytes(&pair, find_field(f.bytes, 2).bytes);
    ++seen;
    int known = 0;
    for (int i = 0; i < n; ++i) known += strcmp(pair.chars, pairs[i]) == 0;
    CHECK(known == 1);
  }
  CHECK(seen == n);
  TF_DeleteBuffer(b);
}
static void set_gradient(TF_Status* s) {
  Functions t = start();
  t.f = negation("MyFunc", NULL, 0, s);
  TF_Function* grad = negation("MyGrad", NULL, 0, s);
  const char* const pairs[] = {"MyFunc:MyGrad"};
  for (int i = 0; i < 2; ++i) { /* the second time does nothing */
    TF_GraphCopyFunction(t.host, t.f, grad, s);
    OK(s);
    library(t.host, 2, 1, pairs, s);
  }
  TF_GraphCopyFunction(t.host, t.f, NULL, s);
  OK(s);
  TF_DeleteFunction(grad);
  library(t.host, 2, 1, pairs, s);
  TF_Operation* feed = feed_of(t.host, "feed", s);
  run_scalar(&t, feed, use(&t, one(out(feed, 0)), s), -3, s);
  end(&t);
}
static void same_gradient(TF_Status* s) {
  Functions t = start();
  TF_Function *f1 = negation("FooFunc1", NULL, 0, s), *f2 = negation("FooFunc2", NULL, 0, s), *grad = negation("MyGrad", NULL, 0, s);
  TF_GraphCopyFunction(t.host, f1, grad, s);
  OK(s);
  TF_GraphCopyFunction(t.host, f2, grad, s);
  OK(s);
  const char* const pairs[] = {"FooFunc1:MyGrad", "FooFunc2:MyGrad"};
  library(t.host, 3, 2, pairs, s);
  TF_DeleteFunction(f1);
  TF_DeleteFunction(f2);
  TF_DeleteFunction(grad);
  end(&t);
}
static void gradient_later(TF_Status* s) {
  Functions t = start();
  TF_Function *f = negation("FooFunc", NULL, 0, s), *grad = negation("MyGrad", NULL, 0, s);
  TF_GraphCopyFunction(t.host, f, NULL, s);
  OK(s);
  TF_GraphCopyFunction(t.host, grad, NULL, s);
  OK(s);
  library(t.host, 2, 0, NULL, s);
  TF_GraphCopyFunction(t.host, f, grad, s);
  OK(s);
  const char* const pairs[] = {"FooFunc:MyGrad"};
  library(t.host, 2, 1, pairs, s);
  TF_DeleteFunction(f);
  TF_DeleteFunction(grad);
  end(&t);
}
static void gradient_errors(TF_Status* s) {
  Functions t = start();
  t.f = negation("MyFunc", NULL, 0, s);
  TF_Function *grad1 = negation("MyGrad1", NULL, 0, s), *grad2 = negation("MyGrad2", NULL, 0, s);
  TF_GraphCopyFunction(t.host, NULL, t.f, s);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "'func' argument to TF_GraphCopyFunction cannot be null");
  TF_GraphCopyFunction(t.host, t.f, grad1, s);
  OK(s);
  TF_GraphCopyFunction(t.host, t.f, grad2, s);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "Cannot assign gradient function 'MyGrad2' to 'MyFunc' because it already has gradient function 'MyGrad1'");
  TF_DeleteFunction(grad1);
  TF_DeleteFunction(grad2);
  end(&t);
}

int main(void) {
  const Case cases[] = {{"OneOp_ZeroInputs_OneOutput", constant_alone},
                        {"OneOp_OneInput_OneOutput", one_op},
                        {"OneOutput_OutputNames", output_names},
                        {"OutputNames_SameNameAsInput", output_name_of_input},
                        {"ZeroOps_Identity", identity},
                        {"ZeroOps_Permutation", permutation},
                        {"ZeroOps_Permutation_OutputNames", permutation_named},
                        {"OneOp_TwoInputs_OneOutput", two_inputs},
                        {"OneOp_TwoInputs_ZeroOutputs", no_outputs},
                        {"TwoOps_ThreeInputs_OneOutput", two_ops},
                        {"OneOp_TwoInputs_TwoDuplicateOutputs", duplicate_outputs},
                        {"TwoDuplicateOutputs_OutputNames", duplicate_outputs_named},
                        {"TwoOps_ThreeInputs_TwoOutputs", two_ops_two_outputs},
                        {"FromSubsetOfOps", subset},
                        {"UsingOneOutputOfSplit", one_output_of_split},
                        {"UsingTwoOutputsOfSplit", two_outputs_of_split},
                        {"UsingTwoOutputsOfSplitAsInputs", outputs_of_split_as_inputs},
                        {"NodesUsedInInputsMustHaveSingleOutput", inputs_with_outputs},
                        {"FunctionWithWhileLoop", while_loop},
                        {"ControlDependency", control_dependency},
                        {"ControlDependencyOutsideOfBody", control_outside},
                        {"ControlDependencyOutsideOfBody_FromInputNode", control_from_input},
                        {"DuplicateInputsAreNotAllowed", duplicate_inputs},
                        {"DuplicateOutputNamesAreNotAllowed", duplicate_names},
                        {"InvalidInputTensor_HighIndex", input_index},
                        {"InvalidInputTensor_BadNodePtr", input_null},
                        {"InvalidOutputTensor_HighIndex", output_index},
                        {"InvalidOutputTensor_BadNodePtr", output_null},
                        {"NodeMissingInput", missing_input},
                        {"OutputOpNotInBody", output_outside},
                        {"GraphToFunctionDefWithArgAttr", arg_attr},
                        {"SetGradientAndRun", set_gradient},
                        {"SameGradForTwoFunctions", same_gradient},
                        {"AddFunctionsThenMakeOneGradientOfAnother", gradient_later},
                        {"GradientErrorCases", gradient_errors},
                        {"ImportFunctionDef", import_function_def},
                        {"ImportFunctionDef_InvalidProto", invalid_proto},
                        {"Attribute", attribute},
                        {"Description", description},
                        {"Name", name},
                        {"AppendHash", append_hash},
                        {"GetOpDef", op_def},
                        {"StatefulOpDef", stateful_op_def},
                        {"GetFunctionsFromGraph", functions_of_graph}};
  return run_cases(cases, COUNT(cases));
}
