/* The eager API. */
#include "support.h"
#include "tensorflow/c/eager/c_api.h"

static TFE_Context* context_of(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
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
static void variables(TF_Status* s) {
  TFE_Context* context = context_of(s);
  TFE_Op* op = TFE_NewOp(context, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, s);
  TFE_OpSetAttrString(op, "shared_name", "v", 1);
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

int main(void) {
  const Case cases[] = {{"Context", contexts},    {"TensorHandle", handles}, {"Execute_MatMul", execute},
                        {"Execute_Split", split}, {"Variables", variables},  {"Functions", functions}};
  return run_cases(cases, COUNT(cases));
}
