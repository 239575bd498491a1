/* Statuses, buffers, tensors, strings, options. */
#include "support.h"

static void version(TF_Status* s) {
  (void)s;
  CHECK(TF_Version()[0] == '2');
}

static void status(TF_Status* s) {
  CODE(s, TF_OK);
  SAME(TF_Message(s), "");
  TF_SetStatus(s, TF_CANCELLED, "cancel");
  CODE(s, TF_CANCELLED);
  SAME(TF_Message(s), "cancel");
  TF_SetStatus(s, TF_OK, "");
  SAME(TF_Message(s), "");
  TF_SetStatusFromIOError(s, 2 /* ENOENT */, "file");
  CODE(s, TF_NOT_FOUND);
  HAS(TF_Message(s), "file");
}

static int visited;
static void visit(const char* key, const char* value, void* capture) {
  visited += strcmp(key, "key") == 0 && strcmp(value, "value") == 0 && capture == &visited;
}
static void payloads(TF_Status* s) {
  TF_SetStatus(s, TF_UNKNOWN, "x");
  TF_SetPayload(s, "key", "value");
  visited = 0;
  TF_ForEachPayload(s, visit, &visited);
  CHECK(visited == 1);
}

static void buffers(TF_Status* s) {
  (void)s;
  TF_Buffer* b = TF_NewBufferFromString("abc\0d", 5);
  CHECK(b->length == 5 && memcmp(b->data, "abc\0d", 5) == 0);
  CHECK(TF_GetBuffer(b).data == b->data);
  TF_DeleteBuffer(b);
  b = TF_NewBuffer();
  CHECK(b->data == NULL && b->length == 0);
  TF_DeleteBuffer(b);
}

static void end(void* data, size_t bytes, void* arg) {
  free(data);
  *(size_t*)arg = bytes;
}
static void tensor(TF_Status* s) {
  (void)s;
  const int64_t dims[] = {2, 3};
  size_t ended = 0;
  float* values = aligned_alloc(64, 64);
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, values, 24, end, &ended);
  CHECK(ended == 0);
  CHECK(TF_TensorType(t) == TF_FLOAT && TF_NumDims(t) == 2 && TF_Dim(t, 0) == 2 && TF_Dim(t, 1) == 3);
  CHECK(TF_TensorByteSize(t) == 24 && TF_TensorData(t) == values && TF_TensorElementCount(t) == 6);
  CHECK(TF_TensorIsAligned(t));
  TF_DeleteTensor(t);
  CHECK(ended == 24);
}
static void nothing(void* data, size_t bytes, void* arg) { (void)data, (void)bytes, (void)arg; }
static void nothing_but_count(void* data, size_t bytes, void* arg) {
  (void)data;
  *(size_t*)arg += bytes;
}
static void malformed_tensor(TF_Status* s) {
  (void)s;
  CHECK(TF_NewTensor(TF_FLOAT, NULL, 0, NULL, 0, nothing, NULL) == NULL);
}
static void allocate_tensor(TF_Status* s) {
  (void)s;
  const int64_t dims[] = {2, 3};
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, dims, 2, 24);
  CHECK(TF_TensorType(t) == TF_FLOAT && TF_NumDims(t) == 2 && TF_Dim(t, 1) == 3 && TF_TensorByteSize(t) == 24);
  TF_DeleteTensor(t);
}
static void maybe_move(TF_Status* s) {
  (void)s;
  const int64_t dims[] = {2, 3};
  size_t ended = 0;
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, aligned_alloc(64, 64), 24, end, &ended);
  CHECK(TF_TensorMaybeMove(t) == NULL);
  TF_DeleteTensor(t);
  CHECK(ended == 24);
}
/* Memory that is not aligned is copied, and the client's ends at once. */
static void unaligned_tensor(TF_Status* s) {
  (void)s;
  const int64_t dims[] = {3};
  const float values[] = {1, 2, 3};
  size_t ended = 0;
  char* memory = aligned_alloc(64, 128);
  memcpy(memory + 8, values, sizeof values);
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, memory + 8, sizeof values, nothing_but_count, &ended);
  CHECK(ended == sizeof values);
  free(memory);
  CHECK(t && TF_TensorIsAligned(t) && memcmp(TF_TensorData(t), values, sizeof values) == 0);
  TF_DeleteTensor(t);
  CHECK(ended == sizeof values);
}
static void bitcast(TF_Status* s) {
  const int64_t six[] = {6}, two_by_three[] = {2, 3}, four[] = {4};
  const float values[] = {0, 1, 2, 3, 4, 5};
  TF_Tensor* from = tensor_of(TF_FLOAT, six, 1, values, sizeof values);
  TF_Tensor* to = TF_AllocateTensor(TF_INT32, NULL, 0, 4);
  TF_TensorBitcastFrom(from, TF_INT32, to, two_by_three, 2, s);
  OK(s);
  CHECK(TF_TensorType(to) == TF_INT32 && TF_NumDims(to) == 2 && TF_TensorByteSize(to) == 24);
  CHECK(memcmp(TF_TensorData(to), values, sizeof values) == 0);
  TF_TensorBitcastFrom(from, TF_INT32, to, four, 1, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
}

static void strings(TF_Status* s) {
  (void)s;
  TF_TString t;
  char big[1000];
  memset(big, 'a', sizeof big);
  CHECK(sizeof t == 24);
  TF_StringInit(&t);
  CHECK(TF_StringGetSize(&t) == 0 && TF_StringGetType(&t) == TF_TSTR_SMALL);
  TF_StringCopy(&t, "hello", 5);
  CHECK(TF_StringGetSize(&t) == 5 && memcmp(TF_StringGetDataPointer(&t), "hello", 6) == 0 && TF_StringGetType(&t) == TF_TSTR_SMALL);
  CHECK(((const unsigned char*)&t)[0] == 5 << 2 && memcmp((const char*)&t + 1, "hello", 5) == 0);
  TF_StringCopy(&t, big, sizeof big);
  CHECK(TF_StringGetSize(&t) == sizeof big && memcmp(TF_StringGetDataPointer(&t), big, sizeof big) == 0);
  CHECK(TF_StringGetType(&t) == TF_TSTR_LARGE && TF_StringGetCapacity(&t) >= sizeof big);
  TF_StringAssignView(&t, big, 30);
  CHECK(TF_StringGetType(&t) == TF_TSTR_VIEW && TF_StringGetSize(&t) == 30 && TF_StringGetDataPointer(&t) == big);
  CHECK(TF_TString_GetSize(&t) == 30 && TF_TString_GetDataPointer(&t) == big && TF_TString_GetType(&t) == TF_TSTR_VIEW);
  TF_StringDealloc(&t);
  TF_TString_Init(&t); /* under the other names */
  TF_TString_Copy(&t, big, 100);
  CHECK(TF_StringGetSize(&t) == 100 && TF_TString_GetCapacity(&t) >= 100);
  TF_TString_Dealloc(&t);
}

/* Strings go through a step and come back. */
static void string_tensor(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_STRING, "x", s);
  TF_Operation* same = op1(g, "Identity", "y", out(feed, 0), s);
  OK(s);
  char big[1000];
  memset(big, 'b', sizeof big);
  const int64_t dims[] = {3};
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, 3 * sizeof(TF_TString));
  TF_TString* data = TF_TensorData(t);
  for (int i = 0; i < 3; ++i) TF_StringInit(&data[i]);
  TF_StringCopy(&data[0], "small", 5);
  TF_StringCopy(&data[1], big, sizeof big);
  TF_StringAssignView(&data[2], "view", 4);
  TF_Session* session = session_of(g, s);
  OK(s);
  TF_Tensor* result = run1(session, feed, t, out(same, 0), s);
  OK(s);
  CHECK(TF_TensorType(result) == TF_STRING && TF_Dim(result, 0) == 3);
  const TF_TString* r = TF_TensorData(result);
  CHECK(TF_StringGetSize(&r[0]) == 5 && memcmp(TF_StringGetDataPointer(&r[0]), "small", 5) == 0);
  CHECK(TF_StringGetSize(&r[1]) == sizeof big && memcmp(TF_StringGetDataPointer(&r[1]), big, sizeof big) == 0);
  CHECK(TF_StringGetSize(&r[2]) == 4 && memcmp(TF_StringGetDataPointer(&r[2]), "view", 4) == 0);
  TF_DeleteTensor(result);
  end_session(session, s);
  TF_DeleteGraph(g);
}

static void tensor_from_proto(TF_Status* s) {
  /* dtype float, shape [2], float_val 1.5 for both */
  const unsigned char bytes[] = {0x08, 1, 0x12, 4, 0x12, 2, 0x08, 2, 0x2a, 4, 0, 0, 0xc0, 0x3f};
  TF_Buffer* b = TF_NewBufferFromString(bytes, sizeof bytes);
  TF_Tensor* t = TF_AllocateTensor(TF_INT32, NULL, 0, 4);
  TF_TensorFromProto(b, t, s);
  OK(s);
  CHECK(TF_TensorType(t) == TF_FLOAT && TF_NumDims(t) == 1 && TF_Dim(t, 0) == 2);
  CHECK(((const float*)TF_TensorData(t))[0] == 1.5f && ((const float*)TF_TensorData(t))[1] == 1.5f);
  TF_DeleteTensor(t);
  TF_DeleteBuffer(b);
}

static void data_types(TF_Status* s) {
  (void)s;
  CHECK(TF_DataTypeSize(TF_DOUBLE) == 8 && TF_DataTypeSize(TF_STRING) == 0 && TF_DataTypeSize((TF_DataType)0) == 0);
  CHECK(TF_DataTypeSize(TF_COMPLEX128) == 16 && TF_DataTypeSize(TF_HALF) == 2 && TF_DataTypeSize(TF_BOOL) == 1);
}

/* The numbers are those of the messages of TensorFlow, so they never change. */
static void numbers(TF_Status* s) {
  (void)s;
  const TF_DataType types[] = {TF_FLOAT,  TF_DOUBLE,     TF_INT32, TF_UINT8,    TF_INT16,   TF_INT8,     TF_STRING, TF_COMPLEX64,
                               TF_INT64,  TF_BOOL,       TF_QINT8, TF_QUINT8,   TF_QINT32,  TF_BFLOAT16, TF_QINT16, TF_QUINT16,
                               TF_UINT16, TF_COMPLEX128, TF_HALF,  TF_RESOURCE, TF_VARIANT, TF_UINT32,   TF_UINT64};
  for (size_t i = 0; i < COUNT(types); ++i) CHECK((size_t)types[i] == i + 1);
  CHECK((int)TF_COMPLEX == (int)TF_COMPLEX64);
  const TF_Code codes[] = {TF_OK,        TF_CANCELLED,      TF_UNKNOWN,           TF_INVALID_ARGUMENT,   TF_DEADLINE_EXCEEDED,
                           TF_NOT_FOUND, TF_ALREADY_EXISTS, TF_PERMISSION_DENIED, TF_RESOURCE_EXHAUSTED, TF_FAILED_PRECONDITION,
                           TF_ABORTED,   TF_OUT_OF_RANGE,   TF_UNIMPLEMENTED,     TF_INTERNAL,           TF_UNAVAILABLE,
                           TF_DATA_LOSS, TF_UNAUTHENTICATED};
  for (size_t i = 0; i < COUNT(codes); ++i) CHECK((size_t)codes[i] == i);
  const TF_AttrType attrs[] = {TF_ATTR_STRING, TF_ATTR_INT,    TF_ATTR_FLOAT,       TF_ATTR_BOOL, TF_ATTR_TYPE,
                               TF_ATTR_SHAPE,  TF_ATTR_TENSOR, TF_ATTR_PLACEHOLDER, TF_ATTR_FUNC};
  for (size_t i = 0; i < COUNT(attrs); ++i) CHECK((size_t)attrs[i] == i);
}

static void session_options(TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  const unsigned char soft[] = {0x38, 1}; /* allow_soft_placement */
  TF_SetConfig(options, soft, sizeof soft, s);
  OK(s);
  TF_SetConfig(options, "\xff\xff", 2, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteSessionOptions(options);
}

static void null_deletes(TF_Status* s) {
  TF_DeleteStatus(NULL);
  TF_DeleteBuffer(NULL);
  TF_DeleteTensor(NULL);
  TF_DeleteSessionOptions(NULL);
  TF_DeleteGraph(NULL);
  TF_DeleteImportGraphDefOptions(NULL);
  TF_DeleteImportGraphDefResults(NULL);
  TF_DeleteFunction(NULL);
  TF_DeleteSession(NULL, s);
  OK(s);
  TF_DeletePRunHandle(NULL);
  TF_DeleteDeprecatedSession(NULL, s);
  OK(s);
  TF_DeleteDeviceList(NULL);
  TF_DeleteLibraryHandle(NULL);
  TF_DeleteApiDefMap(NULL);
}

static void load_library(TF_Status* s) {
  TF_Library* library = TF_LoadLibrary("/nowhere/ops.so", s);
  CODE(s, TF_NOT_FOUND);
  CHECK(library == NULL);
}

static void op_list(TF_Status* s) {
  (void)s;
  TF_Buffer* b = TF_GetAllOpList();
  CHECK(b && b->length > 10000 && ((const char*)b->data)[0] == 0x0a);
  TF_DeleteBuffer(b);
}

static void kernels(TF_Status* s) {
  TF_Buffer* b = TF_GetRegisteredKernelsForOp("MatMul", s);
  OK(s);
  CHECK(b && b->length > 10);
  TF_DeleteBuffer(b);
  b = TF_GetRegisteredKernelsForOp("Unknown", s);
  OK(s);
  CHECK(b && b->length == 0);
  TF_DeleteBuffer(b);
  b = TF_GetAllRegisteredKernels(s);
  OK(s);
  CHECK(b && b->length > 1000);
  TF_DeleteBuffer(b);
}

int main(void) {
  const Case cases[] = {{"Version", version},
                        {"Status", status},
                        {"Payloads", payloads},
                        {"Buffers", buffers},
                        {"Tensor", tensor},
                        {"MalformedTensor", malformed_tensor},
                        {"AllocateTensor", allocate_tensor},
                        {"MaybeMove", maybe_move},
                        {"UnalignedTensor", unaligned_tensor},
                        {"Bitcast", bitcast},
                        {"Strings", strings},
                        {"TensorEncodeDecodeStrings", string_tensor},
                        {"TensorFromProto", tensor_from_proto},
                        {"DataTypeEnum", data_types},
                        {"StatusEnum", numbers},
                        {"SessionOptions", session_options},
                        {"DeletingNullPointerIsSafe", null_deletes},
                        {"LibraryLoadFunctions", load_library},
                        {"GetAllOpList", op_list},
                        {"Kernels", kernels}};
  return run_cases(cases, COUNT(cases));
}
