/* Statuses, memory, types, tensors, strings, sequences, maps, options. */
#include "support.h"

static void version(void) {
  CHECK(OrtGetApiBase()->GetVersionString()[0] == '1');
  CHECK(OrtGetApiBase()->GetApi(1) != NULL && OrtGetApiBase()->GetApi(ORT_API_VERSION) != NULL);
  CHECK(OrtGetApiBase()->GetApi(100000) == NULL);
}

static void status(void) {
  OrtStatus* s = ort->CreateStatus(ORT_NO_MODEL, "no model here");
  CHECK(ort->GetErrorCode(s) == ORT_NO_MODEL);
  SAME(ort->GetErrorMessage(s), "no model here");
  ort->ReleaseStatus(s);
  ort->ReleaseStatus(NULL);
}

static void memory_info(void) {
  OrtMemoryInfo *a = NULL, *b = NULL;
  const char* name = NULL;
  int id = -1, same = -1;
  OrtMemType type = OrtMemTypeCPUInput;
  OrtAllocatorType kind = OrtInvalidAllocator;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_GPU;
  OK(ort->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &a));
  OK(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &b));
  OK(ort->CompareMemoryInfo(a, b, &same));
  CHECK(same == 0);
  OK(ort->CompareMemoryInfo(a, memory, &same));
  CHECK(same != 0);
  OK(ort->MemoryInfoGetName(a, &name));
  SAME(name, "Cpu");
  OK(ort->MemoryInfoGetId(a, &id));
  OK(ort->MemoryInfoGetMemType(a, &type));
  OK(ort->MemoryInfoGetType(a, &kind));
  ort->MemoryInfoGetDeviceType(a, &device);
  CHECK(id == 0 && type == OrtMemTypeDefault && kind == OrtDeviceAllocator && device == OrtMemoryInfoDeviceType_CPU);
  ort->ReleaseMemoryInfo(a);
  ort->ReleaseMemoryInfo(b);
  a = NULL;
  CODE(ort->CreateMemoryInfo("Moon", OrtDeviceAllocator, 0, OrtMemTypeDefault, &a), ORT_INVALID_ARGUMENT);
  CHECK(a == NULL);
}

static void allocators(void) {
  void* p = NULL;
  const OrtMemoryInfo* info = NULL;
  const char* name = NULL;
  OK(ort->AllocatorAlloc(allocator, 1000, &p));
  CHECK(p != NULL);
  memset(p, 1, 1000);
  OK(ort->AllocatorFree(allocator, p));
  OK(ort->AllocatorGetInfo(allocator, &info));
  OK(ort->MemoryInfoGetName(info, &name));
  SAME(name, "Cpu");
}

static void every_type(void) {
  const size_t bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2, 1, 1, 1, 1};
  for (int type = 1; type <= 20; ++type) {
    const int64_t dims[] = {2, 3};
    OrtValue* value = NULL;
    OrtTensorTypeAndShapeInfo* info = NULL;
    ONNXTensorElementDataType found = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t count = 0, size = 0;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128) continue;
    OK(ort->CreateTensorAsOrtValue(allocator, dims, 2, (ONNXTensorElementDataType)type, &value));
    OK(ort->GetTensorTypeAndShape(value, &info));
    OK(ort->GetTensorElementType(info, &found));
    OK(ort->GetTensorShapeElementCount(info, &count));
    CHECK((int)found == type && count == 6);
    if (bytes[type] > 0) {
      OK(ort->GetTensorSizeInBytes(value, &size));
      CHECK(size == 6 * bytes[type] && data_of(value) != NULL);
      memset(data_of(value), 1, size);
    }
    ort->ReleaseTensorTypeAndShapeInfo(info);
    ort->ReleaseValue(value);
  }
}

static void short_integers(void) {
  const int64_t dims[] = {5};
  OrtValue* value = NULL;
  size_t size = 0;
  OK(ort->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, &value));
  OK(ort->GetTensorSizeInBytes(value, &size));
  CHECK(size == 3);
  ort->ReleaseValue(value);
}

static void client_memory(void) {
  const int64_t dims[] = {2, 2}, negative[] = {2, -1};
  float data[4] = {1, 2, 3, 4};
  int is = 0;
  void* at = NULL;
  const int64_t place[] = {1, 0}, outside[] = {2, 0};
  const OrtMemoryInfo* info = NULL;
  OrtValue *value = floats(dims, 2, data), *none = NULL;
  CHECK(data_of(value) == data);
  OK(ort->IsTensor(value, &is));
  CHECK(is == 1);
  OK(ort->TensorAt(value, place, 2, &at));
  CHECK(at == &data[2]);
  CODE(ort->TensorAt(value, outside, 2, &at), ORT_INVALID_ARGUMENT);
  OK(ort->GetTensorMemoryInfo(value, &info));
  CHECK(info != NULL);
  ort->ReleaseValue(value);
  CHECK(data[3] == 4);
  CODE(ort->CreateTensorWithDataAsOrtValue(memory, data, 15, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &none), ORT_INVALID_ARGUMENT);
  CODE(ort->CreateTensorWithDataAsOrtValue(memory, data, 16, negative, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &none),
       ORT_INVALID_ARGUMENT);
  CHECK(none == NULL);
}

static void scalars_and_empty_tensors(void) {
  const int64_t dims[] = {0, 3};
  OrtValue *scalar = NULL, *empty = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 9, rank = 9;
  OK(ort->CreateTensorAsOrtValue(allocator, NULL, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, &scalar));
  CHECK(dim_of(scalar, -1) == 0);
  *(double*)data_of(scalar) = 1.5;
  OK(ort->CreateTensorAsOrtValue(allocator, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, &empty));
  OK(ort->GetTensorTypeAndShape(empty, &info));
  OK(ort->GetTensorShapeElementCount(info, &count));
  OK(ort->GetDimensionsCount(info, &rank));
  CHECK(count == 0 && rank == 2);
  ort->ReleaseTensorTypeAndShapeInfo(info);
  ort->ReleaseValue(empty);
  ort->ReleaseValue(scalar);
}

static void strings(void) {
  const int64_t dims[] = {3};
  const char* const texts[] = {"one", "", "three"};
  char all[16], one[8];
  size_t total = 0, offsets[3], length = 0;
  OrtValue* value = NULL;
  OK(ort->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OK(ort->FillStringTensor(value, texts, 3));
  OK(ort->GetStringTensorDataLength(value, &total));
  CHECK(total == 8);
  OK(ort->GetStringTensorContent(value, all, sizeof all, offsets, 3));
  CHECK(memcmp(all, "onethree", 8) == 0 && offsets[0] == 0 && offsets[1] == 3 && offsets[2] == 3);
  OK(ort->FillStringTensorElement(value, "second", 1));
  OK(ort->GetStringTensorElementLength(value, 1, &length));
  CHECK(length == 6);
  OK(ort->GetStringTensorElement(value, sizeof one, 1, one));
  CHECK(memcmp(one, "second", 6) == 0);
  CODE(ort->FillStringTensorElement(value, "x", 3), ORT_INVALID_ARGUMENT);
  CODE(ort->GetStringTensorElementLength(value, 3, &length), ORT_INVALID_ARGUMENT);
  CODE(ort->FillStringTensor(value, texts, 2), ORT_INVALID_ARGUMENT);
  char* buffer = NULL;
  OK(ort->GetResizedStringTensorElementBuffer(value, 0, 2, &buffer));
  memcpy(buffer, "ab", 2);
  OK(ort->GetStringTensorElement(value, sizeof one, 0, one));
  CHECK(memcmp(one, "ab", 2) == 0);
  ort->ReleaseValue(value);
}

static void sequences(void) {
  const int64_t two[] = {2}, one[] = {1};
  float a[2] = {1, 2}, b[1] = {3};
  int64_t c[1] = {4};
  OrtValue* in[2] = {floats(two, 1, a), floats(one, 1, b)};
  OrtValue *sequence = NULL, *part = NULL, *none = NULL;
  ONNXType type = ONNX_TYPE_UNKNOWN;
  size_t count = 0;
  OK(ort->CreateValue((const OrtValue* const*)in, 2, ONNX_TYPE_SEQUENCE, &sequence));
  OK(ort->GetValueType(sequence, &type));
  OK(ort->GetValueCount(sequence, &count));
  CHECK(type == ONNX_TYPE_SEQUENCE && count == 2);
  OK(ort->GetValue(sequence, 1, allocator, &part));
  CHECK(((float*)data_of(part))[0] == 3 && dim_of(part, 0) == 1);
  ort->ReleaseValue(part);
  OrtTypeInfo *info = NULL, *element = NULL;
  const OrtSequenceTypeInfo* inner = NULL;
  OK(ort->GetTypeInfo(sequence, &info));
  OK(ort->CastTypeInfoToSequenceTypeInfo(info, &inner));
  OK(ort->GetSequenceElementType(inner, &element));
  OK(ort->GetOnnxTypeFromTypeInfo(element, &type));
  CHECK(type == ONNX_TYPE_TENSOR);
  ort->ReleaseTypeInfo(element);
  ort->ReleaseTypeInfo(info);
  ort->ReleaseValue(in[1]);
  in[1] = tensor_over(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, one, 1, c, 8);
  OrtStatus* mixed = ort->CreateValue((const OrtValue* const*)in, 2, ONNX_TYPE_SEQUENCE, &none);
  CHECK(mixed != NULL);
  ort->ReleaseStatus(mixed);
  ort->ReleaseValue(in[0]);
  ort->ReleaseValue(in[1]);
  ort->ReleaseValue(sequence);
}

static void maps(void) {
  const int64_t three[] = {3};
  int64_t k[3] = {30, 10, 20};
  float v[3] = {3, 1, 2};
  OrtValue* in[2] = {tensor_over(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, three, 1, k, sizeof k), floats(three, 1, v)};
  OrtValue *map = NULL, *part = NULL;
  ONNXType type = ONNX_TYPE_UNKNOWN;
  size_t count = 0;
  OK(ort->CreateValue((const OrtValue* const*)in, 2, ONNX_TYPE_MAP, &map));
  OK(ort->GetValueType(map, &type));
  OK(ort->GetValueCount(map, &count));
  CHECK(type == ONNX_TYPE_MAP && count == 2);
  OK(ort->GetValue(map, 0, allocator, &part));
  CHECK(((int64_t*)data_of(part))[0] == 10 && ((int64_t*)data_of(part))[2] == 30);
  ort->ReleaseValue(part);
  OK(ort->GetValue(map, 1, allocator, &part));
  CHECK(((float*)data_of(part))[0] == 1 && ((float*)data_of(part))[2] == 3);
  ort->ReleaseValue(part);
  part = NULL;
  OrtStatus* outside = ort->GetValue(map, 2, allocator, &part);
  CHECK(outside != NULL);
  ort->ReleaseStatus(outside);
  ort->ReleaseValue(map);
  ort->ReleaseValue(in[0]);
  ort->ReleaseValue(in[1]);
}

static void shape_info(void) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  const int64_t dims[] = {2, -1};
  const char* names[2] = {"", "n"};
  int64_t found[2] = {0, 0};
  size_t count = 0;
  OK(ort->CreateTensorTypeAndShapeInfo(&info));
  OK(ort->SetTensorElementType(info, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8));
  OK(ort->SetDimensions(info, dims, 2));
  OK(ort->GetDimensionsCount(info, &count));
  OK(ort->GetDimensions(info, found, 2));
  CHECK(count == 2 && found[0] == 2 && found[1] == -1);
  OK(ort->SetSymbolicDimensions(info, names, 2));
  names[1] = NULL;
  OK(ort->GetSymbolicDimensions(info, names, 2));
  SAME(names[1], "n");
  ort->ReleaseTensorTypeAndShapeInfo(info);
}

static void session_options(void) {
  OrtSessionOptions *options = NULL, *clone = NULL;
  char value[8];
  size_t size = 0;
  int has = 0;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->SetSessionExecutionMode(options, ORT_PARALLEL));
  OK(ort->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_BASIC));
  OK(ort->SetIntraOpNumThreads(options, 1));
  OK(ort->SetInterOpNumThreads(options, 1));
  OK(ort->EnableMemPattern(options));
  OK(ort->DisableCpuMemArena(options));
  OK(ort->SetSessionLogId(options, "id"));
  OK(ort->SetSessionLogSeverityLevel(options, 3));
  OK(ort->SetSessionLogVerbosityLevel(options, 0));
  CODE(ort->SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)50), ORT_INVALID_ARGUMENT);
  CODE(ort->SetSessionExecutionMode(options, (ExecutionMode)7), ORT_INVALID_ARGUMENT);
  OK(ort->AddSessionConfigEntry(options, "key", "text"));
  CODE(ort->AddSessionConfigEntry(options, "", "text"), ORT_INVALID_ARGUMENT);
  OK(ort->HasSessionConfigEntry(options, "key", &has));
  CHECK(has == 1);
  OK(ort->CloneSessionOptions(options, &clone));
  OK(ort->GetSessionConfigEntry(clone, "key", NULL, &size));
  CHECK(size == 5);
  OK(ort->GetSessionConfigEntry(clone, "key", value, &size));
  SAME(value, "text");
  size = 2;
  CODE(ort->GetSessionConfigEntry(clone, "key", value, &size), ORT_INVALID_ARGUMENT);
  OK(ort->HasSessionConfigEntry(clone, "other", &has));
  CHECK(has == 0);
  ort->ReleaseSessionOptions(clone);
  ort->ReleaseSessionOptions(options);
}

static void run_options(void) {
  OrtRunOptions* options = NULL;
  const char* tag = NULL;
  int level = -5;
  OK(ort->CreateRunOptions(&options));
  OK(ort->RunOptionsSetRunTag(options, "tag"));
  OK(ort->RunOptionsGetRunTag(options, &tag));
  SAME(tag, "tag");
  OK(ort->RunOptionsSetRunLogSeverityLevel(options, 3));
  OK(ort->RunOptionsGetRunLogSeverityLevel(options, &level));
  CHECK(level == 3);
  OK(ort->AddRunConfigEntry(options, "key", "text"));
  SAME(ort->GetRunConfigEntry(options, "key"), "text");
  CHECK(ort->GetRunConfigEntry(options, "other") == NULL);
  ort->ReleaseRunOptions(options);
}

static void pairs(void) {
  OrtKeyValuePairs* kv = NULL;
  const char* const* keys = NULL;
  const char* const* values = NULL;
  size_t count = 0;
  ort->CreateKeyValuePairs(&kv);
  ort->AddKeyValuePair(kv, "b", "2");
  ort->AddKeyValuePair(kv, "a", "1");
  ort->AddKeyValuePair(kv, "b", "3");
  SAME(ort->GetKeyValue(kv, "b"), "3");
  ort->GetKeyValuePairs(kv, &keys, &values, &count);
  CHECK(count == 2);
  ort->RemoveKeyValuePair(kv, "a");
  CHECK(ort->GetKeyValue(kv, "a") == NULL);
  ort->ReleaseKeyValuePairs(kv);
}

static void providers(void) {
  char** names = NULL;
  int count = 0, found = 0;
  OrtSessionOptions* options = NULL;
  OK(ort->GetAvailableProviders(&names, &count));
  for (int i = 0; i < count; ++i) found += strcmp(names[i], "CPUExecutionProvider") == 0;
  CHECK(found == 1);
  OK(ort->ReleaseAvailableProviders(names, count));
  OK(ort->CreateSessionOptions(&options));
  CODE(ort->SessionOptionsAppendExecutionProvider(options, "Moon", NULL, NULL, 0), ORT_INVALID_ARGUMENT);
  OK(OrtSessionOptionsAppendExecutionProvider_CPU(options, 1));
  ort->ReleaseSessionOptions(options);
}

static void released_nulls(void) {
  ort->ReleaseEnv(NULL);
  ort->ReleaseMemoryInfo(NULL);
  ort->ReleaseSession(NULL);
  ort->ReleaseValue(NULL);
  ort->ReleaseRunOptions(NULL);
  ort->ReleaseTypeInfo(NULL);
  ort->ReleaseTensorTypeAndShapeInfo(NULL);
  ort->ReleaseSessionOptions(NULL);
  ort->ReleaseModelMetadata(NULL);
  ort->ReleaseIoBinding(NULL);
  ort->ReleaseAllocator(NULL);
  ort->ReleaseThreadingOptions(NULL);
  ort->ReleaseCustomOpDomain(NULL);
}

int main(void) {
  const Case cases[] = {{"Version", version},
                        {"Status", status},
                        {"MemoryInfo", memory_info},
                        {"Allocators", allocators},
                        {"EveryTypeHasItsSize", every_type},
                        {"ShortIntegersArePacked", short_integers},
                        {"ClientMemoryIsUsedWithoutACopy", client_memory},
                        {"ScalarsAndEmptyTensors", scalars_and_empty_tensors},
                        {"Strings", strings},
                        {"Sequences", sequences},
                        {"MapsAreSortedByKey", maps},
                        {"ShapeInfo", shape_info},
                        {"SessionOptions", session_options},
                        {"RunOptions", run_options},
                        {"KeyValuePairs", pairs},
                        {"Providers", providers},
                        {"ReleasingNullIsSafe", released_nulls}};
  return run_cases(cases, COUNT(cases));
}
