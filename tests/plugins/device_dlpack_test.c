/* Memory of a device shared with other libraries by DLPack: export, import, and synchronisation. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "dlpack_structs.h"

static tw_runtime* fake_runtime(void) {
  static const char* const options[] = {"threads=2", ("plugin_path=" FAKE), "plugin.org.thalweg.fake.delay_us=100"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 3, &runtime));
  return runtime;
}

/* y = x * x on FAKE:0, where x and y are; assign sets v to x, and another node computes v += x. */
typedef struct problem {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_output x, y, v;
  const tw_operation *assign, *add;
} problem;

static const char* const device = "FAKE:0";
static const int64_t four[] = {4};
static const float values[] = {1, 2, 3, 4};

static problem new_problem(void) {
  problem p = {.runtime = fake_runtime()};
  OK(tw_graph_create(p.runtime, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  tw_scope_set_device(s, device);
  const int64_t dims[] = {-1};
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  tw_op* op = tw_scope_begin(s, "Mul", NULL);
  tw_op_add_input(op, p.x);
  tw_op_add_input(op, p.x);
  p.y = tw_scope_end(s, op);
  const tw_output v = tw_variable_create(s, "v", p.x);
  tw_op* add = tw_scope_begin(s, "AssignAddVariableOp", NULL);
  tw_op_add_input(add, v);
  tw_op_add_input(add, p.x);
  p.add = tw_scope_end_operation(s, add);
  p.assign = tw_variable_initializer(s, "init");
  p.v = tw_variable_read(s, v);
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, NULL, 0, &p.session));
  return p;
}

static void end_problem(problem* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
  tw_runtime_release(p->runtime);
}

static tw_status* step(const problem* p, tw_tensor* x, tw_output fetch, const tw_operation* target, tw_tensor** out) {
  const char* const host = "CPU:0";
  const tw_signature what = {.size = sizeof what,
                             .feeds = &p->x,
                             .n_feeds = 1,
                             .fetches = &fetch,
                             .n_fetches = out != NULL,
                             .targets = &target,
                             .n_targets = target != NULL,
                             .feed_devices = &device,
                             .fetch_devices = out ? &host : NULL};
  return tw_session_run(p->session, &what, &x, NULL, out);
}

static tw_tensor* on_device(tw_runtime* runtime, const char* name) {
  tw_tensor *here = floats(four, 1, values), *there = NULL;
  OK(tw_tensor_to_device(here, runtime, name, &there));
  tw_tensor_release(here);
  return there;
}

/* Makes the structure that another library would return for the memory of `exported`, from the
 * second element on. */
static DLManagedTensor last_three(const DLManagedTensor* exported, int64_t* shape) {
  *shape = 3;
  DLManagedTensor m = {
      {exported->tensor.data, 12, 0, 1, 2, 32, 1, shape, NULL, exported->tensor.byte_offset + sizeof(float)}, NULL, count_deleted};
  return m;
}

static void AnExportNamesItsDevice(void) {
  tw_runtime* runtime = fake_runtime();
  tw_tensor* there = on_device(runtime, "FAKE:1");
  void* out = NULL;
  OK(tw_tensor_to_dlpack(there, &out));
  DLManagedTensor* m = out;
  CHECK(m->tensor.device_type == 12 && m->tensor.device_id == 1 && m->tensor.data && m->tensor.byte_offset == 0 && m->tensor.shape[0] == 4);
  m->deleter(m);
  OK(tw_tensor_to_dlpack_versioned(there, &out));
  DLManagedTensorVersioned* v = out;
  CHECK(v->flags == 1 && v->tensor.device_type == 12);
  tw_tensor_release(there);
  tw_tensor* same = NULL;
  OK(tw_tensor_from_dlpack_on(runtime, v, 1, NULL, &same)); /* `same` is the only reference now */
  CHECK(strstr(tw_tensor_device(same), "FAKE:1"));
  tw_tensor* back = NULL;
  OK(tw_tensor_to_host(same, &back));
  CHECK(((const float*)tw_tensor_data(back))[3] == 4);
  tw_tensor_release(back);
  tw_tensor_release(same);
  tw_runtime_release(runtime);
}

static void MemoryOfAnotherLibraryIsReadWhereItLies(void) {
  problem p = new_problem();
  tw_tensor *owner = on_device(p.runtime, device), *x = NULL, *out = NULL;
  void* exported = NULL;
  int64_t shape;
  OK(tw_tensor_to_dlpack(owner, &exported));
  DLManagedTensor m = last_three(exported, &shape);
  deleted = 0;
  tw_devices* devices = NULL;
  uint64_t before = 0, now = 0;
  OK(tw_devices_create(p.runtime, &devices));
  OK(tw_devices_memory_use(devices, 1, &before, NULL, NULL));
  OK(tw_tensor_from_dlpack_on(p.runtime, &m, 0, NULL, &x));
  CHECK(strstr(tw_tensor_device(x), "FAKE:0") && tw_tensor_count(x) == 3 && deleted == 0 && !tw_tensor_mutable_data(x));
  OK(tw_devices_memory_use(devices, 1, &now, NULL, NULL));
  CHECK(strcmp(tw_devices_kind(devices, 1), "FAKE") == 0 && now == before + 3 * sizeof(float));
  tw_devices_destroy(devices);
  for (int k = 0; k < 3; ++k) {
    OK(step(&p, x, p.y, NULL, &out));
    const float* y = tw_tensor_data(out);
    CHECK(y[0] == 4 && y[1] == 9 && y[2] == 16);
    tw_tensor_release(out);
  }
  /* A variable that was assigned the tensor and is then updated leaves the tensor unchanged. */
  OK(step(&p, x, 0, p.assign, NULL));
  OK(step(&p, x, 0, p.add, NULL));
  OK(step(&p, x, p.v, NULL, &out));
  CHECK(((const float*)tw_tensor_data(out))[2] == 8);
  tw_tensor_release(out);
  OK(tw_tensor_to_host(x, &out));
  CHECK(((const float*)tw_tensor_data(out))[2] == 4 && deleted == 0);
  tw_tensor_release(out);
  tw_tensor_release(x);
  end_problem(&p);
  CHECK(deleted == 1);
  ((DLManagedTensor*)exported)->deleter(exported);
  tw_tensor_release(owner);
}

typedef struct job {
  const problem* p;
  tw_tensor *x, *out;
  int done;
} job;

static void* run_step(void* arg) {
  job* s = arg;
  OK(step(s->p, s->x, s->p->y, NULL, &s->out));
  __atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void WorkOfAnotherLibraryIsWaitedFor(void) {
  static uint32_t work; /* the fake device's event: 0 until the work is over */
  problem p = new_problem();
  tw_tensor *owner = on_device(p.runtime, device), *back = NULL;
  void* exported = NULL;
  int64_t shape;
  OK(tw_tensor_to_dlpack(owner, &exported));
  DLManagedTensor m = last_three(exported, &shape);
  job s = {.p = &p};
  OK(tw_tensor_from_dlpack_on(p.runtime, &m, 0, &work, &s.x)); /* returns without waiting */
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_step, &s) == 0);
  const struct timespec a_while = {0, 100 * 1000 * 1000};
  nanosleep(&a_while, NULL);
  CHECK(!__atomic_load_n(&s.done, __ATOMIC_ACQUIRE));
  __atomic_store_n(&work, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  CHECK(s.done && s.out && ((const float*)tw_tensor_data(s.out))[2] == 16);
  OK(tw_tensor_to_host(s.x, &back));
  tw_tensor_release(back);
  tw_tensor_release(s.out);
  tw_tensor_release(s.x);
  end_problem(&p);
  ((DLManagedTensor*)exported)->deleter(exported);
  tw_tensor_release(owner);
}

static void WhatADeviceCannotTakeIsRefusedAndGivenBack(void) {
  tw_runtime* runtime = fake_runtime();
  tw_tensor *owner = on_device(runtime, device), *t = NULL;
  void* exported = NULL;
  int64_t shape, other_way[] = {-1}, many = 1 << 20, huge[] = {INT64_MAX};
  OK(tw_tensor_to_dlpack(owner, &exported));
  const DLManagedTensor good = last_three(exported, &shape);
  deleted = 0;
  DLManagedTensor m = good;
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "tw_tensor_from_dlpack_on");
  m.tensor.device_id = 7;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_NOT_FOUND,
        "device 7 of DLPack type 12; devices that share memory: FAKE:0 is 0 of type 12, FAKE:1 is 1");
  m = good;
  m.tensor.device_type = 99;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_NOT_FOUND, "device 0 of DLPack type 99");
  m = good;
  m.tensor.data = &shape;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "FAKE:0 cannot take the DLPack tensor:");
  m = good;
  m.tensor.device_id = 1; /* memory of the other device */
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "FAKE:1 cannot take the DLPack tensor:");
  m = good;
  m.tensor.shape = &many;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "FAKE:0 cannot take");
  m = good;
  m.tensor.shape = huge;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "");
  m = good;
  m.tensor.strides = other_way;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "not dense");
  m = good;
  m.tensor.byte_offset = 1;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "make it so first");
  m = good;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, NULL), TW_INVALID_ARGUMENT, "out_tensor is NULL");
  CHECK(deleted == 10 && t == NULL);
  shape = 0; /* no element is in memory */
  OK(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t));
  CHECK(deleted == 11 && tw_tensor_count(t) == 0 && strstr(tw_tensor_device(t), "FAKE:0"));
  tw_tensor_release(t);
  ((DLManagedTensor*)exported)->deleter(exported);
  tw_tensor_release(owner);
  tw_runtime_release(runtime);
}

static void HostMemoryComesInTheSameWay(void) {
  float here[] = {5, 6};
  int64_t shape[] = {2};
  DLManagedTensor m = {{here, 1, 0, 1, 2, 32, 1, shape, NULL, 0}, NULL, count_deleted};
  tw_tensor* t = NULL;
  deleted = 0;
  OK(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t));
  CHECK(!tw_tensor_device(t) && tw_tensor_data(t) == here);
  tw_tensor_release(t);
  CHECK(deleted == 1);
}

static void WhatOutlivesTheRuntimeIsGivenBackAllTheSame(void) {
  tw_runtime* runtime = fake_runtime();
  tw_tensor *owner = on_device(runtime, device), *x = NULL;
  void *exported = NULL, *late = NULL;
  int64_t shape;
  OK(tw_tensor_to_dlpack(owner, &exported));
  DLManagedTensor m = last_three(exported, &shape);
  deleted = 0;
  OK(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &x));
  tw_runtime_release(runtime);
  CHECK(deleted == 0);
  FAILS(tw_tensor_to_dlpack(owner, &late), TW_FAILED_PRECONDITION, "its runtime has ended");
  FAILS(tw_tensor_to_dlpack_versioned(x, &late), TW_FAILED_PRECONDITION, "its runtime has ended");
  tw_tensor_release(x);
  CHECK(deleted == 1 && late == NULL);
  tw_tensor_release(owner);
  ((DLManagedTensor*)exported)->deleter(exported);
}

static void ADeviceThatSharesNothingSaysSo(void) {
  static const char* const options[] = {"threads=2", ("plugin_path=" FAKE), "plugin.org.thalweg.fake.without=dlpack"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 3, &runtime));
  tw_tensor *there = on_device(runtime, device), *t = NULL;
  void* out = NULL;
  FAILS(tw_tensor_to_dlpack(there, &out), TW_INVALID_ARGUMENT, "FAKE:0 shares no memory by DLPack; copy the tensor with tw_tensor_to_host");
  int64_t shape[] = {1};
  DLManagedTensor m = {{shape, 12, 0, 1, 2, 32, 1, shape, NULL, 0}, NULL, count_deleted};
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_NOT_FOUND, "device 0 of DLPack type 12; devices that share memory: ");
  tw_tensor_release(there);
  tw_runtime_release(runtime);
}

MAIN(TEST(AnExportNamesItsDevice), TEST(MemoryOfAnotherLibraryIsReadWhereItLies), TEST(WorkOfAnotherLibraryIsWaitedFor),
     TEST(WhatADeviceCannotTakeIsRefusedAndGivenBack), TEST(HostMemoryComesInTheSameWay), TEST(WhatOutlivesTheRuntimeIsGivenBackAllTheSame),
     TEST(ADeviceThatSharesNothingSaysSo))
