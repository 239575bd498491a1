/* The device memory that a step needs for values copied from the host: copied when first needed,
 * against all copied before the first use. Each case has its own runtime, with a memory limit
 * for the device. */
#include <stdio.h>
#include <string.h>

#include "thalweg_worker.h"

enum { kValues = 64, kElements = 65536 };

static const tw_operation* negated(tw_scope* s, tw_output x) {
  tw_op* op = tw_scope_begin(s, "Neg", NULL);
  tw_op_add_input(op, x);
  return tw_scope_end_operation(s, op);
}

/* Sums the negated rows of x, which the host makes. at_once: no sum starts before all rows are
 * on the device. */
static tw_output add_sum(tw_scope* s, tw_output x, int at_once) {
  tw_op* op = tw_scope_begin(s, "Unpack", NULL);
  tw_op_add_input(op, x);
  tw_op_set_int(op, "num", kValues);
  const tw_output rows = tw_scope_end(s, op);
  tw_scope_set_device(s, "FAKE:0");
  const tw_operation* there[kValues];
  tw_output sum = 0;
  for (uint32_t i = 0; i < kValues; ++i) {
    there[i] = negated(s, tw_scope_output(s, rows, i));
    if (!at_once) sum = i ? tw_scope_op2(s, "AddV2", sum, tw_operation_output(there[i], 0)) : tw_operation_output(there[0], 0);
  }
  for (uint32_t i = 1; at_once && i < kValues; ++i) {
    op = tw_scope_begin(s, "AddV2", NULL);
    tw_op_add_input(op, i > 1 ? sum : tw_operation_output(there[0], 0));
    tw_op_add_input(op, tw_operation_output(there[i], 0));
    for (uint32_t k = 0; i == 1 && k < kValues; ++k) tw_op_add_control(op, there[k]);
    sum = tw_scope_end(s, op);
  }
  return sum;
}

/* Returns the peak of device memory in bytes; -1 if the limit was too small. */
static int64_t peak_within(const char* plugin, int64_t limit, int at_once) {
  char option[64];
  snprintf(option, sizeof option, "memory_limit.FAKE=%lld", (long long)limit);
  const char* options[] = {"threads=2", option};
  tw_runtime* one;
  check(tw_runtime_create(options, 2, &one));
  check(tw_plugin_load(one, plugin));
  tw_graph* graph;
  check(tw_graph_create(one, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_scope_set_device(s, "CPU:0");
  const int64_t dims[] = {kValues, kElements};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2), y = add_sum(s, x, at_once);
  check(tw_scope_finish(s));
  static float ones[kValues * kElements];
  for (int k = 0; k < kValues * kElements; ++k) ones[k] = 1;
  tw_tensor *feed, *sum = NULL;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, ones, sizeof ones, &feed));
  tw_session* session = open_session(graph, NULL);
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  tw_status* failed = tw_session_run(session, &what, &feed, NULL, &sum);
  int64_t peak = -1;
  if (failed) {
    if (tw_status_code(failed) != TW_RESOURCE_EXHAUSTED) check(failed);
    tw_status_release(failed);
  } else {
    if (((const float*)tw_tensor_data(sum))[kElements - 1] != -kValues) worker_fail("the sum is wrong");
    tw_devices* devices;
    uint64_t bytes = 0;
    check(tw_devices_create(one, &devices));
    for (uint32_t i = 0; i < tw_devices_count(devices); ++i) {
      if (strstr(tw_devices_name(devices, i), "FAKE:0")) check(tw_devices_memory_use(devices, i, NULL, &bytes, NULL));
    }
    tw_devices_destroy(devices);
    peak = (int64_t)bytes;
  }
  tw_tensor_release(sum);
  tw_tensor_release(feed);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_runtime_release(one);
  return peak;
}

/* argument: "needed FILE" or "at_once FILE"; FILE: the device's plugin. Replies with the peak
 * under the smallest limit, in multiples of one value's size, with which the step runs. */
void answer_copies_peak(const char* argument) {
  char kind[16], plugin[4096];
  if (sscanf(argument, "%15s %4095s", kind, plugin) != 2) worker_fail("not 'KIND FILE': %s", argument);
  const int64_t value = kElements * (int64_t)sizeof(float);
  int64_t peak = -1;
  for (int64_t n = 1; peak < 0 && n <= 2 * kValues; ++n) peak = peak_within(plugin, n * value, strcmp(kind, "at_once") == 0);
  if (peak < 0) worker_fail("there is no room for the step");
  worker_reply("%lld", (long long)peak);
}
