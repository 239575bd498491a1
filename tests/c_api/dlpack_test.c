/* DLPack: export and import of structures that follow the specification. */
#include "check.h"
#include "dlpack_structs.h"

static void AnExportSharesTheMemory(void) {
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  tw_tensor* t = floats(dims, 2, values);
  void* out = NULL;
  OK(tw_tensor_to_dlpack(t, &out));
  DLManagedTensor* m = out;
  CHECK(m->tensor.data == tw_tensor_data(t) && m->tensor.device_type == 1 && m->tensor.ndim == 2 && m->tensor.byte_offset == 0);
  CHECK(m->tensor.code == 2 && m->tensor.bits == 32 && m->tensor.lanes == 1);
  CHECK(m->tensor.shape[0] == 2 && m->tensor.shape[1] == 3 && m->tensor.strides[0] == 3 && m->tensor.strides[1] == 1);
  CHECK(tw_tensor_mutable_data(t) == NULL); /* the export shares it */
  tw_tensor_release(t);                     /* the structure holds a reference */
  CHECK(((const float*)m->tensor.data)[5] == 6);
  m->deleter(m);

  t = floats(dims, 2, values);
  OK(tw_tensor_to_dlpack_versioned(t, &out));
  DLManagedTensorVersioned* v = out;
  CHECK(v->major == 1 && v->flags == 1 && v->tensor.data == tw_tensor_data(t));
  v->deleter(v);
  CHECK(tw_tensor_mutable_data(t) != NULL);
  tw_tensor_release(t);
}

static void OnlyPlainTypesGoOut(void) {
  void* out = NULL;
  tw_tensor* t = NULL;
  OK(tw_tensor_create_string("a", 1, &t));
  FAILS(tw_tensor_to_dlpack(t, &out), TW_INVALID_ARGUMENT, "DLPack has no element type for string");
  tw_tensor_release(t);
  OK(tw_tensor_create(TW_QINT8, NULL, 0, &t));
  FAILS(tw_tensor_to_dlpack_versioned(t, &out), TW_INVALID_ARGUMENT, "qint8");
  CHECK(out == NULL);
  tw_tensor_release(t);
}

static void DenseMemoryIsSharedAndNeverWritten(void) {
  float values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[] = {2, 3}, strides[] = {3, 1};
  DLManagedTensor m = {{values, 1, 0, 2, 2, 32, 1, shape, strides, 2 * sizeof(float)}, NULL, count_deleted};
  tw_tensor* t = NULL;
  deleted = 0;
  OK(tw_tensor_from_dlpack(&m, &t));
  CHECK(tw_tensor_data(t) == &values[2] && tw_tensor_dtype(t) == TW_FLOAT && tw_tensor_count(t) == 6 && deleted == 0);
  CHECK(tw_tensor_mutable_data(t) == NULL);

  /* A variable that shares the tensor's memory and is then updated does not change the
   * producer's memory. */
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "dlpack");
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, shape, 2);
  const tw_output w = tw_variable_create(s, "w", x);
  tw_op* add = tw_scope_begin(s, "AssignAddVariableOp", "add");
  tw_op_add_input(add, w);
  tw_op_add_input(add, x);
  const tw_operation *grow = tw_scope_end_operation(s, add), *init = tw_variable_initializer(s, "init");
  const tw_output read = tw_variable_read(s, w);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  const tw_signature set = {.size = sizeof set, .feeds = &x, .n_feeds = 1, .targets = &init, .n_targets = 1};
  const tw_signature update = {.size = sizeof update, .feeds = &x, .n_feeds = 1, .targets = &grow, .n_targets = 1};
  OK(tw_session_run(session, &set, &t, NULL, NULL));
  OK(tw_session_run(session, &update, &t, NULL, NULL));
  tw_tensor* now = fetch(session, 0, NULL, read);
  CHECK(now && ((const float*)tw_tensor_data(now))[5] == 14 && values[7] == 7);
  tw_tensor_release(now);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_tensor_release(t);
  /* The variable may still hold the first value's memory; the test cannot wait for the end of
   * the runtime. */
  CHECK(deleted == 1 && values[2] == 2);
}

static void OtherLayoutsAreCopied(void) {
  int16_t values[] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, backwards[] = {-1}, six[] = {6};
  DLManagedTensor m = {{values, 1, 0, 2, 0, 16, 1, shape, transposed, 0}, NULL, count_deleted};
  tw_tensor* t = NULL;
  deleted = 0;
  OK(tw_tensor_from_dlpack(&m, &t));
  const int16_t want[] = {0, 3, 1, 4, 2, 5};
  CHECK(deleted == 1 && tw_tensor_dtype(t) == TW_INT16 && memcmp(tw_tensor_data(t), want, sizeof want) == 0);
  tw_tensor_release(t);
  m.tensor.ndim = 1;
  m.tensor.shape = six;
  m.tensor.strides = backwards;
  m.tensor.data = &values[5];
  OK(tw_tensor_from_dlpack(&m, &t));
  CHECK(((const int16_t*)tw_tensor_data(t))[0] == 5 && ((const int16_t*)tw_tensor_data(t))[5] == 0);
  tw_tensor_release(t);
}

static void VersionedStructuresComeInToo(void) {
  int64_t value = 7;
  DLManagedTensorVersioned v = {1, 1, NULL, count_deleted_versioned, 1, {&value, 1, 0, 0, 0, 64, 1, NULL, NULL, 0}};
  tw_tensor* t = NULL;
  deleted = 0;
  OK(tw_tensor_from_dlpack_versioned(&v, &t));
  CHECK(tw_tensor_rank(t) == 0 && tw_tensor_data(t) == &value && deleted == 0);
  tw_tensor_release(t);
  CHECK(deleted == 1);
  v.major = 2;
  FAILS(tw_tensor_from_dlpack_versioned(&v, &t), TW_INVALID_ARGUMENT, "version 2.1; this runtime reads 1.x");
  CHECK(deleted == 2);
}

static void WhatTensorsCannotBeIsRefusedAndGivenBack(void) {
  float values[] = {1};
  int64_t shape[] = {1}, negative[] = {-1}, huge[] = {INT64_MAX};
  const DLManagedTensor good = {{values, 1, 0, 1, 2, 32, 1, shape, NULL, 0}, NULL, count_deleted};
  tw_tensor* t = NULL;
  deleted = 0;
  DLManagedTensor m = good;
  m.tensor.device_type = 2;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "device of DLPack type 2");
  m = good;
  m.tensor.lanes = 4;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "4 lanes");
  m = good;
  m.tensor.shape = negative;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "-1");
  m = good;
  m.tensor.shape = huge;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "");
  m = good;
  m.tensor.data = NULL;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "no data");
  m = good;
  FAILS(tw_tensor_from_dlpack(&m, NULL), TW_INVALID_ARGUMENT, "out_tensor is NULL");
  CHECK(deleted == 6 && t == NULL);
  FAILS(tw_tensor_from_dlpack(NULL, &t), TW_INVALID_ARGUMENT, "managed is NULL");
}

MAIN(TEST(AnExportSharesTheMemory), TEST(OnlyPlainTypesGoOut), TEST(DenseMemoryIsSharedAndNeverWritten), TEST(OtherLayoutsAreCopied),
     TEST(VersionedStructuresComeInToo), TEST(WhatTensorsCannotBeIsRefusedAndGivenBack))
