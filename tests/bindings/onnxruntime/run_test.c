/* Sessions: models from files and from memory, their names and types, runs, bindings, metadata, options, cancellation. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>

#include "models.h"
#include "support.h"

static OrtSession* session_of(const Bytes* model, const OrtSessionOptions* options) {
  OrtSession* session = NULL;
  OK(ort->CreateSessionFromArray(env, model->data, model->size, options, &session));
  return session;
}
static int64_t two_by_two[] = {2, 2};

/* Runs a model of one input and one output; NULL after a failure. */
static OrtValue* run1(OrtSession* session, const OrtValue* x) {
  const char* const in[] = {"x"};
  const char* const out[] = {"y"};
  OrtValue* y = NULL;
  OK(ort->Run(session, NULL, in, &x, 1, out, 1, &y));
  return y;
}

static void run_adds(void) {
  const Bytes model = add_model();
  OrtSession* session = session_of(&model, NULL);
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  OrtValue *x = floats(two_by_two, 2, a), *y = floats(two_by_two, 2, b), *z = NULL;
  const char* const in[] = {"y", "x"};
  const char* const out[] = {"z"};
  const OrtValue* values[] = {y, x};
  if (session && OK(ort->Run(session, NULL, in, values, 2, out, 1, &z))) {
    const float* sum = data_of(z);
    CHECK(dim_of(z, -1) == 2 && dim_of(z, 0) == 2 && dim_of(z, 1) == 2);
    CHECK(sum[0] == 11 && sum[1] == 22 && sum[2] == 33 && sum[3] == 44);
  }
  ort->ReleaseSession(session);
  CHECK(z && ((float*)data_of(z))[3] == 44); /* a result outlives its session */
  ort->ReleaseValue(z);
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
}

static void from_a_file(void) {
  const Bytes model = add_model();
  char path[] = "/tmp/onnxruntime_test_XXXXXX";
  OrtSession* session = NULL;
  const int fd = mkstemp(path);
  FILE* file = fdopen(fd, "wb");
  CHECK(fwrite(model.data, 1, model.size, file) == model.size);
  fclose(file);
  if (OK(ort->CreateSession(env, path, NULL, &session))) {
    size_t count = 0;
    OK(ort->SessionGetInputCount(session, &count));
    CHECK(count == 2);
  }
  ort->ReleaseSession(session);
  remove(path);
  session = NULL;
  CODE(ort->CreateSession(env, path, NULL, &session), ORT_NO_SUCHFILE);
  CHECK(session == NULL);
}

static void names_and_types(void) {
  const Bytes model = add_model();
  OrtSession* session = session_of(&model, NULL);
  size_t inputs = 0, outputs = 0, initialized = 9, count = 0, length = 9;
  char* name = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  int64_t dims[2];
  const char* symbols[2] = {NULL, NULL};
  const char* denotation = NULL;
  OK(ort->SessionGetInputCount(session, &inputs));
  OK(ort->SessionGetOutputCount(session, &outputs));
  OK(ort->SessionGetOverridableInitializerCount(session, &initialized));
  CHECK(inputs == 2 && outputs == 1 && initialized == 0);
  OK(ort->SessionGetInputName(session, 1, allocator, &name));
  SAME(name, "y");
  OK(ort->AllocatorFree(allocator, name));
  OK(ort->SessionGetOutputName(session, 0, allocator, &name));
  SAME(name, "z");
  OK(ort->AllocatorFree(allocator, name));
  OK(ort->SessionGetInputTypeInfo(session, 0, &type));
  OK(ort->GetOnnxTypeFromTypeInfo(type, &kind));
  OK(ort->CastTypeInfoToTensorInfo(type, &info));
  OK(ort->GetTensorElementType(info, &element));
  OK(ort->GetDimensionsCount(info, &count));
  OK(ort->GetDimensions(info, dims, 2));
  OK(ort->GetSymbolicDimensions(info, symbols, 2));
  OK(ort->GetDenotationFromTypeInfo(type, &denotation, &length));
  CHECK(kind == ONNX_TYPE_TENSOR && element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && count == 2);
  CHECK(dims[0] == -1 && dims[1] == 2 && length == 0);
  SAME(symbols[0], "n");
  SAME(symbols[1], "");
  ort->ReleaseTypeInfo(type);
  name = NULL;
  CODE(ort->SessionGetInputName(session, 2, allocator, &name), ORT_FAIL);
  CODE(ort->SessionGetOutputTypeInfo(session, 1, &type), ORT_FAIL);
  ort->ReleaseSession(session);
}

static void initializers(void) {
  const float weight[] = {5};
  Bytes graph = {0, {0}};
  put_node(&graph, "Mul", "x", "w", "y", NULL, 0);
  put_value(&graph, 11, "x", 1, "n");
  put_value(&graph, 11, "w", 1, "1");
  put_value(&graph, 12, "y", 1, "n");
  put_floats(&graph, "w", weight, 1);
  const Bytes model = model_of(&graph);
  OrtSession* session = session_of(&model, NULL);
  size_t inputs = 0, initialized = 0;
  char* name = NULL;
  const int64_t dims[] = {3};
  float data[] = {1, 2, 3};
  OrtValue *x = floats(dims, 1, data), *y = NULL;
  OK(ort->SessionGetInputCount(session, &inputs));
  OK(ort->SessionGetOverridableInitializerCount(session, &initialized));
  CHECK(inputs == 1 && initialized == 1);
  OK(ort->SessionGetOverridableInitializerName(session, 0, allocator, &name));
  SAME(name, "w");
  OK(ort->AllocatorFree(allocator, name));
  y = run1(session, x);
  CHECK(y && ((float*)data_of(y))[2] == 15);
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
}

/* A result that is the input itself, or a weight, has memory of its own. */
static void results_share_no_memory(void) {
  const float weight[] = {7, 8};
  Bytes graph = {0, {0}};
  put_node(&graph, "Identity", "x", NULL, "y", NULL, 0);
  put_node(&graph, "Identity", "w", NULL, "c", NULL, 0);
  put_value(&graph, 11, "x", 1, "n");
  put_value(&graph, 12, "y", 1, "n");
  put_value(&graph, 12, "c", 1, "2");
  put_floats(&graph, "w", weight, 2);
  const Bytes model = model_of(&graph);
  OrtSession* session = session_of(&model, NULL);
  const int64_t dims[] = {2};
  const char* const in[] = {"x"};
  const char* const out[] = {"y", "c"};
  float data[] = {1, 2};
  for (int own = 0; own < 2; ++own) {
    OrtValue *x = NULL, *results[2] = {NULL, NULL};
    if (own) {
      OK(ort->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
      memcpy(data_of(x), data, sizeof data);
    } else {
      x = floats(dims, 1, data);
    }
    if (OK(ort->Run(session, NULL, in, (const OrtValue* const*)&x, 1, out, 2, results))) {
      ((float*)data_of(x))[0] = 100;
      ((float*)data_of(results[1]))[0] = 300;
      CHECK(((float*)data_of(results[0]))[0] == 1 && ((float*)data_of(results[0]))[1] == 2);
    }
    for (int i = 0; i < 2; ++i) ort->ReleaseValue(results[i]);
    memset(results, 0, sizeof results);
    OK(ort->Run(session, NULL, in, (const OrtValue* const*)&x, 1, out, 2, results));
    CHECK(results[1] && ((float*)data_of(results[1]))[0] == 7);
    for (int i = 0; i < 2; ++i) ort->ReleaseValue(results[i]);
    ort->ReleaseValue(x);
    data[0] = 1;
  }
  ort->ReleaseSession(session);
}

static void given_outputs(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSession* session = session_of(&model, NULL);
  const int64_t dims[] = {2}, other[] = {3};
  const char* const in[] = {"x"};
  const char* const out[] = {"y"};
  float data[] = {1, 2}, result[] = {0, 0, 0};
  OrtValue *x = floats(dims, 1, data), *y = floats(dims, 1, result), *kept = y;
  OK(ort->Run(session, NULL, in, (const OrtValue* const*)&x, 1, out, 1, &y));
  CHECK(y == kept && result[0] == -1 && result[1] == -2);
  ort->ReleaseValue(y);
  y = floats(other, 1, result);
  OrtStatus* status = ort->Run(session, NULL, in, (const OrtValue* const*)&x, 1, out, 1, &y);
  CHECK(status != NULL);
  ort->ReleaseStatus(status);
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
}

/* Each element type comes out as it went in. */
static void every_type_passes(void) {
  const int types[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16};
  const size_t sizes[] = {4, 1, 1, 2, 2, 4, 8, 1, 2, 8, 4, 8, 2};
  for (size_t i = 0; i < COUNT(types); ++i) {
    const Bytes model = unary_model("Identity", types[i], types[i], "n", NULL, 0);
    OrtSession* session = session_of(&model, NULL);
    unsigned char data[3 * 8] __attribute__((aligned(8)));
    for (size_t k = 0; k < sizeof data; ++k) data[k] = (unsigned char)(types[i] == 9 ? k & 1 : k + 1);
    const int64_t dims[] = {3};
    OrtValue* x = tensor_over((ONNXTensorElementDataType)types[i], dims, 1, data, 3 * sizes[i]);
    OrtValue* y = session ? run1(session, x) : NULL;
    CHECK(y && memcmp(data_of(y), data, 3 * sizes[i]) == 0 && data_of(y) != data);
    ort->ReleaseValue(x);
    ort->ReleaseValue(y);
    ort->ReleaseSession(session);
  }
}

static void casts(void) {
  const int64_t dims[] = {3};
  float data[] = {0, 1.5f, -2};
  const Bytes to_half = unary_model("Cast", 1, 10, "n", "to", 10), to_bool = unary_model("Cast", 1, 9, "n", "to", 9);
  const Bytes to_bfloat = unary_model("Cast", 1, 16, "n", "to", 16);
  OrtValue *x = floats(dims, 1, data), *y = NULL;
  OrtSession* session = session_of(&to_half, NULL);
  y = run1(session, x);
  CHECK(y && ((uint16_t*)data_of(y))[1] == 0x3e00 && ((uint16_t*)data_of(y))[2] == 0xc000);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
  session = session_of(&to_bool, NULL);
  y = run1(session, x);
  CHECK(y && memcmp(data_of(y), "\0\1\1", 3) == 0);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
  session = session_of(&to_bfloat, NULL);
  y = run1(session, x);
  CHECK(y && ((uint16_t*)data_of(y))[1] == 0x3fc0);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
  ort->ReleaseValue(x);
}

static void string_tensors_run(void) {
  const Bytes model = unary_model("Identity", 8, 8, "n", NULL, 0);
  OrtSession* session = session_of(&model, NULL);
  const int64_t dims[] = {2};
  const char* const texts[] = {"a", "longer than any string that is stored in place, surely"};
  OrtValue *x = NULL, *y = NULL;
  size_t length = 0;
  char text[100];
  OK(ort->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &x));
  OK(ort->FillStringTensor(x, texts, 2));
  y = run1(session, x);
  if (y) {
    OK(ort->GetStringTensorElementLength(y, 1, &length));
    CHECK(length == strlen(texts[1]));
    OK(ort->GetStringTensorElement(y, length, 1, text));
    CHECK(memcmp(text, texts[1], length) == 0);
  }
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
}

static void sequences_run(void) {
  Bytes graph = {0, {0}};
  put_node(&graph, "SplitToSequence", "x", NULL, "y", "axis", 0);
  put_value(&graph, 11, "x", 1, "3 2");
  put_sequence(&graph, 12, "y", 1);
  const Bytes split = model_of(&graph);
  Bytes joins = {0, {0}};
  put_node(&joins, "ConcatFromSequence", "x", NULL, "y", "axis", 0);
  put_sequence(&joins, 11, "x", 1);
  put_value(&joins, 12, "y", 1, NULL);
  const Bytes join = model_of(&joins);
  const int64_t dims[] = {3, 2};
  float data[] = {1, 2, 3, 4, 5, 6};
  size_t count = 0;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OrtTypeInfo* type = NULL;
  OrtSession *splits = session_of(&split, NULL), *session = session_of(&join, NULL);
  OrtValue *x = floats(dims, 2, data), *parts = NULL, *part = NULL, *joined = NULL;
  OK(ort->SessionGetOutputTypeInfo(splits, 0, &type));
  OK(ort->GetOnnxTypeFromTypeInfo(type, &kind));
  CHECK(kind == ONNX_TYPE_SEQUENCE);
  ort->ReleaseTypeInfo(type);
  parts = run1(splits, x);
  if (parts) {
    OK(ort->GetValueType(parts, &kind));
    OK(ort->GetValueCount(parts, &count));
    CHECK(kind == ONNX_TYPE_SEQUENCE && count == 3);
    OK(ort->GetValue(parts, 2, allocator, &part));
    CHECK(((float*)data_of(part))[1] == 6);
    joined = run1(session, parts);
    CHECK(joined && dim_of(joined, 0) == 3 && memcmp(data_of(joined), data, sizeof data) == 0);
  }
  ort->ReleaseValue(x);
  ort->ReleaseValue(part);
  ort->ReleaseValue(parts);
  ort->ReleaseValue(joined);
  ort->ReleaseSession(splits);
  ort->ReleaseSession(session);
}

static void bindings(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSession* session = session_of(&model, NULL);
  OrtIoBinding* binding = NULL;
  const int64_t dims[] = {2};
  float data[] = {1, 2}, result[] = {0, 0};
  OrtValue *x = floats(dims, 1, data), *y = floats(dims, 1, result), **values = NULL;
  size_t count = 0, *lengths = NULL;
  char* names = NULL;
  OK(ort->CreateIoBinding(session, &binding));
  OK(ort->BindInput(binding, "x", x));
  OK(ort->BindOutput(binding, "y", y));
  OK(ort->RunWithBinding(session, NULL, binding));
  CHECK(result[0] == -1 && result[1] == -2);
  data[0] = 5;
  OK(ort->RunWithBinding(session, NULL, binding));
  CHECK(result[0] == -5);
  ort->ClearBoundOutputs(binding);
  OK(ort->BindOutputToDevice(binding, "y", memory));
  OK(ort->RunWithBinding(session, NULL, binding));
  OK(ort->SynchronizeBoundOutputs(binding));
  OK(ort->GetBoundOutputNames(binding, allocator, &names, &lengths, &count));
  CHECK(count == 1 && lengths[0] == 1 && names[0] == 'y');
  OK(ort->AllocatorFree(allocator, names));
  OK(ort->AllocatorFree(allocator, lengths));
  OK(ort->GetBoundOutputValues(binding, allocator, &values, &count));
  CHECK(count == 1 && ((float*)data_of(values[0]))[0] == -5);
  if (count == 1) ort->ReleaseValue(values[0]);
  OK(ort->AllocatorFree(allocator, values));
  ort->ClearBoundInputs(binding);
  OrtStatus* missing = ort->RunWithBinding(session, NULL, binding);
  CHECK(missing != NULL);
  ort->ReleaseStatus(missing);
  ort->ReleaseIoBinding(binding);
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
}

static void metadata(void) {
  const Bytes model = add_model();
  OrtSession* session = session_of(&model, NULL);
  OrtModelMetadata* about = NULL;
  char *text = NULL, **keys = NULL;
  int64_t number = 0;
  OK(ort->SessionGetModelMetadata(session, &about));
#define TEXT(function, wanted)                  \
  do {                                          \
    text = NULL;                                \
    OK(ort->function(about, allocator, &text)); \
    SAME(text, wanted);                         \
    OK(ort->AllocatorFree(allocator, text));    \
  } while (0)
  TEXT(ModelMetadataGetProducerName, "test writer");
  TEXT(ModelMetadataGetGraphName, "small graph");
  TEXT(ModelMetadataGetDomain, "org.example");
  TEXT(ModelMetadataGetDescription, "what the model is for");
  TEXT(ModelMetadataGetGraphDescription, "what the graph is for");
  OK(ort->ModelMetadataGetVersion(about, &number));
  CHECK(number == 42);
  OK(ort->ModelMetadataGetCustomMetadataMapKeys(about, allocator, &keys, &number));
  CHECK(number == 1);
  if (keys) {
    SAME(keys[0], "colour");
    OK(ort->AllocatorFree(allocator, keys[0]));
    OK(ort->AllocatorFree(allocator, keys));
  }
  OK(ort->ModelMetadataLookupCustomMetadataMap(about, allocator, "colour", &text));
  SAME(text, "blue");
  OK(ort->AllocatorFree(allocator, text));
  OK(ort->ModelMetadataLookupCustomMetadataMap(about, allocator, "size", &text));
  CHECK(text == NULL);
  ort->ReleaseModelMetadata(about);
  ort->ReleaseSession(session);
}

static void fixed_sizes(void) {
  const Bytes model = add_model();
  OrtSessionOptions* options = NULL;
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* info = NULL;
  int64_t dims[2] = {0, 0};
  const int64_t three[] = {3, 2};
  float data[6] = {0};
  OK(ort->CreateSessionOptions(&options));
  OK(ort->AddFreeDimensionOverrideByName(options, "n", 2));
  OrtSession* session = session_of(&model, options);
  OK(ort->SessionGetInputTypeInfo(session, 0, &type));
  OK(ort->CastTypeInfoToTensorInfo(type, &info));
  OK(ort->GetDimensions(info, dims, 2));
  CHECK(dims[0] == 2);
  ort->ReleaseTypeInfo(type);
  OrtValue *x = floats(three, 2, data), *z = NULL;
  const char* const in[] = {"x", "y"};
  const char* const out[] = {"z"};
  const OrtValue* values[] = {x, x};
  CODE(ort->Run(session, NULL, in, values, 2, out, 1, &z), ORT_INVALID_ARGUMENT);
  ort->ReleaseValue(x);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
}

static void terminated_runs(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSession* session = session_of(&model, NULL);
  OrtRunOptions* options = NULL;
  const int64_t dims[] = {1};
  float data[] = {1};
  OrtValue *x = floats(dims, 1, data), *y = NULL;
  const char* const in[] = {"x"};
  const char* const out[] = {"y"};
  OK(ort->CreateRunOptions(&options));
  OK(ort->RunOptionsSetTerminate(options));
  CODE(ort->Run(session, options, in, (const OrtValue* const*)&x, 1, out, 1, &y), ORT_FAIL);
  CHECK(y == NULL);
  OK(ort->RunOptionsUnsetTerminate(options));
  OK(ort->Run(session, options, in, (const OrtValue* const*)&x, 1, out, 1, &y));
  CHECK(y && ((float*)data_of(y))[0] == -1);
  ort->ReleaseValue(y);
  ort->ReleaseValue(x);
  ort->ReleaseRunOptions(options);
  ort->ReleaseSession(session);
}

typedef struct Waiter {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  int done;
  OrtStatus* status;
  size_t count;
} Waiter;
static void ended(void* user, OrtValue** outputs, size_t count, OrtStatus* status) {
  Waiter* w = user;
  (void)outputs;
  pthread_mutex_lock(&w->mu);
  w->done = 1;
  w->status = status;
  w->count = count;
  pthread_cond_signal(&w->changed);
  pthread_mutex_unlock(&w->mu);
}
static void asynchronous_runs(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSessionOptions* options = NULL;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->SetIntraOpNumThreads(options, 2));
  OrtSession* session = session_of(&model, options);
  Waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, 0};
  const int64_t dims[] = {2};
  float data[] = {1, 2};
  OrtValue *x = floats(dims, 1, data), *y = NULL;
  const char* const in[] = {"x"};
  const char* const out[] = {"y"};
  if (OK(ort->RunAsync(session, NULL, in, (const OrtValue* const*)&x, 1, out, 1, &y, ended, &w))) {
    pthread_mutex_lock(&w.mu);
    while (!w.done) pthread_cond_wait(&w.changed, &w.mu);
    pthread_mutex_unlock(&w.mu);
    CHECK(w.status == NULL && w.count == 1 && y && ((float*)data_of(y))[1] == -2);
  }
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
}

typedef struct Worker {
  OrtSession* session;
  int seed, wrong;
} Worker;
static void* work(void* user) {
  Worker* w = user;
  const int64_t dims[] = {2};
  const char* const in[] = {"x"};
  const char* const out[] = {"y"};
  for (int i = 0; i < 200; ++i) {
    float data[] = {(float)(w->seed + i), 1};
    OrtValue *x = NULL, *y = NULL;
    void* found = NULL;
    OrtStatus* s = ort->CreateTensorWithDataAsOrtValue(memory, data, 8, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x);
    if (!s) s = ort->Run(w->session, NULL, in, (const OrtValue* const*)&x, 1, out, 1, &y);
    if (!s) s = ort->GetTensorMutableData(y, &found);
    w->wrong += s || ((float*)found)[0] != -data[0];
    ort->ReleaseStatus(s);
    ort->ReleaseValue(x);
    ort->ReleaseValue(y);
  }
  return NULL;
}
static void threads_share_a_session(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSession* session = session_of(&model, NULL);
  pthread_t threads[4];
  Worker workers[4];
  for (int i = 0; i < 4; ++i) {
    workers[i] = (Worker){session, i * 1000, 0};
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    CHECK(workers[i].wrong == 0);
  }
  ort->ReleaseSession(session);
}

static atomic_int lines;
static void count_line(void* param, OrtLoggingLevel severity, const char* category, const char* id, const char* place, const char* text) {
  (void)severity, (void)place;
  if (param == &lines && category && id && strcmp(id, "logged") == 0 && text && *text) ++lines;
}
static void logs(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSessionOptions* options = NULL;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->SetUserLoggingFunction(options, count_line, &lines));
  OK(ort->SetSessionLogId(options, "logged"));
  OK(ort->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_INFO));
  OrtSession* session = session_of(&model, options);
  CHECK(lines > 0);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
}

static void profiles(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  OrtSessionOptions* options = NULL;
  const int64_t dims[] = {1};
  float data[] = {1};
  char* path = NULL;
  uint64_t start = 0;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->EnableProfiling(options, "/tmp/onnxruntime_test_profile"));
  OrtSession* session = session_of(&model, options);
  OrtValue *x = floats(dims, 1, data), *y = run1(session, x);
  OK(ort->SessionGetProfilingStartTimeNs(session, &start));
  CHECK(start > 0);
  OK(ort->SessionEndProfiling(session, allocator, &path));
  FILE* file = path ? fopen(path, "rb") : NULL;
  CHECK(file && fgetc(file) != EOF);
  if (file) fclose(file);
  if (path) remove(path);
  OK(ort->AllocatorFree(allocator, path));
  ort->ReleaseValue(x);
  ort->ReleaseValue(y);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
}

static void unoptimized_sessions(void) {
  const Bytes model = add_model();
  OrtSessionOptions* options = NULL;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  OK(ort->SetSessionExecutionMode(options, ORT_PARALLEL));
  OK(ort->SetIntraOpNumThreads(options, 1));
  OrtSession* session = session_of(&model, options);
  float data[] = {1, 2, 3, 4};
  OrtValue *x = floats(two_by_two, 2, data), *z = NULL;
  const char* const in[] = {"x", "y"};
  const char* const out[] = {"z"};
  const OrtValue* values[] = {x, x};
  OK(ort->Run(session, NULL, in, values, 2, out, 1, &z));
  CHECK(z && ((float*)data_of(z))[3] == 8);
  ort->ReleaseValue(x);
  ort->ReleaseValue(z);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
}

static void empty_batches(void) {
  const Bytes model = add_model();
  OrtSession* session = session_of(&model, NULL);
  const int64_t dims[] = {0, 2};
  float none[1];
  OrtValue *x = tensor_over(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, dims, 2, none, 0), *z = NULL;
  const char* const in[] = {"x", "y"};
  const char* const out[] = {"z"};
  const OrtValue* values[] = {x, x};
  OK(ort->Run(session, NULL, in, values, 2, out, 1, &z));
  CHECK(z && dim_of(z, 0) == 0 && dim_of(z, 1) == 2);
  ort->ReleaseValue(x);
  ort->ReleaseValue(z);
  ort->ReleaseSession(session);
}

int main(void) {
  const Case cases[] = {{"RunAdds", run_adds},
                        {"FromAFile", from_a_file},
                        {"NamesAndTypes", names_and_types},
                        {"InitializersAreNoInputs", initializers},
                        {"ResultsShareNoMemory", results_share_no_memory},
                        {"GivenOutputsAreWritten", given_outputs},
                        {"EveryTypePasses", every_type_passes},
                        {"Casts", casts},
                        {"StringTensorsRun", string_tensors_run},
                        {"SequencesRun", sequences_run},
                        {"Bindings", bindings},
                        {"Metadata", metadata},
                        {"FixedSizes", fixed_sizes},
                        {"TerminatedRunsFail", terminated_runs},
                        {"AsynchronousRuns", asynchronous_runs},
                        {"ThreadsShareASession", threads_share_a_session},
                        {"Logs", logs},
                        {"Profiles", profiles},
                        {"UnoptimizedSessions", unoptimized_sessions},
                        {"EmptyBatches", empty_batches}};
  return run_cases(cases, COUNT(cases));
}
