/* The eager API. */
#include "message.h"
#include "support.h"
#include "tensorflow/c/eager/c_api.h"

/* Functions of eager/c_api_experimental.h, which C does not compile in TensorFlow's form. */
typedef struct TFE_Executor TFE_Executor;
typedef struct TFE_OpAttrs TFE_OpAttrs;
void TFE_ContextGetFunctionDef(TFE_Context* context, const char* name, TF_Buffer* def, TF_Status* s);
TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* context);
void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* s);
void TFE_DeleteExecutor(TFE_Executor* executor);
const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op);
void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs);
void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* b, TF_Status* s);

static int async; /* of the contexts that follow */
static TFE_Context* context_of(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetAsync(options, (unsigned char)async);
  TFE_Context* context = TFE_NewContext(options, s);
  TFE_DeleteContextOptions(options);
  OK(s);
  return context;
}
static TFE_TensorHandle* handle_of(TF_Tensor* t, TF_Status* s) {
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  OK(s);
  TF_DeleteTensor(t);
  return h;
}
static TFE_TensorHandle* matrix(TF_Status* s) {
  const int64_t dims[] = {2, 2};
  const float values[] = {1, 2, 3, 4};
  return handle_of(tensor_of(TF_FLOAT, dims, 2, values, sizeof values), s);
}

static void contexts(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetDevicePlacementPolicy(options, TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_Context* context = TFE_NewContext(options, s);
  OK(s);
  TFE_DeleteContextOptions(options);
  CHECK(TFE_ContextGetDevicePlacementPolicy(context) == TFE_DEVICE_PLACEMENT_EXPLICIT);
  TF_DeviceList* devices = TFE_ContextListDevices(context, s);
  OK(s);
  CHECK(TF_DeviceListCount(devices) >= 1);
  TF_DeleteDeviceList(devices);
  TFE_ContextClearCaches(context);
  TFE_DeleteContext(context);
}

static void handles(TF_Status* s) {
  TFE_TensorHandle* h = matrix(s);
  CHECK(TFE_TensorHandleDataType(h) == TF_FLOAT && TFE_TensorHandleNumDims(h, s) == 2 && TFE_TensorHandleDim(h, 1, s) == 2);
  CHECK(TFE_TensorHandleNumElements(h, s) == 4);
  OK(s);
  HAS(TFE_TensorHandleDeviceName(h, s), "CPU:0");
  TFE_TensorHandle* other = TFE_TensorHandleCopySharingTensor(h, s);
  OK(s);
  TFE_DeleteTensorHandle(h);
  TF_Tensor* t = TFE_TensorHandleResolve(other, s);
  OK(s);
  CHECK(((const float*)TF_TensorData(t))[3] == 4);
  TF_DeleteTensor(t);
  TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(other, s);
  OK(s);
  CHECK(TFE_TensorDebugInfoOnDeviceNumDims(info) == 2 && TFE_TensorDebugInfoOnDeviceDim(info, 0) == 2);
  TFE_DeleteTensorDebugInfo(info);
  TFE_DeleteTensorHandle(other);
  CHECK(TFE_TensorHandleResolve(NULL, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
}

static void execute(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *m = matrix(s), *results[1] = {NULL};
  TFE_Op* op = TFE_NewOp(context, "MatMul", s);
  OK(s);
  SAME(TFE_OpGetName(op, s), "MatMul");
  CHECK(TFE_OpGetContext(op, s) == context);
  TFE_OpAddInput(op, m, s);
  TFE_OpAddInput(op, m, s);
  TFE_OpSetAttrBool(op, "transpose_b", 1);
  unsigned char is_list = 9;
  CHECK(TFE_OpGetAttrType(op, "transpose_b", &is_list, s) == TF_ATTR_BOOL && is_list == 0);
  CHECK(TFE_OpGetFlatInputCount(op, s) == 2);
  int n = 1;
  TFE_Execute(op, results, &n, s);
  OK(s);
  CHECK(n == 1);
  TFE_DeleteOp(op);
  TF_Tensor* t = results[0] ? TFE_TensorHandleResolve(results[0], s) : NULL;
  const float wanted[] = {5, 11, 11, 25};
  CHECK(t && memcmp(TF_TensorData(t), wanted, sizeof wanted) == 0);
  TF_DeleteTensor(t);
  if (results[0]) TFE_DeleteTensorHandle(results[0]);
  CHECK(TFE_NewOp(context, "NoSuchOp", s) == NULL);
  CHECK(TF_GetCode(s) != TF_OK);
  TFE_DeleteTensorHandle(m);
  TFE_DeleteContext(context);
}

static void split(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *m = matrix(s), *axis = handle_of(int32_tensor(0), s), *results[2] = {NULL, NULL};
  TFE_Op* op = TFE_NewOp(context, "Split", s);
  TFE_OpAddInput(op, axis, s);
  TFE_OpAddInput(op, m, s);
  TFE_OpSetAttrInt(op, "num_split", 2);
  CHECK(TFE_OpGetOutputLength(op, "output", s) == 2);
  OK(s);
  CHECK(TFE_OpGetInputLength(op, "value", s) == 1);
  int n = 2;
  TFE_Execute(op, results, &n, s);
  OK(s);
  CHECK(n == 2);
  TFE_DeleteOp(op);
  TF_Tensor* t = results[1] ? TFE_TensorHandleResolve(results[1], s) : NULL;
  CHECK(t && TF_Dim(t, 0) == 1 && ((const float*)TF_TensorData(t))[0] == 3);
  TF_DeleteTensor(t);
  for (int i = 0; i < 2; ++i) {
    if (results[i]) TFE_DeleteTensorHandle(results[i]);
  }
  TFE_DeleteTensorHandle(m);
  TFE_DeleteTensorHandle(axis);
  TFE_DeleteContext(context);
}

static TFE_TensorHandle* call(TFE_Op* op, int outputs, TF_Status* s) {
  TFE_TensorHandle* result = NULL;
  int n = outputs;
  TFE_Execute(op, &result, &n, s);
  OK(s);
  TFE_DeleteOp(op);
  return result;
}
static void variable_of(const char* name, TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_Op* op = TFE_NewOp(context, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, s);
  TFE_OpSetAttrString(op, "container", "", 0);
  TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
  TFE_TensorHandle* v = call(op, 1, s);
  if (!v) return;
  CHECK(TFE_TensorHandleDataType(v) == TF_RESOURCE);
  TFE_TensorHandle* twelve = handle_of(float_tensor(12), s);
  op = TFE_NewOp(context, "AssignVariableOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpAddInput(op, v, s);
  TFE_OpAddInput(op, twelve, s);
  call(op, 0, s);
  op = TFE_NewOp(context, "ReadVariableOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpAddInput(op, v, s);
  TFE_TensorHandle* value = call(op, 1, s);
  CHECK(value && take_float(TFE_TensorHandleResolve(value, s)) == 12);
  if (value) TFE_DeleteTensorHandle(value);
  TFE_DeleteTensorHandle(twelve);
  TFE_DeleteTensorHandle(v);
  TFE_DeleteContext(context);
}

static void variables(TF_Status* s) { variable_of("v", s); }
static void unnamed_variables(TF_Status* s) { variable_of("", s); }

/* The name that stands for a new variable with each call; clients write it out. */
static TFE_TensorHandle* anonymous(TFE_Context* context, float value, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(context, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, s);
  TFE_OpSetAttrString(op, "shared_name", "cd2c89b7-88b7-44c8-ad83-06c2a9158347", 36);
  TFE_TensorHandle *v = call(op, 1, s), *start = handle_of(float_tensor(value), s);
  op = TFE_NewOp(context, "AssignVariableOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpAddInput(op, v, s);
  TFE_OpAddInput(op, start, s);
  call(op, 0, s);
  TFE_DeleteTensorHandle(start);
  return v;
}
static void anonymous_variables(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle* v[] = {anonymous(context, 1, s), anonymous(context, 2, s)};
  for (int i = 0; i < 2; ++i) {
    TFE_Op* op = TFE_NewOp(context, "ReadVariableOp", s);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpAddInput(op, v[i], s);
    TFE_TensorHandle* value = call(op, 1, s);
    CHECK(value && take_float(TFE_TensorHandleResolve(value, s)) == (float)(i + 1));
    if (value) TFE_DeleteTensorHandle(value);
  }
  TFE_DeleteTensorHandle(v[0]);
  TFE_DeleteTensorHandle(v[1]);
  TFE_DeleteContext(context);
}

static void functions(TF_Status* s) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* x = placeholder(body, TF_FLOAT, "x", s);
  TF_Operation* y = op2(body, "MatMul", "y", out(x, 0), out(x, 0), s);
  TF_Output in = out(x, 0), result = out(y, 0);
  TF_Function* f = TF_GraphToFunction(body, "Squared", 0, -1, NULL, 1, &in, 1, &result, NULL, NULL, NULL, s);
  OK(s);
  TF_DeleteGraph(body);
  TFE_Context* context = context_of(s);
  TFE_ContextAddFunction(context, f, s);
  OK(s);
  TF_DeleteFunction(f);
  CHECK(TFE_ContextHasFunction(context, "Squared"));
  TFE_TensorHandle* m = matrix(s);
  TFE_Op* op = TFE_NewOp(context, "Squared", s);
  OK(s);
  TFE_OpAddInput(op, m, s);
  TFE_TensorHandle* squared = call(op, 1, s);
  TF_Tensor* t = squared ? TFE_TensorHandleResolve(squared, s) : NULL;
  const float wanted[] = {7, 10, 15, 22};
  CHECK(t && memcmp(TF_TensorData(t), wanted, sizeof wanted) == 0);
  TF_DeleteTensor(t);
  if (squared) TFE_DeleteTensorHandle(squared);
  TFE_DeleteTensorHandle(m);
  TFE_ContextRemoveFunction(context, "Squared", s);
  OK(s);
  CHECK(!TFE_ContextHasFunction(context, "Squared"));
  TFE_DeleteContext(context);
}

/* Takes the values of a handle, which it ends; returns 1 if they are the wanted floats. */
static int has_floats(TFE_TensorHandle* h, const float* wanted, size_t n, TF_Status* s) {
  if (!h) return 0;
  TF_Tensor* t = TFE_TensorHandleResolve(h, s);
  OK(s);
  TFE_DeleteTensorHandle(h);
  const int same = t && TF_TensorByteSize(t) == n * sizeof(float) && memcmp(TF_TensorData(t), wanted, n * sizeof(float)) == 0;
  TF_DeleteTensor(t);
  return same;
}
static void wait_for(TFE_Context* context, TF_Status* s) {
  TFE_Executor* executor = TFE_ContextGetExecutorForThread(context);
  TFE_ExecutorWaitForAllPendingNodes(executor, s);
  OK(s);
  TFE_DeleteExecutor(executor);
}

/* ---- Handles and devices ---- */

static const float counting[] = {1, 2, 3, 4}, product[] = {7, 10, 15, 22};

static void copy_between_devices(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle* host = matrix(s);
  TF_DeviceList* devices = TFE_ContextListDevices(context, s);
  OK(s);
  for (int i = 0; i < TF_DeviceListCount(devices); ++i) {
    const char* name = TF_DeviceListName(devices, i, s);
    OK(s);
    TFE_TensorHandle* on = TFE_TensorHandleCopyToDevice(host, context, name, s);
    OK(s);
    TFE_TensorHandle* again = on ? TFE_TensorHandleCopyToDevice(on, context, name, s) : NULL;
    OK(s);
    TFE_TensorHandle* back = again ? TFE_TensorHandleCopyToDevice(again, context, "CPU:0", s) : NULL;
    OK(s);
    CHECK(has_floats(back, counting, 4, s));
    if (on) TFE_DeleteTensorHandle(on);
    if (again) TFE_DeleteTensorHandle(again);
  }
  TF_DeleteDeviceList(devices);
  TFE_DeleteTensorHandle(host);
  wait_for(context, s);
  TFE_DeleteContext(context);
}
static void copy_to_unknown_device(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle* host = matrix(s);
  CHECK(TFE_TensorHandleCopyToDevice(host, context, "NoSuchDevice:0", s) == NULL);
  CHECK(TF_GetCode(s) != TF_OK);
  HAS(TF_Message(s), "NoSuchDevice:0 unknown device");
  TF_SetStatus(s, TF_OK, "");
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(host, context, "CPU:0", s);
  OK(s);
  wait_for(context, s);
  CHECK(has_floats(copy, counting, 4, s));
  TFE_DeleteTensorHandle(host);
  TFE_DeleteContext(context);
}
static void handle_nullptr(TF_Status* s) {
  CHECK(TFE_TensorHandleResolve(NULL, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "Invalid handle");
  TF_SetStatus(s, TF_OK, "");
  CHECK(TFE_TensorHandleDeviceName(NULL, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_SetStatus(s, TF_OK, "");
  CHECK(TFE_TensorHandleBackingDeviceName(NULL, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_SetStatus(s, TF_OK, "");
  CHECK(TFE_TensorHandleNumDims(NULL, s) == -1);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_SetStatus(s, TF_OK, "");
  CHECK(TFE_TensorHandleDim(NULL, 0, s) == -1);
  CODE(s, TF_INVALID_ARGUMENT);
  SAME(TF_Message(s), "Invalid handle");
}
static TFE_Op* op_of(TFE_Context* context, const char* name, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(context, name, s);
  OK(s);
  return op;
}
static TFE_Op* binary(TFE_Context* context, const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b, TF_Status* s) {
  TFE_Op* op = op_of(context, name, s);
  TFE_OpAddInput(op, a, s);
  OK(s);
  TFE_OpAddInput(op, b, s);
  OK(s);
  return op;
}
static void op_devices(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle* m = matrix(s);
  HAS(TFE_TensorHandleDeviceName(m, s), "CPU:0");
  HAS(TFE_TensorHandleBackingDeviceName(m, s), "CPU:0");
  TFE_Op* op = binary(context, "MatMul", m, m, s);
  TFE_OpSetDevice(op, "/device:CPU:0", s);
  OK(s);
  HAS(TFE_OpGetDevice(op, s), "CPU:0");
  TFE_OpSetDevice(op, "/job:localhost/replica:0/task:0/device:CPU:0", s);
  OK(s);
  CHECK(has_floats(call(op, 1, s), product, 4, s));
  TFE_DeleteTensorHandle(m);
  TFE_DeleteContext(context);
}

/* ---- Calls ---- */

static void matmul(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *m = matrix(s), *results[2] = {NULL, NULL};
  TFE_Op* op = binary(context, "MatMul", m, m, s);
  int n = 2; /* more room than results */
  TFE_Execute(op, results, &n, s);
  OK(s);
  CHECK(n == 1);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(m);
  CHECK(has_floats(results[0], product, 4, s));
  TFE_DeleteContext(context);
}
static void matmul_fails(TF_Status* s) {
  TFE_Context* context = context_of(s);
  const int64_t dims[] = {3, 2};
  const double six[] = {1, 2, 3, 4, 5, 6};
  const float six_floats[] = {1, 2, 3, 4, 5, 6};
  TFE_TensorHandle *m = matrix(s), *wrong_type = handle_of(tensor_of(TF_DOUBLE, dims, 2, six, sizeof six), s),
                   *wrong_shape = handle_of(tensor_of(TF_FLOAT, dims, 2, six_floats, sizeof six_floats), s), *result = NULL;
  TFE_TensorHandle* wrong[] = {wrong_type, wrong_shape};
  for (int i = 0; i < 2; ++i) {
    TFE_Op* op = TFE_NewOp(context, "MatMul", s);
    TFE_OpAddInput(op, m, s);
    TFE_OpAddInput(op, wrong[i], s);
    int n = 1;
    TFE_Execute(op, &result, &n, s);
    CHECK(TF_GetCode(s) != TF_OK && result == NULL);
    TF_SetStatus(s, TF_OK, "");
    TFE_DeleteOp(op);
  }
  CHECK(has_floats(call(binary(context, "MatMul", m, m, s), 1, s), product, 4, s)); /* the context still works */
  TFE_DeleteTensorHandle(m);
  TFE_DeleteTensorHandle(wrong_type);
  TFE_DeleteTensorHandle(wrong_shape);
  TFE_DeleteContext(context);
}
static TFE_TensorHandle* axis_handle(TF_Status* s) {
  const int64_t dims[] = {1};
  const int32_t axis[] = {1};
  return handle_of(tensor_of(TF_INT32, dims, 1, axis, sizeof axis), s);
}
static void minimum(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *m = matrix(s), *axis = axis_handle(s);
  TFE_Op* op = binary(context, "Min", m, axis, s);
  TFE_OpSetAttrBool(op, "keep_dims", 1);
  const float wanted[] = {1, 3};
  CHECK(has_floats(call(op, 1, s), wanted, 2, s));
  TFE_DeleteTensorHandle(m);
  TFE_DeleteTensorHandle(axis);
  TFE_DeleteContext(context);
}
static void tracing(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_ContextEnableRunMetadata(context);
  TFE_TensorHandle* m = matrix(s);
  TFE_TensorHandle* result = call(binary(context, "MatMul", m, m, s), 1, s);
  TF_Buffer* b = TF_NewBuffer();
  TFE_ContextExportRunMetadata(context, b, s);
  OK(s);
  Bytes rest = {b->data, b->length};
  for (Field f; next_field(&rest, &f);) continue;
  CHECK(rest.n == 0); /* it is a message */
  TF_DeleteBuffer(b);
  CHECK(has_floats(result, product, 4, s));
  TFE_DeleteTensorHandle(m);
  TFE_DeleteContext(context);
}
/* m = MatMul(a, a) as a FunctionDef. */
static void function_def(TF_Status* s) {
  TF_Graph* body = TF_NewGraph();
  TF_Operation* a = placeholder(body, TF_FLOAT, "a", s);
  TF_Output in = out(a, 0), result = out(op2(body, "MatMul", "matmul", in, in, s), 0);
  const char* names[] = {"m"};
  TF_Function* f = TF_GraphToFunction(body, "MatMulFunction", 0, -1, NULL, 1, &in, 1, &result, names, NULL, NULL, s);
  OK(s);
  TF_DeleteGraph(body);
  TF_Buffer *def = TF_NewBuffer(), *got = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, def, s);
  OK(s);
  TF_DeleteFunction(f);
  TFE_Context* context = context_of(s);
  TFE_ContextAddFunctionDef(context, def->data, def->length, s);
  OK(s);
  TFE_ContextGetFunctionDef(context, "MatMulFunction", got, s);
  OK(s);
  const Text first = function_text((Bytes){def->data, def->length}), second = function_text((Bytes){got->data, got->length});
  SAME(first.chars, second.chars);
  TF_DeleteBuffer(def);
  TF_DeleteBuffer(got);
  for (int i = 0; i < 3; ++i) {
    if (i != 1) TFE_ContextClearCaches(context);
    TFE_TensorHandle* m = matrix(s);
    TFE_Op* op = op_of(context, "MatMulFunction", s);
    TFE_OpAddInput(op, m, s);
    CHECK(has_floats(call(op, 1, s), product, 4, s));
    TFE_DeleteTensorHandle(m);
  }
  TFE_ContextRemoveFunction(context, "MatMulFunction", s);
  OK(s);
  TFE_DeleteContext(context);
}
/* An operation copies the texts of its attributes. */
static void string_attributes(TF_Status* s) {
  TFE_Context* context = context_of(s);
  const int64_t dims[] = {1, 1, 1, 1};
  const float value = 1;
  TFE_Op* op = op_of(context, "AvgPool", s);
  TFE_TensorHandle* h = handle_of(tensor_of(TF_FLOAT, dims, 4, &value, sizeof value), s);
  TFE_OpAddInput(op, h, s);
  OK(s);
  TFE_DeleteTensorHandle(h);
  TFE_OpSetAttrIntList(op, "ksize", dims, 4);
  TFE_OpSetAttrIntList(op, "strides", dims, 4);
  char text[8] = "VALID";
  TFE_OpSetAttrString(op, "padding", text, 5);
  memcpy(text, "NHWC", 5);
  TFE_OpSetAttrString(op, "data_format", text, 4);
  memset(text, 'x', sizeof text);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  CHECK(has_floats(call(op, 1, s), &value, 1, s));
  TFE_DeleteContext(context);
}

/* ---- Attributes that follow from inputs ---- */

enum { LIST_ATTR = 2, ATTR_LIST = 1, ATTR_INT = 3, ATTR_TYPE = 6, LIST_TYPE = 6 };

/* The AttrValue of an operation; empty if the operation has none. The buffer keeps the bytes. */
static Bytes attr_of(TFE_Op* op, const char* name, TF_Buffer* b, TF_Status* s) {
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op), b, s);
  OK(s);
  return find_entry((Bytes){b->data, b->length}, LIST_ATTR, name, strlen(name));
}
static int type_attr(TFE_Op* op, const char* name, TF_Status* s) {
  TF_Buffer* b = TF_NewBuffer();
  const int type = (int)find_field(attr_of(op, name, b, s), ATTR_TYPE).value;
  TF_DeleteBuffer(b);
  return type;
}
static int int_attr(TFE_Op* op, const char* name, TF_Status* s) {
  TF_Buffer* b = TF_NewBuffer();
  const int value = (int)find_field(attr_of(op, name, b, s), ATTR_INT).value;
  TF_DeleteBuffer(b);
  return value;
}
static void infer_single(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *m = matrix(s), *axis = axis_handle(s);
  TFE_Op* op = op_of(context, "Min", s);
  TFE_OpAddInput(op, m, s);
  CHECK(type_attr(op, "T", s) == TF_FLOAT);
  TFE_OpAddInput(op, axis, s);
  CHECK(type_attr(op, "T", s) == TF_FLOAT && type_attr(op, "Tidx", s) == TF_INT32);
  const float wanted[] = {1, 3};
  CHECK(has_floats(call(op, 1, s), wanted, 2, s));
  TFE_DeleteTensorHandle(m);
  TFE_DeleteTensorHandle(axis);
  TFE_DeleteContext(context);
}
static void infer_list(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *a = matrix(s), *b = matrix(s), *dim = handle_of(int32_tensor(0), s), *list[] = {a, b};
  TFE_Op* op = op_of(context, "Concat", s);
  TFE_OpAddInput(op, dim, s);
  TFE_OpAddInputList(op, list, 2, s);
  OK(s);
  CHECK(type_attr(op, "T", s) == TF_FLOAT && int_attr(op, "N", s) == 2);
  const float wanted[] = {1, 2, 3, 4, 1, 2, 3, 4};
  CHECK(has_floats(call(op, 1, s), wanted, 8, s));
  op = op_of(context, "Concat", s); /* one by one: nothing says how long the list is */
  TFE_OpAddInput(op, dim, s);
  TFE_OpAddInput(op, a, s);
  TFE_OpAddInput(op, b, s);
  OK(s);
  CHECK(type_attr(op, "T", s) == 0 && int_attr(op, "N", s) == 0);
  TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_DeleteTensorHandle(dim);
  TFE_DeleteContext(context);
}
static void infer_mixed(TF_Status* s) {
  TFE_Context* context = context_of(s);
  const unsigned char yes = 1;
  TFE_TensorHandle *condition = handle_of(tensor_of(TF_BOOL, NULL, 0, &yes, 1), s), *m = matrix(s), *axis = axis_handle(s),
                   *data[] = {condition, m, axis};
  TFE_Op* op = op_of(context, "Assert", s);
  TFE_OpAddInput(op, condition, s);
  TFE_OpAddInputList(op, data, 3, s);
  OK(s);
  TF_Buffer* b = TF_NewBuffer();
  const Bytes types = find_field(find_field(attr_of(op, "T", b, s), ATTR_LIST).bytes, LIST_TYPE).bytes;
  CHECK(types.n == 3 && types.at[0] == TF_BOOL && types.at[1] == TF_FLOAT && types.at[2] == TF_INT32);
  TF_DeleteBuffer(b);
  int n = 0;
  TFE_Execute(op, NULL, &n, s);
  OK(s);
  TFE_DeleteOp(op);
  for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(data[i]);
  TFE_DeleteContext(context);
}
static void lengths(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_TensorHandle *inputs[] = {matrix(s), matrix(s)}, *results[2] = {NULL, NULL};
  TFE_Op* op = op_of(context, "IdentityN", s);
  CHECK(TFE_OpGetInputLength(op, "input", s) == -1 && TF_GetCode(s) != TF_OK); /* before there are inputs */
  CHECK(TFE_OpGetOutputLength(op, "output", s) == -1 && TF_GetCode(s) != TF_OK);
  TFE_OpAddInputList(op, inputs, 2, s);
  OK(s);
  for (int again = 0; again < 2; ++again) { /* before and after the call */
    CHECK(TFE_OpGetInputLength(op, "input", s) == 2);
    OK(s);
    CHECK(TFE_OpGetOutputLength(op, "output", s) == 2);
    OK(s);
    if (again) break;
    int n = 2;
    TFE_Execute(op, results, &n, s);
    OK(s);
  }
  CHECK(TFE_OpGetInputLength(op, "cheese", s) == -1);
  CODE(s, TF_INVALID_ARGUMENT);
  CHECK(TFE_OpGetOutputLength(op, "cheese", s) == -1);
  CODE(s, TF_INVALID_ARGUMENT);
  TFE_DeleteOp(op);
  for (int i = 0; i < 2; ++i) {
    CHECK(has_floats(results[i], counting, 4, s));
    TFE_DeleteTensorHandle(inputs[i]);
  }
  TFE_DeleteContext(context);
}
static void attrs_of_another(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_Op* variable = op_of(context, "VarHandleOp", s);
  TFE_OpSetAttrType(variable, "dtype", TF_INT64);
  TFE_OpSetAttrShape(variable, "shape", NULL, 0, s);
  TF_Buffer* b = TF_NewBuffer();
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(variable), b, s);
  OK(s);
  const Bytes name = find_field((Bytes){b->data, b->length}, 1).bytes;
  CHECK(name.n == 11 && memcmp(name.at, "VarHandleOp", 11) == 0);
  TF_DeleteBuffer(b);
  TFE_Op* copy = op_of(context, "VarHandleOp", s);
  TFE_OpSetAttrType(copy, "dtype", TF_FLOAT); /* what is set stays */
  TFE_OpAddAttrs(copy, TFE_OpGetAttrs(variable));
  CHECK(type_attr(copy, "dtype", s) == TF_FLOAT && type_attr(variable, "dtype", s) == TF_INT64);
  TFE_TensorHandle* handle = call(copy, 1, s);
  CHECK(handle && TFE_TensorHandleDataType(handle) == TF_RESOURCE);
  if (handle) TFE_DeleteTensorHandle(handle);
  TFE_DeleteOp(variable);
  TFE_DeleteContext(context);
}

/* The same with contexts that ask for asynchronous calls. */
static void in_async(void (*run)(TF_Status* s), TF_Status* s) {
  async = 1;
  run(s);
  async = 0;
}
static void async_copies(TF_Status* s) { in_async(copy_between_devices, s); }
static void async_unknown_device(TF_Status* s) { in_async(copy_to_unknown_device, s); }
static void async_matmul(TF_Status* s) { in_async(matmul, s); }
static void async_tracing(TF_Status* s) { in_async(tracing, s); }
static void async_function_def(TF_Status* s) { in_async(function_def, s); }

int main(void) {
  const Case cases[] = {{"Context", contexts},
                        {"TensorHandle", handles},
                        {"TensorHandleCopyBetweenDevices", copy_between_devices},
                        {"TensorHandleCopyBetweenDevicesAsync", async_copies},
                        {"TensorHandleCopyBetweenDevicesError", copy_to_unknown_device},
                        {"TensorHandleCopyBetweenDevicesErrorAsync", async_unknown_device},
                        {"TensorHandleNullptr", handle_nullptr},
                        {"SetAndGetOpDevices", op_devices},
                        {"Execute_MatMul", execute},
                        {"Execute_MatMul_CPU", matmul},
                        {"Execute_MatMul_CPUAsync", async_matmul},
                        {"Execute_MatMul_CPU_Errors", matmul_fails},
                        {"Execute_Min_CPU", minimum},
                        {"Execute_Split", split},
                        {"ExecuteWithTracing", tracing},
                        {"ExecuteWithTracingAsync", async_tracing},
                        {"FunctionDefAndExecute", function_def},
                        {"FunctionDefAndExecuteAsync", async_function_def},
                        {"Variables", unnamed_variables},
                        {"Variables_Named", variables},
                        {"Variables_Anonymous", anonymous_variables},
                        {"StringAttributes", string_attributes},
                        {"Functions", functions},
                        {"OpInferSingleInputAttrs", infer_single},
                        {"OpInferSingleTypeInputListAttrs", infer_list},
                        {"OpInferMixedTypeInputListAttrs", infer_mixed},
                        {"OpGetInputAndOutputLengths", lengths},
                        {"OpAddAttrs", attrs_of_another}};
  return run_cases(cases, COUNT(cases));
}
