/* Tensors in device memory, by the C API: moved there and back, fed and fetched without passing
 * through the host. */
#include "check.h"

static tw_runtime* fake_runtime(void) {
  static const char* const options[] = {"threads=2", ("plugin_path=" FAKE), "plugin.org.thalweg.fake.delay_us=100"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 3, &runtime));
  return runtime;
}

static tw_tensor* vector(float a, float b) {
  const float values[] = {a, b};
  const int64_t dims[] = {2};
  return floats(dims, 1, values);
}

/* Returns the number of copies to and from the host. */
static long copies(tw_runtime* runtime) {
  tw_devices* devices = NULL;
  long n = 0;
  OK(tw_devices_create(runtime, &devices));
  for (uint32_t i = 0; i < tw_devices_count(devices); ++i) {
    tw_buffer* json = NULL;
    if (strcmp(tw_devices_kind(devices, i), "FAKE")) continue;
    OK(tw_devices_statistics_json(devices, i, &json));
    const char *in = strstr(tw_buffer_data(json), "copies_in\":"), *out = strstr(tw_buffer_data(json), "copies_out\":");
    CHECK(in && out);
    if (in && out) n += atol(in + 11) + atol(out + 12);
    tw_buffer_release(json);
  }
  tw_devices_destroy(devices);
  return n;
}

static void TensorsMoveThereAndBack(void) {
  tw_runtime* runtime = fake_runtime();
  tw_tensor *here = vector(1, 2), *there = NULL, *same = NULL, *back = NULL;
  CHECK(!tw_tensor_device(here));
  OK(tw_tensor_to_device(here, runtime, "FAKE:1", &there));
  CHECK(strstr(tw_tensor_device(there), "FAKE:1") && !tw_tensor_data(there) && !tw_tensor_mutable_data(there));
  CHECK(tw_tensor_count(there) == 2 && tw_tensor_dim(there, 0) == 2);
  OK(tw_tensor_to_device(there, runtime, "fake:1", &same));
  CHECK(same == there);
  tw_tensor_release(same);
  OK(tw_tensor_to_host(there, &back));
  CHECK(!tw_tensor_device(back) && ((const float*)tw_tensor_data(back))[1] == 2);
  tw_buffer* text = NULL;
  FAILS(tw_tensor_text(there, 0, &text), TW_FAILED_PRECONDITION, "tw_tensor_to_host");
  FAILS(tw_tensor_to_device(here, runtime, "FAKE:2", &same), TW_NOT_FOUND, "registered: CPU:0, FAKE:0, FAKE:1");
  FAILS(tw_tensor_to_device(here, runtime, "a b", &same), TW_INVALID_ARGUMENT, "a b");
  tw_tensor_release(here);
  tw_tensor_release(there);
  tw_tensor_release(back);
  tw_runtime_release(runtime);
}

static void WhatOutlivesItsRuntimeSaysSo(void) {
  tw_runtime* runtime = fake_runtime();
  tw_tensor *here = vector(1, 2), *there = NULL, *back = NULL;
  OK(tw_tensor_to_device(here, runtime, "FAKE:0", &there));
  tw_runtime_release(runtime);
  CHECK(!tw_tensor_device(there) && !tw_tensor_data(there) && tw_tensor_count(there) == 2);
  FAILS(tw_tensor_to_host(there, &back), TW_FAILED_PRECONDITION, "its runtime has ended");
  tw_tensor_release(here);
  tw_tensor_release(there);
}

static void FeedsAndFetchesStayOnTheDevice(void) {
  tw_runtime* runtime = fake_runtime();
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(runtime, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const int64_t dims[] = {-1};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  tw_op* op = tw_scope_begin(s, "Mul", NULL);
  tw_op_add_input(op, x);
  tw_op_add_input(op, x);
  tw_op_set_device(op, "FAKE:0");
  const tw_output y = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  const char *const device = "FAKE:0", *const missing = "FAKE:7", *const host = "CPU:0";
  tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  what.feed_devices = what.fetch_devices = &missing;
  tw_tensor *value = vector(2, 3), *out = NULL;
  FAILS(tw_session_run(session, &what, &value, NULL, &out), TW_NOT_FOUND, "'FAKE:7' not found; registered");
  what.feed_devices = what.fetch_devices = &device;
  OK(tw_session_run(session, &what, &value, NULL, &out));
  const long before = copies(runtime);
  for (int k = 0; k < 2; ++k) {
    tw_tensor_release(value);
    value = out;
    OK(tw_session_run(session, &what, &value, NULL, &out));
  }
  CHECK(copies(runtime) == before && strstr(tw_tensor_device(out), "FAKE:0"));
  what.fetch_devices = &host;
  what.feed_devices = NULL; /* the feed is still in device memory */
  tw_tensor* last = NULL;
  OK(tw_session_run(session, &what, &out, NULL, &last));
  CHECK(!tw_tensor_device(last) && ((const float*)tw_tensor_data(last))[0] == 65536);
  tw_tensor_release(last);
  tw_tensor_release(out);
  tw_tensor_release(value);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  tw_runtime_release(runtime);
}

MAIN(TEST(TensorsMoveThereAndBack), TEST(WhatOutlivesItsRuntimeSaysSo), TEST(FeedsAndFetchesStayOnTheDevice))
