/* Memory of a CUDA device shared by DLPack with a library of the test, which works on its own
 * stream. The stub driver detects missing order. */
#define _POSIX_C_SOURCE 200809L
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "dlpack_structs.h"

#define TEXT(name) #name
#define NAMED(name) ((__typeof__(&name))function(TEXT(name)))
#define CU(name) NAMED(name)
static void* function(const char* name) {
  static void* library;
  if (!library) library = dlopen(STUB, RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}
static void reset(const char* options) { ((void (*)(const char*))function("stub_reset"))(options); }
static const char* wrong(void) { return ((const char* (*)(void))function("stub_wrong"))(); }

static const char* const device = "CUDA:0";
static int64_t two[] = {2};

static tw_runtime* new_runtime(void) {
  static const char* const options[] = {"threads=2", "plugin.org.thalweg.cuda.library=" STUB, "plugin.org.thalweg.cuda.cublaslt=none",
                                        "plugin.org.thalweg.cuda.cudnn=none", "plugin.org.thalweg.cuda.nvrtc=none"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 5, &runtime));
  return runtime;
}

/* The other library; it owns two floats, the second and third of three, in the device's primary
 * context. */
typedef struct other {
  CUstream stream;
  CUdeviceptr memory;
  CUmemoryPool pool;
} other;

static void enter(CUdevice id) {
  CUcontext context = NULL;
  CHECK(CU(cuDevicePrimaryCtxRetain)(&context, id) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
}

static other new_other(CUdevice id) {
  other o = {0};
  enter(id);
  CHECK(CU(cuStreamCreate)(&o.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(CU(cuDeviceGetDefaultMemPool)(&o.pool, id) == CUDA_SUCCESS);
  CHECK(CU(cuMemAllocFromPoolAsync)(&o.memory, 3 * sizeof(float), o.pool, o.stream) == CUDA_SUCCESS);
  return o;
}

static void end_other(other* o) {
  CHECK(CU(cuMemFreeAsync)(o->memory, o->stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(o->stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamDestroy)(o->stream) == CUDA_SUCCESS);
}

static DLManagedTensor last_two(const other* o) {
  DLManagedTensor m = {{(void*)o->memory, 2, 0, 1, 2, 32, 1, two, NULL, sizeof(float)}, NULL, count_deleted};
  return m;
}

static void write_floats(const other* o, float first) {
  const float written[3] = {0, first, first + 1};
  CHECK(CU(cuMemcpyHtoDAsync)(o->memory, written, sizeof written, o->stream) == CUDA_SUCCESS);
}

/* y = x * x on the device. */
typedef struct job {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_output x, y;
  tw_tensor *in, *out;
  tw_status* status;
  int done;
} job;

static job new_job(void) {
  job j = {.runtime = new_runtime()};
  OK(tw_graph_create(j.runtime, &j.graph));
  tw_scope* s = tw_scope_create(j.graph, NULL);
  const int64_t dims[] = {-1};
  j.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  tw_op* op = tw_scope_begin(s, "Mul", NULL);
  tw_op_add_input(op, j.x);
  tw_op_add_input(op, j.x);
  tw_op_set_device(op, device);
  j.y = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(j.graph, NULL, 0, &j.session));
  return j;
}

static void end_job(job* j) {
  tw_session_destroy(j->session);
  tw_graph_destroy(j->graph);
  tw_runtime_release(j->runtime);
}

static void* run_job(void* arg) {
  job* j = arg;
  const tw_signature what = {.size = sizeof what, .feeds = &j->x, .n_feeds = 1, .fetches = &j->y, .n_fetches = 1, .feed_devices = &device};
  j->status = tw_session_run(j->session, &what, &j->in, NULL, &j->out);
  __atomic_store_n(&j->done, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* Runs the job on the other library's tensor. */
static void run_with(job* j, DLManagedTensor* m, CUstream stream, float first) {
  OK(tw_tensor_from_dlpack_on(j->runtime, m, 0, stream, &j->in));
  run_job(j);
  OK(j->status);
  const float* y = tw_tensor_data(j->out);
  CHECK(!stream || (y && y[0] == first * first && y[1] == (first + 1) * (first + 1)));
  tw_tensor_release(j->out);
  tw_tensor_release(j->in);
  j->in = j->out = NULL;
}

static void AnExportNamesItsDeviceAndItsAddress(void) {
  reset("devices=2");
  tw_runtime* runtime = new_runtime();
  const float values[] = {1, 2};
  tw_tensor *here = floats(two, 1, values), *there = NULL, *same = NULL, *back = NULL;
  OK(tw_tensor_to_device(here, runtime, "CUDA:1", &there));
  void* out = NULL;
  OK(tw_tensor_to_dlpack(there, &out));
  DLManagedTensor* m = out;
  CHECK(m->tensor.device_type == 2 && m->tensor.device_id == 1 && m->tensor.byte_offset == 0);
  float read[2] = {0};
  enter(1);
  other o = new_other(1);
  CHECK(CU(cuMemcpyDtoHAsync)(read, (CUdeviceptr)m->tensor.data, sizeof read, o.stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(o.stream) == CUDA_SUCCESS);
  CHECK(read[0] == 1 && read[1] == 2); /* complete already, so any stream may read it */
  tw_tensor_release(there);
  OK(tw_tensor_from_dlpack_on(runtime, m, 0, o.stream, &same));
  CHECK(strstr(tw_tensor_device(same), "CUDA:1"));
  OK(tw_tensor_to_host(same, &back));
  CHECK(((const float*)tw_tensor_data(back))[1] == 2);
  tw_tensor_release(back);
  tw_tensor_release(same);
  tw_tensor_release(here);
  end_other(&o);
  CHECK(!*wrong());
  tw_runtime_release(runtime);
}

static void WorkOfAnotherLibraryIsWaitedForOnTheDevice(void) {
  reset("");
  job j = new_job();
  other o = new_other(0);
  void* page = NULL;
  CHECK(CU(cuMemHostAlloc)(&page, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  uint32_t* gate = page;
  __atomic_store_n(gate, 0, __ATOMIC_RELEASE);
  CUdeviceptr at = 0;
  CHECK(CU(cuMemHostGetDevicePointer)(&at, gate, 0) == CUDA_SUCCESS);
  CHECK(CU(cuStreamWaitValue32)(o.stream, at, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
  write_floats(&o, 3);
  DLManagedTensor m = last_two(&o);
  deleted = 0;
  OK(tw_tensor_from_dlpack_on(j.runtime, &m, 0, o.stream, &j.in)); /* returns without waiting */
  CHECK(strstr(tw_tensor_device(j.in), device) && deleted == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_job, &j) == 0);
  const struct timespec a_while = {0, 100 * 1000 * 1000};
  nanosleep(&a_while, NULL);
  CHECK(!__atomic_load_n(&j.done, __ATOMIC_ACQUIRE));
  __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  OK(j.status);
  CHECK(j.out && ((const float*)tw_tensor_data(j.out))[0] == 9 && ((const float*)tw_tensor_data(j.out))[1] == 16);
  tw_tensor_release(j.in);
  tw_tensor_release(j.out);
  CHECK(deleted == 1 && !*wrong());
  end_job(&j);
  end_other(&o);
  CHECK(CU(cuMemFreeHost)(gate) == CUDA_SUCCESS);
}

/* Recorded steps read the same memory repeatedly, and the other library writes to it in between. */
static void RecordedStepsWaitToo(void) {
  for (int told = 0; told < 2; ++told) {
    reset("delay=200");
    job j = new_job();
    other o = new_other(0);
    for (int k = 1; k < 9; ++k) {
      write_floats(&o, (float)k);
      DLManagedTensor m = last_two(&o);
      run_with(&j, &m, told ? o.stream : NULL, (float)k);
      enter(0);
      if (!told) CHECK(CU(cuStreamSynchronize)(o.stream) == CUDA_SUCCESS);
    }
    CHECK(told ? !*wrong() : strstr(wrong(), "is not ordered") != NULL); /* proves that the stub would detect it */
    if (told && *wrong()) printf("%s", wrong());
    end_job(&j);
    enter(0);
    end_other(&o);
  }
}

static void WhatTheDeviceCannotReadIsRefused(void) {
  reset("devices=2");
  tw_runtime* runtime = new_runtime();
  other o = new_other(0), far_away = new_other(1);
  enter(0);
  tw_tensor* t = NULL;
  float here[3] = {0};
  void* pinned = NULL;
  int64_t many[] = {1 << 28};
  CHECK(CU(cuMemHostAlloc)(&pinned, 64, 0) == CUDA_SUCCESS);
  deleted = 0;
  DLManagedTensor m = last_two(&o);
  m.tensor.data = here;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT,
        "CUDA:0 cannot take the DLPack tensor: its memory, or the end of it, is none that the driver knows");
  m.tensor.data = pinned;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "its memory is the host's");
  m = last_two(&far_away);
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "its memory is of CUDA device 1, not of 0");
  m = last_two(&o);
  m.tensor.shape = many;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "or the end of it");
  m = last_two(&o);
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, here, &t), TW_INVALID_ARGUMENT, "the stream to wait for is none of");
  CHECK(CU(cuStreamBeginCapture)(o.stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, o.stream, &t), TW_FAILED_PRECONDITION, "is being captured");
  CUgraph graph = NULL;
  CHECK(CU(cuStreamEndCapture)(o.stream, &graph) == CUDA_SUCCESS && CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  m.tensor.device_id = 7;
  FAILS(tw_tensor_from_dlpack_on(runtime, &m, 0, NULL, &t), TW_NOT_FOUND, "CUDA:0 is 0 of type 2, CUDA:1 is 1 of type 2");
  m = last_two(&o);
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "device of DLPack type 2");
  CHECK(deleted == 8 && t == NULL);
  OK(tw_tensor_from_dlpack_on(runtime, &m, 0, o.stream, &t));
  tw_tensor_release(t);
  CHECK(deleted == 9 && !*wrong());
  end_other(&o);
  enter(1);
  end_other(&far_away);
  CHECK(CU(cuMemFreeHost)(pinned) == CUDA_SUCCESS);
  tw_runtime_release(runtime);
}

MAIN(TEST(AnExportNamesItsDeviceAndItsAddress), TEST(WorkOfAnotherLibraryIsWaitedForOnTheDevice), TEST(RecordedStepsWaitToo),
     TEST(WhatTheDeviceCannotReadIsRefused))
