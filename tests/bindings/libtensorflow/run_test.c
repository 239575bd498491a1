/* Steps: sessions, partial runs, gradients, loops, functions, SavedModels, the sessions of the first API. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include <sys/stat.h>

#include "support.h"
#include "tensorflow/c/c_api_experimental.h"

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

static void reduction_of(const TF_SessionOptions* options, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  TF_Operation* min = op2(g, "Min", "min", out(feed, 0), out(scalar(g, 0, "axis", s), 0), s);
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  const int64_t dims[] = {3};
  const int32_t values[] = {3, 2, 5};
  CHECK(take_int32(run1(session, feed, tensor_of(TF_INT32, dims, 1, values, sizeof values), out(min, 0), s)) == 2);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void reduction(TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  reduction_of(options, s);
  TF_DeleteSessionOptions(options);
}
/* A session that asks for a compiler gives the same result with or without one. */
static void compiled_reduction(TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_EnableXLACompilation(options, 1);
  reduction_of(options, s);
  TF_DeleteSessionOptions(options);
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
static const char* name_of(TF_Output o) { return o.oper ? TF_OperationName(o.oper) : "nothing"; }
static int transposes(TF_Operation* product, const char* attr, TF_Status* s) {
  unsigned char value = 2;
  TF_OperationGetAttrBool(product, attr, &value, s);
  return value;
}
/* Whether the operation is a product of these two, with that one transposed. */
static int is_product(TF_Output of, const char* a, const char* b, int transpose_a, int transpose_b, TF_Status* s) {
  return of.oper && strcmp(TF_OperationOpType(of.oper), "MatMul") == 0 && TF_OperationNumInputs(of.oper) == 2 &&
         strcmp(name_of(TF_OperationInput((TF_Input){of.oper, 0})), a) == 0 &&
         strcmp(name_of(TF_OperationInput((TF_Input){of.oper, 1})), b) == 0 && transposes(of.oper, "transpose_a", s) == transpose_a &&
         transposes(of.oper, "transpose_b", s) == transpose_b;
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
  /* the operations and their names, as clients that compare graphs expect them */
  const char* arriving = given ? "dx" : "gradients/OnesLike";
  CHECK(strcmp(name_of(dy[0]), "gradients/MatMul") == 0 && strcmp(name_of(dy[1]), "gradients/MatMul_1") == 0);
  CHECK(is_product(dy[0], arriving, "b", 0, 1, s) && is_product(dy[1], "a", arriving, 1, 0, s));
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

static void gradients_with_prefix(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1};
  TF_Output x[] = {out(matrix(g, a, "a", s), 0), out(matrix(g, b, "b", s), 0)}, dy[2] = {{NULL, 0}, {NULL, 0}};
  TF_Output y = out(op2(g, "MatMul", "y", x[0], x[1], s), 0);
  const char* const prefixes[] = {"mygrads", "mygrads_1", NULL, NULL};
  const char* const begins[] = {"mygrads/", "mygrads_1/", "gradients/", "gradients_1/"};
  for (int i = 0; i < 4; ++i) {
    TF_AddGradientsWithPrefix(g, prefixes[i], &y, 1, x, 2, NULL, s, dy);
    OK(s);
    for (int k = 0; k < 2; ++k) CHECK(strncmp(name_of(dy[k]), begins[i], strlen(begins[i])) == 0);
  }
  const char* const taken[] = {"mygrads_1", "a"};
  for (int i = 0; i < 2; ++i) {
    TF_AddGradientsWithPrefix(g, taken[i], &y, 1, x, 2, NULL, s, dy);
    CODE(s, TF_INVALID_ARGUMENT);
    HAS(TF_Message(s), "conflicts with existing node in the graph named");
  }
  TF_DeleteGraph(g);
}
static void gradients_again(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation *x = placeholder(g, TF_FLOAT, "x", s), *y = placeholder(g, TF_FLOAT, "y", s);
  TF_Output xy = out(op2(g, "Mul", "xy", out(x, 0), out(y, 0), s), 0), inputs[] = {{x, 0}, {y, 0}}, dxy[2];
  for (int i = 0; i < 2; ++i) {
    TF_AddGradients(g, &xy, 1, &inputs[i], 1, NULL, s, &dxy[i]);
    OK(s);
  }
  TF_Session* session = session_of(g, s);
  TF_Tensor *values[] = {float_tensor(3), float_tensor(7)}, *results[] = {NULL, NULL};
  TF_SessionRun(session, NULL, inputs, values, 2, dxy, results, 2, NULL, 0, NULL, s);
  OK(s);
  TF_DeleteTensor(values[0]);
  TF_DeleteTensor(values[1]);
  CHECK(take_float(results[0]) == 7 && take_float(results[1]) == 3);
  end_session(session, s);
  TF_DeleteGraph(g);
}
/* Text has no gradient in any library; the error comes back, and the graph still works. */
static void no_gradient(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_FLOAT, "x", s);
  TF_Output x = out(feed, 0), y = out(op1(g, "AsString", "text", x, s), 0), dy = {NULL, 0};
  OK(s);
  TF_AddGradients(g, &y, 1, &x, 1, NULL, s, &dy);
  CHECK(TF_GetCode(s) != TF_OK);
  CHECK(TF_Message(s)[0] != '\0');
  TF_Operation* neg = op1(g, "Neg", "neg", x, s);
  OK(s);
  TF_Session* session = session_of(g, s);
  CHECK(take_float(run1(session, feed, float_tensor(2), out(neg, 0), s)) == -2);
  OK(s);
  end_session(session, s);
  TF_DeleteGraph(g);
}

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

/* Appends a field of bytes, shorter than 2 MiB. */
static void put_field(unsigned char* to, size_t* n, int number, const void* bytes, size_t length) {
  to[(*n)++] = (unsigned char)(number << 3 | 2);
  to[(*n)++] = (unsigned char)(length & 127) | 128;
  to[(*n)++] = (unsigned char)(length >> 7 & 127) | 128;
  to[(*n)++] = (unsigned char)(length >> 14);
  memcpy(to + *n, bytes, length);
  *n += length;
}
/* A SavedModel without variables, y = -x with the tag serve, is loaded without options and without room for its MetaGraphDef. */
static void saved_model_null_args(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  op1(g, "Neg", "y", out(placeholder(g, TF_INT32, "x", s), 0), s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_DeleteGraph(g);
  unsigned char info[64], meta[4096], model[4200];
  size_t info_n = 0, meta_n = 0, model_n = 0;
  CHECK(def->length < 4000);
  put_field(info, &info_n, 4, "serve", 5);
  put_field(meta, &meta_n, 1, info, info_n);
  put_field(meta, &meta_n, 2, def->data, def->length);
  put_field(model, &model_n, 2, meta, meta_n);
  TF_DeleteBuffer(def);
  char folder[] = "/tmp/saved_model_XXXXXX", path[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/saved_model.pb", folder);
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(model, 1, model_n, file) == model_n && fclose(file) == 0);
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  g = TF_NewGraph();
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, g, NULL, s);
  OK(s);
  if (session) {
    TF_Operation *x = TF_GraphOperationByName(g, "x"), *y = TF_GraphOperationByName(g, "y");
    CHECK(x && y && take_int32(run1(session, x, int32_tensor(4), out(y, 0), s)) == -4);
    OK(s);
    end_session(session, s);
  }
  TF_DeleteGraph(g);
  g = TF_NewGraph();
  tags[0] = "train";
  CHECK(TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, g, NULL, s) == NULL);
  CODE(s, TF_NOT_FOUND);
  TF_DeleteGraph(g);
  TF_DeleteSessionOptions(options);
  CHECK(remove(path) == 0 && rmdir(folder) == 0);
}

static void put_input(unsigned char* to, size_t* n, const char* name) { put_field(to, n, 3, name, strlen(name)); }
static void put_attr(unsigned char* to, size_t* n, const char* name, const void* value, size_t length) {
  unsigned char entry[256];
  size_t entry_n = 0;
  put_field(entry, &entry_n, 1, name, strlen(name));
  put_field(entry, &entry_n, 2, value, length);
  put_field(to, n, 5, entry, entry_n);
}
static TF_Operation* texts(TF_Graph* g, const char* text, const char* name, TF_Status* s) {
  const int64_t empty[] = {0};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, text ? NULL : empty, text ? 0 : 1, text ? sizeof(TF_TString) : 0);
  if (text) TF_StringCopy(TF_TensorData(t), text, strlen(text));
  return constant(g, t, name, s);
}
/* A GraphDef with the first form of the op that reads examples: one dense feature "x". */
static void parse_example(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const int64_t dims[] = {1};
  const float seven[] = {7};
  placeholder(g, TF_STRING, "serialized", s);
  texts(g, NULL, "names", s);
  texts(g, "x", "key", s);
  constant(g, tensor_of(TF_FLOAT, dims, 1, seven, sizeof seven), "default", s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_DeleteGraph(g);
  unsigned char node[1024], bytes[4096];
  size_t node_n = 0, n = def->length;
  CHECK(n < 3000);
  memcpy(bytes, def->data, n);
  TF_DeleteBuffer(def);
  put_field(node, &node_n, 1, "parse", 5);
  put_field(node, &node_n, 2, "ParseExample", 12);
  put_input(node, &node_n, "serialized");
  put_input(node, &node_n, "names");
  put_input(node, &node_n, "key");
  put_input(node, &node_n, "default");
  put_attr(node, &node_n, "Nsparse", "\x18\0", 2);
  put_attr(node, &node_n, "Ndense", "\x18\1", 2);
  put_attr(node, &node_n, "sparse_types", "\x0a\0", 2);
  put_attr(node, &node_n, "Tdense", "\x0a\x03\x32\1\1", 5);                     /* [float] */
  put_attr(node, &node_n, "dense_shapes", "\x0a\x06\x3a\x04\x12\x02\x08\1", 8); /* [[1]] */
  put_field(bytes, &n, 1, node, node_n);
  def = TF_NewBufferFromString(bytes, n);
  g = TF_NewGraph();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, def, options, s);
  OK(s);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(def);
  TF_Operation *feed = TF_GraphOperationByName(g, "serialized"), *parse = TF_GraphOperationByName(g, "parse");
  CHECK(feed && parse && TF_OperationNumOutputs(parse) == 1);
  if (!feed || !parse) return;
  const int64_t two[] = {2};
  TF_Tensor* examples = TF_AllocateTensor(TF_STRING, two, 1, 2 * sizeof(TF_TString)); /* x = [0.5], and nothing */
  TF_StringCopy(TF_TensorData(examples), "\x0a\x0f\x0a\x0d\x0a\1x\x12\x08\x12\x06\x0a\x04\0\0\0\x3f", 17);
  TF_Session* session = session_of(g, s);
  TF_Tensor* x = run1(session, feed, examples, out(parse, 0), s);
  OK(s);
  const float wanted[] = {0.5f, 7};
  CHECK(x && TF_NumDims(x) == 2 && TF_Dim(x, 0) == 2 && TF_Dim(x, 1) == 1 && memcmp(TF_TensorData(x), wanted, sizeof wanted) == 0);
  TF_DeleteTensor(x);
  end_session(session, s);
  TF_DeleteGraph(g);
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
                        {"Session_Min_XLA_CPU", compiled_reduction},
                        {"SessionPRun", partial_run},
                        {"Variables", variables},
                        {"TryEvaluateConstant", evaluate_constant},
                        {"Gradients_GradInputs", gradients_given},
                        {"Gradients_NoGradInputs", gradients_ones},
                        {"Gradients_WithPrefix", gradients_with_prefix},
                        {"MultipleCallsToAddGradients", gradients_again},
                        {"OpWithNoGradient", no_gradient},
                        {"WhileLoop_Basic", loop},
                        {"WhileLoop_Bad", bad_loops},
                        {"Functions", functions},
                        {"Functions_Bad", bad_functions},
                        {"DeprecatedSession", deprecated_session},
                        {"SavedModel", saved_model},
                        {"SavedModelNullArgsAreValid", saved_model_null_args},
                        {"ParseExample", parse_example}};
  return run_cases(cases, COUNT(cases));
}
