/* Wrong names, types, shapes and files: each is one failure with its code, and the session goes on. */
#include "models.h"
#include "support.h"

static OrtSession* session;
static float data[8];
static const char* const in[] = {"x", "y"};
static const char* const out[] = {"z"};

static OrtErrorCode run_code(const char* const* inputs, const OrtValue* const* values, size_t n_inputs, const char* const* outputs,
                             size_t n_outputs) {
  OrtValue* results[2] = {NULL, NULL};
  OrtStatus* status = ort->Run(session, NULL, inputs, values, n_inputs, outputs, n_outputs, results);
  const OrtErrorCode code = status ? ort->GetErrorCode(status) : ORT_OK;
  if (status) CHECK(results[0] == NULL);
  if (status && ort->GetErrorMessage(status)[0] == 0) ++failures;
  if (status) ort->ReleaseStatus(status);
  ort->ReleaseValue(results[0]);
  ort->ReleaseValue(results[1]);
  return code;
}
static OrtValue* good(void) {
  static const int64_t dims[] = {2, 2};
  return floats(dims, 2, data);
}
/* Runs x = good, y = value. */
static OrtErrorCode code_with(const OrtValue* value) {
  OrtValue* x = good();
  const OrtValue* values[] = {x, value};
  const OrtErrorCode code = run_code(in, values, 2, out, 1);
  ort->ReleaseValue(x);
  return code;
}

static void wrong_names(void) {
  OrtValue* x = good();
  const OrtValue* values[] = {x, x};
  const char* const no_input[] = {"x", "q"};
  const char* const no_output[] = {"q"};
  const char* const empty[] = {"", "y"};
  CHECK(run_code(no_input, values, 2, out, 1) == ORT_INVALID_ARGUMENT);
  CHECK(run_code(in, values, 2, no_output, 1) == ORT_INVALID_ARGUMENT);
  CHECK(run_code(empty, values, 2, out, 1) == ORT_INVALID_ARGUMENT);
  CHECK(run_code(in, values, 1, out, 1) != ORT_OK); /* ONNX Runtime leaves it to the kernel that misses its input */
  CHECK(run_code(in, values, 2, out, 0) == ORT_INVALID_ARGUMENT);
  CHECK(run_code(in, values, 2, out, 1) == ORT_OK);
  ort->ReleaseValue(x);
}

static void wrong_types_and_shapes(void) {
  const int64_t one[] = {4}, wide[] = {2, 3}, three[] = {3, 2}, square[] = {2, 2};
  int64_t numbers[4] = {0};
  OrtValue* values[] = {floats(one, 1, data), floats(wide, 2, data),
                        tensor_over(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, square, 2, numbers, sizeof numbers)};
  for (size_t i = 0; i < COUNT(values); ++i) {
    CHECK(code_with(values[i]) == ORT_INVALID_ARGUMENT);
    ort->ReleaseValue(values[i]);
  }
  OrtValue* clash = floats(three, 2, data);
  CHECK(code_with(clash) != ORT_OK); /* the kernel's failure */
  ort->ReleaseValue(clash);
  OrtValue* x = good();
  CHECK(code_with(x) == ORT_OK);
  ort->ReleaseValue(x);
}

static void wrong_files(void) {
  OrtSession* none = NULL;
  Bytes model = add_model();
  Bytes bad = {0, {0}};
  CODE(ort->CreateSession(env, "/nowhere/model.onnx", NULL, &none), ORT_NO_SUCHFILE);
  CODE(ort->CreateSession(env, "/tmp", NULL, &none), ORT_INVALID_ARGUMENT);
  CODE(ort->CreateSessionFromArray(env, "\xff\xff\xff\xff", 4, NULL, &none), ORT_INVALID_PROTOBUF);
  CODE(ort->CreateSessionFromArray(env, "hello world this is no model", 28, NULL, &none), ORT_INVALID_PROTOBUF);
  CODE(ort->CreateSessionFromArray(env, "", 0, NULL, &none), ORT_INVALID_ARGUMENT);
  CODE(ort->CreateSessionFromArray(env, model.data, model.size - 10, NULL, &none), ORT_INVALID_PROTOBUF);
  put_number(&bad, 1, 8);
  CODE(ort->CreateSessionFromArray(env, bad.data, bad.size, NULL, &none), ORT_INVALID_ARGUMENT);
  CHECK(none == NULL);
}

/* Every prefix of a model fails, and so does a model with any byte changed, or it runs; nothing worse. */
static void damaged_files(void) {
  const Bytes whole = add_model();
  for (size_t i = 0; i < whole.size; i += 3) {
    OrtSession* none = NULL;
    ort->ReleaseStatus(ort->CreateSessionFromArray(env, whole.data, i, NULL, &none));
    ort->ReleaseSession(none);
    Bytes changed = whole;
    changed.data[i] ^= 0x81;
    none = NULL;
    ort->ReleaseStatus(ort->CreateSessionFromArray(env, changed.data, changed.size, NULL, &none));
    ort->ReleaseSession(none);
  }
  OrtValue* x = good();
  CHECK(code_with(x) == ORT_OK);
  ort->ReleaseValue(x);
}

static void unknown_ops(void) {
  const Bytes model = unary_model("NoSuchOp", 1, 1, "n", NULL, 0);
  OrtSession* none = NULL;
  OrtStatus* status = ort->CreateSessionFromArray(env, model.data, model.size, NULL, &none);
  CHECK(status && none == NULL && strstr(ort->GetErrorMessage(status), "NoSuchOp"));
  ort->ReleaseStatus(status);
}

static void wrong_bindings(void) {
  OrtIoBinding* binding = NULL;
  OrtValue* x = good();
  OK(ort->CreateIoBinding(session, &binding));
  OK(ort->BindInput(binding, "x", x));
  OrtStatus* status = ort->RunWithBinding(session, NULL, binding);
  CHECK(status != NULL);
  ort->ReleaseStatus(status);
  status = ort->BindInput(binding, "q", x);
  CHECK(status != NULL);
  ort->ReleaseStatus(status);
  ort->ReleaseIoBinding(binding);
  OK(ort->CreateIoBinding(session, &binding));
  OK(ort->BindInput(binding, "x", x));
  OK(ort->BindInput(binding, "y", x));
  OK(ort->BindOutputToDevice(binding, "q", memory)); /* the run looks for it */
  CODE(ort->RunWithBinding(session, NULL, binding), ORT_INVALID_ARGUMENT);
  ort->ReleaseIoBinding(binding);
  ort->ReleaseValue(x);
}

/* A session may end before its options, values before the session, and a binding before its values. */
static void any_order(void) {
  const Bytes model = unary_model("Neg", 1, 1, "n", NULL, 0);
  const int64_t dims[] = {2};
  OrtSessionOptions* options = NULL;
  OrtSession* short_lived = NULL;
  OrtTypeInfo* type = NULL;
  OrtModelMetadata* about = NULL;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  int64_t version = 0;
  OK(ort->CreateSessionOptions(&options));
  OK(ort->CreateSessionFromArray(env, model.data, model.size, options, &short_lived));
  ort->ReleaseSessionOptions(options);
  OK(ort->SessionGetInputTypeInfo(short_lived, 0, &type));
  OK(ort->SessionGetModelMetadata(short_lived, &about));
  OrtValue *x = floats(dims, 1, data), *y = NULL;
  OK(ort->Run(short_lived, NULL, in, (const OrtValue* const*)&x, 1, (const char* const[]){"y"}, 1, &y));
  ort->ReleaseValue(x);
  ort->ReleaseSession(short_lived);
  OK(ort->GetOnnxTypeFromTypeInfo(type, &kind));
  OK(ort->ModelMetadataGetVersion(about, &version));
  CHECK(kind == ONNX_TYPE_TENSOR && version == 42 && y && dim_of(y, 0) == 2);
  ort->ReleaseTypeInfo(type);
  ort->ReleaseModelMetadata(about);
  ort->ReleaseValue(y);
}

static void environments_are_one(void) {
  OrtEnv* other = NULL;
  OK(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "other", &other));
  ort->ReleaseEnv(other);
  OrtValue* x = good();
  CHECK(code_with(x) == ORT_OK);
  ort->ReleaseValue(x);
}

static void opens(void) {
  const Bytes model = add_model();
  OK(ort->CreateSessionFromArray(env, model.data, model.size, NULL, &session));
}
static void closes(void) { ort->ReleaseSession(session); }

int main(void) {
  const Case cases[] = {{"Opens", opens},
                        {"WrongNames", wrong_names},
                        {"WrongTypesAndShapes", wrong_types_and_shapes},
                        {"WrongFiles", wrong_files},
                        {"DamagedFiles", damaged_files},
                        {"UnknownOps", unknown_ops},
                        {"WrongBindings", wrong_bindings},
                        {"AnyOrderOfRelease", any_order},
                        {"EnvironmentsAreOne", environments_are_one},
                        {"Closes", closes}};
  return run_cases(cases, COUNT(cases));
}
