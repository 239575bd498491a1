/* Prints what a session tells of several models, and what runs return: names, types, shapes, metadata, values, codes of failures.
 * peer_test.py compares the text with ONNX Runtime's library and with ours. */
#include "models.h"
#include "support.h"

static void print_type(const OrtTypeInfo* type) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OK(ort->GetOnnxTypeFromTypeInfo(type, &kind));
  if (kind == ONNX_TYPE_SEQUENCE) {
    const OrtSequenceTypeInfo* sequence = NULL;
    OrtTypeInfo* element = NULL;
    OK(ort->CastTypeInfoToSequenceTypeInfo(type, &sequence));
    OK(ort->GetSequenceElementType(sequence, &element));
    printf("sequence of ");
    print_type(element);
    ort->ReleaseTypeInfo(element);
    return;
  }
  const OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0, count = 0;
  int64_t dims[8];
  const char* symbols[8];
  OK(ort->CastTypeInfoToTensorInfo(type, &info));
  OK(ort->GetTensorElementType(info, &element));
  OK(ort->GetDimensionsCount(info, &rank));
  OK(ort->GetDimensions(info, dims, rank));
  OK(ort->GetSymbolicDimensions(info, symbols, rank));
  OrtStatus* status = ort->GetTensorShapeElementCount(info, &count); /* fails with an unknown size */
  printf("code %d, kind %d, element %d, [", status ? (int)ort->GetErrorCode(status) : 0, (int)kind, (int)element);
  ort->ReleaseStatus(status);
  for (size_t i = 0; i < rank; ++i) printf(" %lld'%s'", (long long)dims[i], symbols[i]);
  printf(" ], %lld elements\n", (long long)count);
}

static void print_value(OrtValue* value) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OK(ort->GetValueType(value, &kind));
  OrtTypeInfo* type = NULL;
  OK(ort->GetTypeInfo(value, &type));
  print_type(type);
  ort->ReleaseTypeInfo(type);
  if (kind == ONNX_TYPE_SEQUENCE) {
    size_t count = 0;
    OK(ort->GetValueCount(value, &count));
    for (size_t i = 0; i < count; ++i) {
      OrtValue* part = NULL;
      OK(ort->GetValue(value, (int)i, allocator, &part));
      print_value(part);
      ort->ReleaseValue(part);
    }
    return;
  }
  OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t count = 0;
  OK(ort->GetTensorTypeAndShape(value, &info));
  OK(ort->GetTensorElementType(info, &element));
  OK(ort->GetTensorShapeElementCount(info, &count));
  ort->ReleaseTensorTypeAndShapeInfo(info);
  const void* data = data_of(value);
  printf("   ");
  for (size_t i = 0; i < count; ++i) {
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) printf(" %.4g", (double)((const float*)data)[i]);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE) printf(" %.4g", ((const double*)data)[i]);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) printf(" %lld", (long long)((const int64_t*)data)[i]);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL) printf(" %d", ((const unsigned char*)data)[i]);
  }
  printf("\n");
}

static void print_text(const char* what, OrtStatus* status, char** text) {
  OK(status);
  printf("  %s '%s'\n", what, *text ? *text : "(none)");
  OK(ort->AllocatorFree(allocator, *text));
}

/* Describes the model and runs it with x = [[1, -2, 3], [0, 0.5, -0.25]]. */
static void report(const char* title, Bytes model) {
  OrtSession* session = NULL;
  size_t inputs = 0, outputs = 0;
  printf("%s\n", title);
  if (!OK(ort->CreateSessionFromArray(env, model.data, model.size, NULL, &session))) return;
  OK(ort->SessionGetInputCount(session, &inputs));
  OK(ort->SessionGetOutputCount(session, &outputs));
  for (size_t i = 0; i < inputs + outputs; ++i) {
    OrtTypeInfo* type = NULL;
    char* name = NULL;
    if (i < inputs) {
      print_text("input", ort->SessionGetInputName(session, i, allocator, &name), &name);
      OK(ort->SessionGetInputTypeInfo(session, i, &type));
    } else {
      print_text("output", ort->SessionGetOutputName(session, i - inputs, allocator, &name), &name);
      OK(ort->SessionGetOutputTypeInfo(session, i - inputs, &type));
    }
    printf("    ");
    print_type(type);
    ort->ReleaseTypeInfo(type);
  }
  OrtModelMetadata* about = NULL;
  char* text = NULL;
  OK(ort->SessionGetModelMetadata(session, &about));
  print_text("producer", ort->ModelMetadataGetProducerName(about, allocator, &text), &text);
  print_text("graph", ort->ModelMetadataGetGraphName(about, allocator, &text), &text);
  print_text("custom", ort->ModelMetadataLookupCustomMetadataMap(about, allocator, "colour", &text), &text);
  ort->ReleaseModelMetadata(about);

  const int64_t dims[] = {2, 3};
  float data[] = {1, -2, 3, 0, 0.5f, -0.25f};
  OrtValue *x = floats(dims, 2, data), *results[4] = {NULL, NULL, NULL, NULL};
  const char* const in[] = {"x"};
  const char* out[4];
  char* names[4];
  for (size_t i = 0; i < outputs; ++i) {
    OK(ort->SessionGetOutputName(session, i, allocator, &names[i]));
    out[i] = names[i];
  }
  if (OK(ort->Run(session, NULL, in, (const OrtValue* const*)&x, 1, out, outputs, results))) {
    for (size_t i = 0; i < outputs; ++i) {
      printf("  %s = ", out[i]);
      print_value(results[i]);
    }
  }
  for (size_t i = 0; i < outputs; ++i) {
    ort->ReleaseValue(results[i]);
    OK(ort->AllocatorFree(allocator, names[i]));
  }
  ort->ReleaseValue(x);
  ort->ReleaseSession(session);
}

/* y = op(x) of floats, whose result has the given type and declared shape. */
static Bytes graph_of(const char* op, int to, const char* shape, const char* attribute, int64_t number) {
  Bytes graph = {0, {0}};
  put_node(&graph, op, "x", NULL, "y", attribute, number);
  put_value(&graph, 11, "x", 1, "batch 3");
  put_value(&graph, 12, "y", to, shape);
  return model_of(&graph);
}

static void reports(void) {
  const float weight[] = {1, 2, 3};
  report("Relu", graph_of("Relu", 1, "batch 3", NULL, 0));
  report("Exp", graph_of("Exp", 1, "batch 3", NULL, 0));
  report("Softmax", graph_of("Softmax", 1, "batch 3", "axis", 1));
  report("Shape", graph_of("Shape", 7, "2", NULL, 0));
  report("NonZero", graph_of("NonZero", 7, "2 found", NULL, 0));
  report("IsNaN", graph_of("IsNaN", 9, "batch 3", NULL, 0));
  report("Cast to double", graph_of("Cast", 11, "batch 3", "to", 11));
  report("ArgMax", graph_of("ArgMax", 7, "batch 1", "axis", 1));
  Bytes weights = {0, {0}};
  put_node(&weights, "Mul", "x", "w", "m", NULL, 0);
  put_node(&weights, "Identity", "w", NULL, "c", NULL, 0);
  put_value(&weights, 11, "x", 1, "batch 3");
  put_value(&weights, 11, "w", 1, "3");
  put_value(&weights, 12, "m", 1, "batch 3");
  put_value(&weights, 12, "c", 1, "3");
  put_value(&weights, 12, "x", 1, "batch 3");
  put_floats(&weights, "w", weight, 3);
  report("Weights", model_of(&weights));
  Bytes split = {0, {0}};
  put_node(&split, "SplitToSequence", "x", NULL, "y", "axis", 0);
  put_value(&split, 11, "x", 1, "batch 3");
  put_sequence(&split, 12, "y", 1);
  report("SplitToSequence", model_of(&split));
}

int main(void) {
  const Case cases[] = {{"Reports", reports}};
  return run_cases(cases, COUNT(cases));
}
