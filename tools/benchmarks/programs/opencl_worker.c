/* Work on an OpenCL device in one process: by Thalweg, on variables on the device, and by a
 * plain OpenCL program. Both wait for the end of each step. usage: opencl_worker */
#define CL_TARGET_OPENCL_VERSION 120
#include <stdio.h>
#include <string.h>

#include <CL/cl.h>

#include "thalweg/thalweg.h"
#include "worker.h"

static void check(tw_status* s) {
  if (s) worker_fail("%s", tw_status_message(s));
}

/* ---- Thalweg ---- */

static tw_runtime* runtime;

static tw_output filled(tw_scope* s, const int32_t* dims, uint32_t rank, double value) {
  return tw_scope_op2(s, "Fill", tw_scope_ints(s, dims, rank), tw_scope_scalar(s, TW_FLOAT, value));
}

static void run_callable(void* callable) { check(tw_callable_run(callable, NULL, NULL, NULL)); }

/* "OP ROWS COLUMNS": nanoseconds of a step that reads variables of that shape and runs the op;
 * the result stays on the device. */
static void answer_ours(const char* argument) {
  char op[32];
  int32_t dims[2];
  if (sscanf(argument, "%31s %d %d", op, &dims[0], &dims[1]) != 3) worker_fail("not 'OP ROWS COLUMNS': %s", argument);
  static int count; /* makes names unique: variables outlive their graphs */
  char names[2][32];
  for (int k = 0; k < 2; ++k) snprintf(names[k], sizeof names[k], "v%d", count++);
  tw_graph* graph;
  tw_session* session;
  tw_callable* callable;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output a = tw_variable_create(s, names[0], filled(s, dims, 2, 0.5)),
                  b = tw_variable_create(s, names[1], filled(s, dims, 2, 0.25));
  const tw_operation* init = tw_variable_initializer(s, "init");
  const tw_output x = tw_variable_read(s, a),
                  y = strcmp(op, "Neg") == 0 ? tw_scope_op1(s, op, x) : tw_scope_op2(s, op, x, tw_variable_read(s, b));
  (void)y;
  const tw_operation* last = tw_graph_operation(graph, tw_graph_count(graph) - 1);
  check(tw_scope_finish(s));
  const char* options[] = {"device=OPENCL:0", "fallback=allow"};
  check(tw_session_create(graph, options, 2, &session));
  tw_signature what = {.size = sizeof what, .targets = &init, .n_targets = 1};
  check(tw_session_run(session, &what, NULL, NULL, NULL));
  what.targets = &last;
  check(tw_callable_create(session, &what, &callable));
  worker_reply_time(run_callable, callable, 9, worker_calls(run_callable, callable), 1);
  tw_callable_destroy(callable);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* ---- Plain OpenCL ---- */

static const char kText[] =
    "kernel void empty(global const float* x, global float* y) { }\n"
    "kernel void add(global const float16* a, global const float16* b, global float16* y) {\n"
    "  const size_t i = get_global_id(0);\n  y[i] = a[i] + b[i];\n}\n";

static struct {
  cl_context context;
  cl_command_queue queue;
  cl_program program;
} cl;

static void ok(cl_int error, const char* what) {
  if (error != CL_SUCCESS) worker_fail("OpenCL: %s: error %d", what, (int)error);
}

static void start(void) {
  if (cl.context) return;
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  const char* text = kText;
  ok(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl.context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  ok(error, "clCreateContext");
  cl.queue = clCreateCommandQueue(cl.context, device, 0, &error);
  ok(error, "clCreateCommandQueue");
  cl.program = clCreateProgramWithSource(cl.context, 1, &text, NULL, &error);
  ok(error, "clCreateProgramWithSource");
  ok(clBuildProgram(cl.program, 1, &device, "", NULL, NULL), "clBuildProgram");
}

typedef struct launch {
  cl_kernel kernel;
  size_t items;
} launch;

static void run_launch(void* user) {
  const launch* l = user;
  ok(clEnqueueNDRangeKernel(cl.queue, l->kernel, 1, NULL, &l->items, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
  ok(clFinish(cl.queue), "clFinish");
}

/* "empty|add ELEMENTS": nanoseconds of the kernel and the wait for its end. */
static void answer_raw(const char* argument) {
  char name[32];
  long n;
  cl_int error;
  if (sscanf(argument, "%31s %ld", name, &n) != 2) worker_fail("not 'NAME ELEMENTS': %s", argument);
  start();
  const int adds = strcmp(name, "add") == 0;
  launch l = {clCreateKernel(cl.program, name, &error), adds ? (size_t)n / 16 : 1};
  ok(error, "clCreateKernel");
  cl_mem memory[3];
  for (cl_uint k = 0; k < 3; ++k) {
    const float half = 0.5f;
    memory[k] = clCreateBuffer(cl.context, CL_MEM_READ_WRITE, (size_t)n * sizeof(float), NULL, &error);
    ok(error, "clCreateBuffer");
    ok(clEnqueueFillBuffer(cl.queue, memory[k], &half, sizeof half, 0, (size_t)n * sizeof(float), 0, NULL, NULL), "clEnqueueFillBuffer");
    if (adds || k < 2) ok(clSetKernelArg(l.kernel, k, sizeof memory[k], &memory[k]), "clSetKernelArg");
  }
  worker_reply_time(run_launch, &l, 9, worker_calls(run_launch, &l), 1);
  for (int k = 0; k < 3; ++k) clReleaseMemObject(memory[k]);
  clReleaseKernel(l.kernel);
}

int main(void) {
  static const worker_command commands[] = {{"ours", answer_ours}, {"raw", answer_raw}, {NULL, NULL}};
  const char* options[] = {"threads=2"};
  check(tw_runtime_create(options, 1, &runtime));
  worker_serve(commands);
  return 0;
}
