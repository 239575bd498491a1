/* Steps: sessions, partial runs, gradients, loops, functions, SavedModels, the sessions of the first API. */
#include "support.h"

static void session(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* add = add_n(g, feed, scalar(g, 2, "two", s), "add", s);
  TF_Session* session = session_of(g, s);
  OK(s);
  CHECK(take_int32(run1(session, feed, int32_tensor(3), out(add, 0), s)) == 5);
  OK(s);
  TF_Operation* neg = op1(g, "Neg", "neg", out(add, 0), s); /* the graph grows */
  CHECK(take_int32(run1(session, feed, int32_tensor(7), out(neg, 0), s)) == -9);
  OK(s);
  TF_Tensor* none = run1(session, NULL, NULL, out(neg, 0), s); /* the feed is missing */
  CODE(s, TF_INVALID_ARGUMENT);
  CHECK(none == NULL);
  TF_DeviceList* devices = TF_SessionListDevices(session, s);
  OK(s);
  CHECK(TF_DeviceListCount(devices) >= 1);
  HAS(TF_DeviceListName(devices, 0, s), "/device:CPU:0");
  SAME(TF_DeviceListType(devices, 0, s), "CPU");
  TF_DeviceListName(devices, 1000, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteDeviceList(devices);
  TF_DeleteGraph(g); /* before its session */
  end_session(session, s);
}

static void reduction(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* min = op2(g, "Min", "min", out(feed, 0), out(scalar(g, 0, "axis", s), 0), s);
  TF_Session* session = session_of(g, s);
  const int64_t dims[] = {3};
  const int32_t values[] = {3, 2, 5};
  CHECK(take_int32(run1(session, feed, tensor_of(TF_INT32, dims, 1, values, sizeof values), out(min, 0), s)) == 2);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void run_metadata(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* neg = op1(g, "Neg", "negative", out(feed, 0), s);
  TF_Session* session = session_of(g, s);
  TF_Buffer* options = TF_NewBufferFromString("\x08\x03", 2); /* FULL_TRACE */
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output in = out(feed, 0), fetch = out(neg, 0);
  TF_Tensor *value = int32_tensor(4), *result = NULL;
  TF_SessionRun(session, options, &in, &value, 1, &fetch, &result, 1, NULL, 0, metadata, s);
  OK(s);
  CHECK(take_int32(result) == -4);
  CHECK(metadata->length > 10 && ((const char*)metadata->data)[0] == 0x0a);
  TF_DeleteTensor(value);
  TF_DeleteBuffer(options);
  TF_DeleteBuffer(metadata);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void partial_run(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation *a = placeholder(g, TF_INT32, "A", s), *b = placeholder(g, TF_INT32, "B", s);
  TF_Operation* plus2 = add_n(g, a, scalar(g, 2, "two", s), "plus2", s);
  TF_Operation* plus_b = add_n(g, plus2, b, "plusB", s);
  TF_Session* session = session_of(g, s);
  TF_Output feeds[] = {{a, 0}, {b, 0}}, fetches[] = {{plus2, 0}, {plus_b, 0}};
  const char* handle = NULL;
  TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
  OK(s);
  TF_Tensor *value = int32_tensor(1), *result = NULL;
  TF_SessionPRun(session, handle, feeds, &value, 1, fetches, &result, 1, NULL, 0, s);
  OK(s);
  CHECK(take_int32(result) == 3);
  TF_DeleteTensor(value);
  value = int32_tensor(4);
  TF_SessionPRun(session, handle, feeds + 1, &value, 1, fetches + 1, &result, 1, NULL, 0, s);
  OK(s);
  CHECK(take_int32(result) == 7);
  TF_DeleteTensor(value);
  TF_DeletePRunHandle(handle);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void variables(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(g, "VarHandleOp", "v");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_SetAttrShape(d, "shape", NULL, 0);
  TF_SetAttrString(d, "shared_name", "v", 1);
  TF_Operation* v = TF_FinishOperation(d, s);
  TF_Operation* one = constant(g, float_tensor(1), "one", s);
  TF_Operation* assign = op2(g, "AssignVariableOp", "assign", out(v, 0), out(one, 0), s);
  TF_Operation* add = op2(g, "AssignAddVariableOp", "add", out(v, 0), out(one, 0), s);
  d = TF_NewOperation(g, "ReadVariableOp", "read");
  TF_AddInput(d, out(v, 0));
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Operation* read = TF_FinishOperation(d, s);
  OK(s);
  TF_Session* session = session_of(g, s);
  const TF_Operation* targets[] = {assign};
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL, s);
  OK(s);
  targets[0] = add;
  for (int i = 0; i < 3; ++i) {
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL, s);
    OK(s);
  }
  CHECK(take_float(run1(session, NULL, NULL, out(read, 0), s)) == 4);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void evaluate_constant(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* three = scalar(g, 3, "three", s);
  TF_Operation* neg = op1(g, "Neg", "neg", out(three, 0), s);
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* add = add_n(g, feed, neg, "add", s);
  TF_Tensor* value = NULL;
  CHECK(TF_TryEvaluateConstant(g, out(neg, 0), &value, s) == 1);
  OK(s);
  CHECK(take_int32(value) == -3);
  CHECK(TF_TryEvaluateConstant(g, out(add, 0), &value, s) == 0);
  OK(s);
  CHECK(value == NULL);
  TF_DeleteGraph(g);
}

/* ---- Gradients ---- */

static TF_Operation* matrix(TF_Graph* g, const float* values, const char* name, TF_Status* s) {
  const int64_t dims[] = {2, 2};
  return constant(g, tensor_of(TF_FLOAT, dims, 2, values, 16), name, s);
}
static void gradients_of(int given, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, ones[] = {1, 1, 1, 1};
  TF_Output x[] = {out(matrix(g, a, "a", s), 0), out(matrix(g, b, "b", s), 0)};
  TF_Output y = out(op2(g, "MatMul", "y", x[0], x[1], s), 0), dx = {NULL, 0}, dy[2];
  if (given) dx = out(matrix(g, ones, "dx", s), 0);
  OK(s);
  TF_AddGradients(g, &y, 1, x, 2, given ? &dx : NULL, s, dy);
  OK(s);
  TF_Session* session = session_of(g, s);
  TF_Tensor* results[2] = {NULL, NULL};
  TF_SessionRun(session, NULL, NULL, NULL, 0, dy, results, 2, NULL, 0, NULL, s);
  OK(s);
  const float da[] = {1, 1, 1, 1}, db[] = {4, 4, 6, 6}; /* 1 bT and aT 1 */
  if (results[0]) CHECK(memcmp(TF_TensorData(results[0]), da, 16) == 0);
  if (results[1]) CHECK(memcmp(TF_TensorData(results[1]), db, 16) == 0);
  TF_DeleteTensor(results[0]);
  TF_DeleteTensor(results[1]);
  end_session(session, s);
  TF_DeleteGraph(g);
}
static void gradients_given(TF_Status* s) { gradients_of(1, s); }
static void gradients_ones(TF_Status* s) { gradients_of(0, s); }
/* ---- Loops ---- */

/* while (x < limit) x += 2 */
static void loop(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "x", s);
  TF_Output in = out(feed, 0), result = {NULL, -1};
  TF_WhileParams p = TF_NewWhile(g, &in, 1, s);
  OK(s);
  CHECK(p.ninputs == 1);
  p.name = "loop";
  p.cond_output = out(op2(p.cond_graph, "Less", "less", p.cond_inputs[0], out(scalar(p.cond_graph, 9, "limit", s), 0), s), 0);
  OK(s);
  p.body_outputs[0] = out(op2(p.body_graph, "AddV2", "add", p.body_inputs[0], out(scalar(p.body_graph, 2, "two", s), 0), s), 0);
  OK(s);
  TF_FinishWhile(&p, s, &result);
  OK(s);
  if (!result.oper) return;
  TF_Session* session = session_of(g, s);
  CHECK(take_int32(run1(session, feed, int32_tensor(-3), result, s)) == 9);
  OK(s);
  CHECK(take_int32(run1(session, feed, int32_tensor(20), result, s)) == 20);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(g);
}
static void bad_loops(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output in = out(placeholder(g, TF_INT32, "x", s), 0), result;
  TF_WhileParams p = TF_NewWhile(g, &in, 1, s);
  OK(s);
  p.name = "loop";
  p.body_outputs[0] = p.body_inputs[0];
  TF_FinishWhile(&p, s, &result); /* without a condition */
  CODE(s, TF_INVALID_ARGUMENT);
  TF_NewWhile(g, &in, 0, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteGraph(g);
}

/* ---- Functions ---- */

static TF_Function* negate_twice(TF_Status* s) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* x = placeholder(body, TF_INT32, "X", s);
  TF_Operation* neg = op1(body, "Neg", "neg", out(x, 0), s);
  TF_Output in = out(x, 0), outs[] = {{neg, 0}, {x, 0}};
  const char* names[] = {"negative", "same"};
  TF_Function* f = TF_GraphToFunction(body, "MyFunc", 0, -1, NULL, 1, &in, 2, outs, names, NULL, "a function", s);
  OK(s);
  TF_DeleteGraph(body);
  return f;
}
static void functions(TF_Status* s) {
  TF_Function* f = negate_twice(s);
  if (!f) return;
  SAME(TF_FunctionName(f), "MyFunc");
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, NULL, s);
  OK(s);
  TF_GraphCopyFunction(g, f, NULL, s); /* again */
  OK(s);
  CHECK(TF_GraphNumFunctions(g) == 1);
  TF_Function* got[2] = {NULL, NULL};
  CHECK(TF_GraphGetFunctions(g, got, 2, s) == 1);
  OK(s);
  if (got[0]) SAME(TF_FunctionName(got[0]), "MyFunc");
  TF_DeleteFunction(got[0]);
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* call = op1(g, "MyFunc", "call", out(feed, 0), s);
  OK(s);
  if (!call) return;
  SAME(TF_OperationOpType(call), "MyFunc");
  CHECK(TF_OperationNumOutputs(call) == 2 && TF_OperationOutputListLength(call, "same", s) == 1);
  TF_Session* session = session_of(g, s);
  CHECK(take_int32(run1(session, feed, int32_tensor(5), out(call, 0), s)) == -5);
  OK(s);
  CHECK(take_int32(run1(session, feed, int32_tensor(5), out(call, 1), s)) == 5);
  OK(s);
  end_session(session, s);

  TF_Buffer* def = TF_NewBuffer(); /* the same through a GraphDef */
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_Graph* copy = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(copy, def, options, s);
  OK(s);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(def);
  feed = TF_GraphOperationByName(copy, "feed");
  call = TF_GraphOperationByName(copy, "call");
  CHECK(feed && call);
  if (!feed || !call) return;
  SAME(TF_OperationOpType(call), "MyFunc");
  session = session_of(copy, s);
  CHECK(take_int32(run1(session, feed, int32_tensor(8), out(call, 0), s)) == -8);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(copy);

  def = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, def, s);
  OK(s);
  TF_Function* again = TF_FunctionImportFunctionDef(def->data, def->length, s);
  OK(s);
  SAME(TF_FunctionName(again), "MyFunc");
  TF_FunctionSetAttrValueProto(again, "_note", "\x18\x07", 2, s);
  OK(s);
  TF_DeleteBuffer(def);
  def = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(again, "_note", def, s);
  OK(s);
  CHECK(def->length == 2 && memcmp(def->data, "\x18\x07", 2) == 0);
  TF_DeleteBuffer(def);
  def = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(again, "_nothing", def, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteBuffer(def);
  TF_DeleteFunction(again);
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
}
static void bad_functions(TF_Status* s) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation *x = placeholder(body, TF_INT32, "x", s), *y = placeholder(body, TF_INT32, "y", s);
  TF_Operation* add = add_n(body, x, y, "add", s);
  TF_Output in[] = {{x, 0}, {x, 0}}, result = {add, 0};
  CHECK(!TF_GraphToFunction(body, "f", 0, -1, NULL, 2, in, 1, &result, NULL, NULL, NULL, s)); /* an input twice */
  CODE(s, TF_INVALID_ARGUMENT);
  HAS(TF_Message(s), "appears more than once in the input list");
  const TF_Operation* only[] = {add};
  CHECK(!TF_GraphToFunction(body, "f", 0, 1, only, 1, in, 1, &result, NULL, NULL, NULL, s)); /* y is nowhere */
  CODE(s, TF_INVALID_ARGUMENT);
  HAS(TF_Message(s), "is not available. You might need to include it in inputs");
  TF_Output results[] = {{add, 0}, {add, 0}};
  const char* names[] = {"same", "same"};
  CHECK(!TF_GraphToFunction(body, "f", 0, -1, NULL, 1, in, 2, results, names, NULL, NULL, s));
  CODE(s, TF_INVALID_ARGUMENT);
  TF_Function* f = TF_GraphToFunction(body, "f", 1, -1, NULL, 1, in, 1, &result, NULL, NULL, NULL, s);
  OK(s);
  if (f) CHECK(strncmp(TF_FunctionName(f), "f_", 2) == 0);
  TF_DeleteFunction(f);
  TF_DeleteGraph(body);
}

/* ---- The first API ---- */

static void deprecated_session(TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_DeprecatedSession* session = TF_NewDeprecatedSession(options, s);
  TF_DeleteSessionOptions(options);
  OK(s);
  TF_Run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, s);
  CHECK(TF_GetCode(s) != TF_OK);
  SAME(TF_Message(s), "Session was not created with a graph before Run()!");
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  op1(g, "Neg", "neg", out(feed, 0), s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  TF_DeleteGraph(g);
  TF_ExtendGraph(session, def->data, def->length, s);
  OK(s);
  TF_DeleteBuffer(def);
  const char *inputs[] = {"feed:0"}, *outputs[] = {"neg:0"};
  TF_Tensor *value = int32_tensor(6), *result = NULL;
  TF_Run(session, NULL, inputs, &value, 1, outputs, &result, 1, NULL, 0, NULL, s);
  OK(s);
  CHECK(take_int32(result) == -6);
  TF_CloseDeprecatedSession(session, s);
  OK(s);
  TF_DeleteDeprecatedSession(session, s);
  OK(s);
}

/* THALWEG_SAVED_MODEL has f(x) = 2 x + b, b a variable of 0.5, as signature serving_default of tag serve. */
static void saved_model(TF_Status* s) {
  const char* folder = getenv("THALWEG_SAVED_MODEL");
  const char* tags[] = {"serve"};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Graph* g = TF_NewGraph();
  TF_Session* none = TF_LoadSessionFromSavedModel(options, NULL, "/nowhere", tags, 1, g, NULL, s);
  CHECK(none == NULL);
  CODE(s, TF_NOT_FOUND);
  if (folder) {
    TF_Buffer* meta = TF_NewBuffer();
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, g, meta, s);
    OK(s);
    if (session) {
      CHECK(meta->length > 100);
      TF_Operation *x = TF_GraphOperationByName(g, getenv("THALWEG_SAVED_MODEL_INPUT")),
                   *y = TF_GraphOperationByName(g, getenv("THALWEG_SAVED_MODEL_OUTPUT"));
      CHECK(x && y);
      if (x && y) CHECK(take_float(run1(session, x, float_tensor(3), out(y, 0), s)) == 6.5f);
      OK(s);
      end_session(session, s);
    }
    TF_DeleteBuffer(meta);
  }
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);
}

int main(void) {
  const Case cases[] = {{"Session", session},
                        {"Session_Min_CPU", reduction},
                        {"RunMetadata", run_metadata},
                        {"SessionPRun", partial_run},
                        {"Variables", variables},
                        {"TryEvaluateConstant", evaluate_constant},
                        {"Gradients_GradInputs", gradients_given},
                        {"Gradients_NoGradInputs", gradients_ones},
                        {"WhileLoop_Basic", loop},
                        {"WhileLoop_Bad", bad_loops},
                        {"Functions", functions},
                        {"Functions_Bad", bad_functions},
                        {"DeprecatedSession", deprecated_session},
                        {"SavedModel", saved_model}};
  return run_cases(cases, COUNT(cases));
}
