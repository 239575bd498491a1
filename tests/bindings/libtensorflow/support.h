/* Macros and functions that the tests of TensorFlow's C API share. A program is a list of cases; it prints a line for each and exits with 1
 * if one failed. The same sources are compiled against TensorFlow's own headers by tests/bindings/libtensorflow/peer_test.py. Threads: one.
 */
#ifndef THALWEG_LIBTENSORFLOW_SUPPORT_H
#define THALWEG_LIBTENSORFLOW_SUPPORT_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static int failures;
#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) ++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
  } while (0)
/* The call before it must have succeeded. */
#define OK(status)                                                                                                       \
  do {                                                                                                                   \
    if (TF_GetCode(status) != TF_OK) ++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, TF_Message(status)); \
  } while (0)
#define CODE(status, code)                                                                                                  \
  do {                                                                                                                      \
    if (TF_GetCode(status) != (code))                                                                                       \
      ++failures, fprintf(stderr, "%s:%d: code %d: %s\n", __FILE__, __LINE__, (int)TF_GetCode(status), TF_Message(status)); \
  } while (0)
#define SAME(text, wanted) CHECK(strcmp((text), (wanted)) == 0)
#define HAS(text, part)                                                                                  \
  do {                                                                                                   \
    if (!strstr((text), (part))) ++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (text)); \
  } while (0)

typedef struct Case {
  const char* name;
  void (*run)(TF_Status* s);
} Case;

static inline int run_cases(const Case* cases, size_t n) {
  int failed = 0;
  for (size_t i = 0; i < n; ++i) {
    TF_Status* s = TF_NewStatus();
    failures = 0;
    cases[i].run(s);
    TF_DeleteStatus(s);
    printf("%s: %s\n", cases[i].name, failures ? "failed" : "passed");
    fflush(stdout);
    failed += failures != 0;
  }
  return failed != 0;
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline TF_Tensor* tensor_of(TF_DataType type, const int64_t* dims, int n, const void* data, size_t bytes) {
  TF_Tensor* t = TF_AllocateTensor(type, dims, n, bytes);
  memcpy(TF_TensorData(t), data, bytes);
  return t;
}
static inline TF_Tensor* int32_tensor(int32_t v) { return tensor_of(TF_INT32, NULL, 0, &v, sizeof v); }
static inline TF_Tensor* float_tensor(float v) { return tensor_of(TF_FLOAT, NULL, 0, &v, sizeof v); }

static inline TF_Operation* placeholder(TF_Graph* g, TF_DataType type, const char* name, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", name);
  TF_SetAttrType(d, "dtype", type);
  return TF_FinishOperation(d, s);
}
/* Ends the tensor. */
static inline TF_Operation* constant(TF_Graph* g, TF_Tensor* value, const char* name, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Const", name);
  TF_SetAttrTensor(d, "value", value, s);
  TF_SetAttrType(d, "dtype", TF_TensorType(value));
  TF_DeleteTensor(value);
  return TF_FinishOperation(d, s);
}
static inline TF_Operation* scalar(TF_Graph* g, int32_t v, const char* name, TF_Status* s) { return constant(g, int32_tensor(v), name, s); }
static inline TF_Operation* op1(TF_Graph* g, const char* type, const char* name, TF_Output x, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, type, name);
  TF_AddInput(d, x);
  return TF_FinishOperation(d, s);
}
static inline TF_Operation* op2(TF_Graph* g, const char* type, const char* name, TF_Output x, TF_Output y, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, type, name);
  TF_AddInput(d, x);
  TF_AddInput(d, y);
  return TF_FinishOperation(d, s);
}
static inline TF_Output out(TF_Operation* op, int index) {
  TF_Output o = {op, index};
  return o;
}
static inline TF_Operation* add_n(TF_Graph* g, TF_Operation* a, TF_Operation* b, const char* name, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "AddN", name);
  TF_Output inputs[2] = {{a, 0}, {b, 0}};
  TF_AddInputList(d, inputs, 2);
  return TF_FinishOperation(d, s);
}

static inline TF_Session* session_of(TF_Graph* g, TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  return session;
}
static inline void end_session(TF_Session* session, TF_Status* s) {
  TF_CloseSession(session, s);
  OK(s);
  TF_DeleteSession(session, s);
  OK(s);
}
/* Runs one fetch with at most one feed, which it ends. */
static inline TF_Tensor* run1(TF_Session* session, TF_Operation* feed, TF_Tensor* value, TF_Output fetch, TF_Status* s) {
  TF_Tensor* result = NULL;
  TF_Output input = {feed, 0};
  TF_SessionRun(session, NULL, &input, &value, feed ? 1 : 0, &fetch, &result, 1, NULL, 0, NULL, s);
  TF_DeleteTensor(value);
  return result;
}
/* The value of a fetched int32 scalar, which it ends; -12345 if there is none. */
static inline int32_t take_int32(TF_Tensor* t) {
  if (!t || TF_TensorType(t) != TF_INT32 || TF_NumDims(t) != 0 || TF_TensorByteSize(t) != 4) return -12345;
  const int32_t v = *(const int32_t*)TF_TensorData(t);
  TF_DeleteTensor(t);
  return v;
}
static inline float take_float(TF_Tensor* t) {
  if (!t || TF_TensorType(t) != TF_FLOAT) return -12345;
  const float v = *(const float*)TF_TensorData(t);
  TF_DeleteTensor(t);
  return v;
}
#endif
