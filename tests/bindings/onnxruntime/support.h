/* Macros and functions that the tests of ONNX Runtime's C API share. A program is a list of cases; it prints a line for each and exits with
 * 1 if one failed. peer_test.py also runs the same programs with ONNX Runtime's own library. Threads: one. */
#ifndef THALWEG_ONNXRUNTIME_SUPPORT_H
#define THALWEG_ONNXRUNTIME_SUPPORT_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_c_api.h"

static const OrtApi* ort;
static OrtEnv* env;
static OrtAllocator* allocator;
static OrtMemoryInfo* memory;
static int failures;

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) ++failures, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
  } while (0)
/* The call must succeed. */
#define OK(call) expect((call), ORT_OK, __FILE__, __LINE__)
/* The call must fail with the code. */
#define CODE(call, code) expect((call), (code), __FILE__, __LINE__)
#define SAME(text, wanted) CHECK(text_is((text), (wanted)))

static inline int expect(OrtStatus* status, OrtErrorCode wanted, const char* file, int line) {
  const OrtErrorCode code = status ? ort->GetErrorCode(status) : ORT_OK;
  if (code != wanted) {
    ++failures;
    fprintf(stderr, "%s:%d: code %d, not %d: %s\n", file, line, (int)code, (int)wanted,
            status ? ort->GetErrorMessage(status) : "no failure");
  }
  if (status && ort->GetErrorMessage(status)[0] == 0) ++failures, fprintf(stderr, "%s:%d: no message\n", file, line);
  if (status) ort->ReleaseStatus(status);
  return code == ORT_OK;
}

static inline int text_is(const char* text, const char* wanted) { return text && strcmp(text, wanted) == 0; }

typedef struct Case {
  const char* name;
  void (*run)(void);
} Case;

static inline int run_cases(const Case* cases, size_t n) {
  int failed = 0;
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!ort) return fprintf(stderr, "no API of version %d\n", ORT_API_VERSION), 1;
  OK(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env));
  OK(ort->GetAllocatorWithDefaultOptions(&allocator));
  OK(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  for (size_t i = 0; i < n; ++i) {
    failures = 0;
    cases[i].run();
    printf("%s: %s\n", cases[i].name, failures ? "failed" : "passed");
    fflush(stdout);
    failed += failures != 0;
  }
  ort->ReleaseMemoryInfo(memory);
  ort->ReleaseEnv(env);
  return failed != 0;
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline OrtValue* tensor_over(ONNXTensorElementDataType type, const int64_t* dims, size_t rank, void* data, size_t bytes) {
  OrtValue* value = NULL;
  OK(ort->CreateTensorWithDataAsOrtValue(memory, data, bytes, dims, rank, type, &value));
  return value;
}
static inline OrtValue* floats(const int64_t* dims, size_t rank, float* data) {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= (size_t)dims[i];
  return tensor_over(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, dims, rank, data, count * sizeof(float));
}
static inline void* data_of(OrtValue* value) {
  void* data = NULL;
  OK(ort->GetTensorMutableData(value, &data));
  return data;
}
/* The size of an axis, and the number of axes for axis -1; -2 if there is none. */
static inline int64_t dim_of(const OrtValue* value, int axis) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t rank = 0;
  int64_t dims[16] = {0};
  if (!OK(ort->GetTensorTypeAndShape(value, &info))) return -2;
  OK(ort->GetDimensionsCount(info, &rank));
  OK(ort->GetDimensions(info, dims, rank));
  ort->ReleaseTensorTypeAndShapeInfo(info);
  return axis < 0 ? (int64_t)rank : axis < (int)rank ? dims[axis] : -2;
}
#endif
