/* OpenCL buffers shared by DLPack with a library of the test, which works on them with its own
 * queue. Skipped, with the reason, if no OpenCL device is found. */
#define _POSIX_C_SOURCE 200809L
#define CL_TARGET_OPENCL_VERSION 120
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <CL/cl.h>

#include "check.h"
#include "dlpack_structs.h"

#define CL(name) ((__typeof__(&name))function(#name))
static void* function(const char* name) {
  static void* library;
  if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : NULL;
}

static const char* const device = "OPENCL:0";
static int64_t two[] = {2};

static int has_device(void) {
  tw_devices* devices = NULL;
  OK(tw_devices_create(NULL, &devices));
  int found = 0;
  for (uint32_t i = 0; i < tw_devices_count(devices); ++i) found += strcmp(tw_devices_kind(devices, i), "OPENCL") == 0;
  tw_devices_destroy(devices);
  return found;
}

/* The other library; it uses the device's context, which it gets from a tensor. */
typedef struct other {
  cl_context context;
  cl_device_id id;
  cl_command_queue queue;
} other;

static other new_other(tw_runtime* runtime) {
  other o = {0};
  const float values[] = {1, 2};
  tw_tensor *here = floats(two, 1, values), *there = NULL;
  void* exported = NULL;
  OK(tw_tensor_to_device(here, runtime, device, &there));
  OK(tw_tensor_to_dlpack(there, &exported));
  DLManagedTensor* m = exported;
  CHECK(m->tensor.device_type == 4 && m->tensor.device_id == 0);
  CHECK(CL(clGetMemObjectInfo)(m->tensor.data, CL_MEM_CONTEXT, sizeof o.context, &o.context, NULL) == CL_SUCCESS);
  CHECK(CL(clGetContextInfo)(o.context, CL_CONTEXT_DEVICES, sizeof o.id, &o.id, NULL) == CL_SUCCESS);
  cl_int error = CL_SUCCESS;
  o.queue = CL(clCreateCommandQueue)(o.context, o.id, 0, &error);
  CHECK(error == CL_SUCCESS);
  float read[2] = {0};
  CHECK(CL(clEnqueueReadBuffer)(o.queue, m->tensor.data, CL_TRUE, m->tensor.byte_offset, sizeof read, read, 0, NULL, NULL) == CL_SUCCESS);
  CHECK(read[0] == 1 && read[1] == 2); /* complete already, so any queue may read it */
  m->deleter(m);
  tw_tensor_release(there);
  tw_tensor_release(here);
  return o;
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

static job new_job(tw_runtime* runtime) {
  job j = {.runtime = runtime};
  OK(tw_graph_create(runtime, &j.graph));
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
  tw_tensor_release(j->in);
  tw_tensor_release(j->out);
  tw_session_destroy(j->session);
  tw_graph_destroy(j->graph);
}

static void* run_job(void* arg) {
  job* j = arg;
  const tw_signature what = {.size = sizeof what, .feeds = &j->x, .n_feeds = 1, .fetches = &j->y, .n_fetches = 1, .feed_devices = &device};
  j->status = tw_session_run(j->session, &what, &j->in, NULL, &j->out);
  __atomic_store_n(&j->done, 1, __ATOMIC_RELEASE);
  return NULL;
}

static cl_mem new_buffer(cl_context context, cl_mem_flags flags, size_t bytes) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = CL(clCreateBuffer)(context, flags, bytes, NULL, &error);
  CHECK(error == CL_SUCCESS);
  return memory;
}

static void release_buffer(DLManagedTensor* self) {
  CL(clReleaseMemObject)(self->tensor.data);
  ++deleted;
}

static DLManagedTensor two_floats_of(cl_mem memory) {
  DLManagedTensor m = {{memory, 4, 0, 1, 2, 32, 1, two, NULL, sizeof(float)}, NULL, count_deleted};
  return m;
}

/* Makes a tensor of a buffer that the other library writes when the gate opens. */
static tw_tensor* written_behind(job* j, const other* o, cl_event gate) {
  cl_mem memory = new_buffer(o->context, CL_MEM_READ_WRITE, 3 * sizeof(float));
  const float zeros[3] = {0};
  static const float written[3] = {0, 3, 4};
  CL(clEnqueueWriteBuffer)(o->queue, memory, CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL);
  CHECK(CL(clEnqueueWriteBuffer)(o->queue, memory, CL_FALSE, 0, sizeof written, written, 1, &gate, NULL) == CL_SUCCESS);
  static DLManagedTensor m; /* must outlive the tensor */
  m = two_floats_of(memory);
  m.deleter = release_buffer;
  tw_tensor* t = NULL;
  deleted = 0;
  OK(tw_tensor_from_dlpack_on(j->runtime, &m, 0, o->queue, &t)); /* returns without waiting */
  CHECK(strstr(tw_tensor_device(t), "OPENCL:0") && deleted == 0);
  return t;
}

static void WorkOfAnotherLibraryIsWaitedForOnTheDevice(void) {
  job j = new_job(NULL);
  other o = new_other(NULL);
  cl_int error = CL_SUCCESS;
  cl_event gate = CL(clCreateUserEvent)(o.context, &error);
  j.in = written_behind(&j, &o, gate);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_job, &j) == 0);
  const struct timespec a_while = {0, 100 * 1000 * 1000};
  nanosleep(&a_while, NULL);
  CHECK(!__atomic_load_n(&j.done, __ATOMIC_ACQUIRE));
  CL(clSetUserEventStatus)(gate, CL_COMPLETE);
  pthread_join(thread, NULL);
  OK(j.status);
  CHECK(j.out && ((const float*)tw_tensor_data(j.out))[0] == 9 && ((const float*)tw_tensor_data(j.out))[1] == 16);
  end_job(&j);
  CHECK(deleted == 1);
  CL(clReleaseEvent)(gate);
  CL(clReleaseCommandQueue)(o.queue);
}

static void WhatAnotherLibraryFailedToMakeFailsTheStep(void) {
  static const char* const options[] = {"plugin.org.thalweg.opencl.loader=" PROXY};
  void (*fail_marker)(void) = (void (*)(void))dlsym(dlopen(PROXY, RTLD_NOW | RTLD_LOCAL), "fail_marker");
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 1, &runtime));
  job j = new_job(runtime);
  other o = new_other(runtime);
  cl_int error = CL_SUCCESS;
  cl_event gate = CL(clCreateUserEvent)(o.context, &error);
  j.in = written_behind(&j, &o, gate);
  fail_marker();
  run_job(&j);
  CHECK(j.status && strstr(tw_status_message(j.status), "work of another library that made a tensor failed with CL_OUT_OF_RESOURCES"));
  tw_status_release(j.status);
  CL(clSetUserEventStatus)(gate, CL_COMPLETE);
  CL(clFinish)(o.queue);
  run_job(&j); /* reported once */
  OK(j.status);
  end_job(&j);
  CL(clReleaseEvent)(gate);
  CL(clReleaseCommandQueue)(o.queue);
  tw_runtime_release(runtime);
}

static void BuffersThatTheDeviceCannotReadAreRefused(void) {
  other o = new_other(NULL);
  cl_int error = CL_SUCCESS;
  cl_context elsewhere = CL(clCreateContext)(NULL, 1, &o.id, NULL, NULL, &error);
  CHECK(error == CL_SUCCESS);
  cl_command_queue foreign = CL(clCreateCommandQueue)(elsewhere, o.id, 0, &error);
  cl_mem far_away = new_buffer(elsewhere, CL_MEM_READ_WRITE, 64), too_short = new_buffer(o.context, CL_MEM_READ_WRITE, 8),
         write_only = new_buffer(o.context, CL_MEM_WRITE_ONLY, 64), good = new_buffer(o.context, CL_MEM_READ_ONLY, 64);
  tw_tensor* t = NULL;
  deleted = 0;
  DLManagedTensor m = two_floats_of(far_away);
  FAILS(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t), TW_INVALID_ARGUMENT,
        "OPENCL:0 cannot take the DLPack tensor: its buffer is of another OpenCL context");
  m = two_floats_of(too_short);
  FAILS(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "has 8 bytes, fewer than byte_offset 4 and the 8 bytes");
  m = two_floats_of(write_only);
  FAILS(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t), TW_INVALID_ARGUMENT, "CL_MEM_WRITE_ONLY");
  m = two_floats_of(good);
  FAILS(tw_tensor_from_dlpack_on(NULL, &m, 0, foreign, &t), TW_INVALID_ARGUMENT, "the queue to wait for is of another OpenCL context");
  m.tensor.device_id = 99;
  FAILS(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t), TW_NOT_FOUND, "OPENCL:0 is 0 of type 4");
  m = two_floats_of(good);
  FAILS(tw_tensor_from_dlpack(&m, &t), TW_INVALID_ARGUMENT, "device of DLPack type 4");
  CHECK(deleted == 6 && t == NULL);
  OK(tw_tensor_from_dlpack_on(NULL, &m, 0, NULL, &t));
  tw_tensor_release(t);
  CHECK(deleted == 7);
  cl_mem all[] = {far_away, too_short, write_only, good};
  for (int i = 0; i < 4; ++i) CL(clReleaseMemObject)(all[i]);
  CL(clReleaseCommandQueue)(foreign);
  CL(clReleaseCommandQueue)(o.queue);
  CL(clReleaseContext)(elsewhere);
}

int main(void) {
  if (!has_device()) {
    printf("skipped: no OpenCL device was found; install a driver (pocl-opencl-icd runs on the CPU)\n");
    return 77;
  }
  const test tests[] = {TEST(WorkOfAnotherLibraryIsWaitedForOnTheDevice), TEST(WhatAnotherLibraryFailedToMakeFailsTheStep),
                        TEST(BuffersThatTheDeviceCannotReadAreRefused)};
  return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
