/* Runtimes: options, isolation, log, devices, plugins. */
#include "check.h"

static void OptionsAreListedAndChecked(void) {
  tw_runtime* runtime = NULL;
  const tw_option *option, *threads = NULL, *limit = NULL;
  for (uint32_t i = 0; (option = tw_runtime_option(i)); ++i) {
    CHECK(option->size >= sizeof(tw_option) && *option->name && option->default_value && *option->doc);
    if (!strcmp(option->name, "threads")) threads = option;
    if (!strcmp(option->name, "memory_limit.<KIND>")) limit = option;
  }
  CHECK(threads && threads->kind == TW_OPTION_INT && threads->min == 0 && threads->max == 4096 && !strcmp(threads->default_value, "0"));
  CHECK(limit && limit->kind == TW_OPTION_BYTES && tw_runtime_option(1000) == NULL);
  const char* wrong[] = {"threads=-1", "colour=red", "threads", "load_plugins=perhaps"};
  const char* parts[] = {"-1", "colour", "key=value", "perhaps"};
  for (int i = 0; i < 4; ++i) FAILS(tw_runtime_create(&wrong[i], 1, &runtime), TW_INVALID_ARGUMENT, parts[i]);
  FAILS(tw_runtime_create(NULL, 1, &runtime), TW_INVALID_ARGUMENT, "options is NULL");
  CHECK(runtime == NULL);
  const char* right[] = {"threads=1"};
  OK(tw_runtime_create(right, 1, &runtime));
  tw_runtime_retain(runtime);
  tw_runtime_release(runtime);
  tw_runtime_release(runtime);
}

static void TheDefaultRuntimeIsOne(void) {
  tw_runtime *a = NULL, *b = NULL;
  OK(tw_runtime_default(&a));
  OK(tw_runtime_default(&b));
  CHECK(a != NULL && a == b);
  tw_runtime_release(a);
  tw_runtime_release(b);
}

static void DevicesTellAboutThemselves(void) {
  tw_devices* devices = NULL;
  uint64_t now = 1, peak = 0;
  OK(tw_devices_create(NULL, &devices));
  CHECK(tw_devices_count(devices) >= 1);
  const uint32_t n = tw_devices_count(devices);
  int cpu = 0;
  for (uint32_t i = 0; i < n; ++i) {
    CHECK(strstr(tw_devices_name(devices, i), tw_devices_kind(devices, i)) != NULL);
    CHECK(*tw_devices_plugin(devices, i) && tw_devices_uid(devices, i) && tw_devices_description(devices, i));
    OK(tw_devices_memory_use(devices, i, &now, &peak, NULL));
    CHECK(now <= peak);
    CHECK(tw_devices_capabilities(devices, i) != NULL);
    tw_devices_give_back(devices, i);
    cpu += strcmp(tw_devices_kind(devices, i), "CPU") == 0;
  }
  CHECK(cpu == 1);
  tw_devices_give_back(devices, n);
  OK(tw_runtime_give_back(NULL));
  CHECK(strstr(tw_devices_capabilities(devices, 0), "host memory") != NULL && tw_devices_capabilities(devices, n) == NULL);
  CHECK(tw_devices_name(devices, n) == NULL && tw_devices_memory(devices, n) == 0);
  FAILS(tw_devices_memory_use(devices, n, &now, NULL, NULL), TW_OUT_OF_RANGE, "device");
  tw_buffer* json = NULL;
  FAILS(tw_devices_statistics_json(devices, n, &json), TW_OUT_OF_RANGE, "device");
  FAILS(tw_devices_statistics_json(devices, 0, &json), TW_UNIMPLEMENTED, "CPU:0 tells no statistics");
  CHECK(json == NULL);
  tw_devices_destroy(devices);
}

static uint64_t host_memory(const tw_devices* devices, uint64_t* out_peak) {
  uint64_t now = 0;
  OK(tw_devices_memory_use(devices, 0, &now, out_peak, NULL));
  return now;
}

static void HostMemoryInUseIsCounted(void) {
  const int64_t elements = 4 << 20;
  const uint64_t bytes = (uint64_t)elements * sizeof(float);
  tw_runtime* other = NULL;
  tw_devices *devices = NULL, *others = NULL;
  uint64_t peak = 0, higher = 0;
  OK(tw_devices_create(NULL, &devices));
  CHECK(strcmp(tw_devices_kind(devices, 0), "CPU") == 0);
  const uint64_t before = host_memory(devices, NULL);
  tw_tensor *x = NULL, *y = NULL;
  OK(tw_tensor_create(TW_FLOAT, &elements, 1, &x));
  CHECK(host_memory(devices, &peak) >= before + bytes && peak >= before + bytes);
  OK(tw_tensor_create(TW_FLOAT, &elements, 1, &y));
  CHECK(host_memory(devices, &higher) >= before + 2 * bytes && higher >= peak + bytes);
  /* A device of another runtime has the same memory. */
  OK(tw_runtime_create(NULL, 0, &other));
  OK(tw_devices_create(other, &others));
  CHECK(host_memory(others, &peak) >= before + 2 * bytes && peak >= higher);
  tw_devices_destroy(others);
  tw_runtime_release(other);
  tw_tensor_release(x);
  tw_tensor_release(y);
  CHECK(host_memory(devices, &peak) < before + bytes && peak >= higher);
  tw_devices_destroy(devices);
}

static void PluginsTellWhatBecameOfThem(void) {
  tw_plugins* plugins = NULL;
  OK(tw_plugins_create(NULL, &plugins));
  int ops = 0, cpu = 0;
  for (uint32_t i = 0; i < tw_plugins_count(plugins); ++i) {
    CHECK(tw_plugins_state(plugins, i) <= TW_PLUGIN_NOT_ALLOWED);
    if (tw_plugins_state(plugins, i) != TW_PLUGIN_LOADED && tw_plugins_state(plugins, i) != TW_PLUGIN_KNOWN) continue;
    CHECK((strlen(tw_plugins_digest(plugins, i)) == 64) == (strstr(tw_plugins_path(plugins, i), "linked in") == NULL));
    ops += tw_plugins_op_count(plugins, i) > 100 && tw_plugins_op(plugins, i, 0) != NULL;
    cpu += tw_plugins_kernel_count(plugins, i) > 100 && tw_plugins_device_kind_count(plugins, i) == 1 &&
           strcmp(tw_plugins_device_kind(plugins, i, 0), "CPU") == 0;
    CHECK(*tw_plugins_id(plugins, i) && *tw_plugins_version(plugins, i) && *tw_plugins_build(plugins, i) && !*tw_plugins_fix(plugins, i));
  }
  CHECK(ops == 1 && cpu == 1);
  CHECK(tw_plugins_id(plugins, 1000) == NULL && tw_plugins_state(plugins, 1000) == TW_PLUGIN_FAILED);
  tw_plugins_destroy(plugins);
}

static void APluginThatIsNoneIsRefusedAndRemembered(void) {
  tw_runtime* runtime = NULL;
  tw_plugins* plugins = NULL;
  const char* options[] = {"load_plugins=false"};
  OK(tw_runtime_create(options, 1, &runtime));
  FAILS(tw_plugin_load(runtime, "/no/such/plugin.so"), TW_NOT_FOUND, "/no/such/plugin.so");
  FAILS(tw_plugin_load(runtime, NULL), TW_INVALID_ARGUMENT, "path is NULL");
  tw_status* s = tw_plugin_load(runtime, "/proc/self/exe");
  CHECK(s != NULL && strstr(tw_status_message(s), "/proc/self/exe"));
  tw_status_release(s);
  OK(tw_plugins_create(runtime, &plugins));
  int failed = 0;
  for (uint32_t i = 0; i < tw_plugins_count(plugins); ++i) {
    failed += tw_plugins_state(plugins, i) == TW_PLUGIN_FAILED && *tw_plugins_reason(plugins, i) && *tw_plugins_fix(plugins, i);
  }
  CHECK(failed == 2);
  tw_plugins_destroy(plugins);
  tw_runtime_release(runtime);
}

static void WithoutDevicesRunsFailClearly(void) {
  tw_runtime* runtime = NULL;
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_tensor *x = scalar(1), *out = NULL;
  const char* options[] = {"load_plugins=false"};
  OK(tw_runtime_create(options, 1, &runtime));
  OK(tw_graph_create(runtime, &graph));
  tw_runtime_release(runtime); /* the graph keeps it alive */
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output a = tw_scope_placeholder(s, "a", TW_FLOAT, NULL, 0), b = tw_scope_op1(s, "Neg", a);
  OK(tw_scope_finish(s));
  tw_status* failed = tw_session_create(graph, NULL, 0, &session);
  const tw_signature what = {.size = sizeof what, .feeds = &a, .n_feeds = 1, .fetches = &b, .n_fetches = 1};
  if (!failed) failed = tw_session_run(session, &what, &x, NULL, &out);
  FAILS(failed, TW_FAILED_PRECONDITION, "device");
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_tensor_release(x);
}

static int lines;
static void count_line(void* user, uint32_t level, const char* text, uint64_t bytes) {
  CHECK(user == &lines && level <= TW_LOG_ERROR);
  lines += bytes == 5 && memcmp(text, "heard", 5) == 0;
}

static void TheLogReachesItsSink(void) {
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(NULL, 0, &runtime));
  OK(tw_log_write(runtime, TW_LOG_ERROR, "heard")); /* no sink receives it */
  OK(tw_log_set_sink(runtime, count_line, &lines, TW_LOG_WARNING));
  OK(tw_log_write(runtime, TW_LOG_INFO, "heard"));
  CHECK(lines == 0);
  OK(tw_log_write(runtime, TW_LOG_WARNING, "heard"));
  CHECK(lines == 1);
  FAILS(tw_log_set_sink(runtime, count_line, NULL, 4), TW_INVALID_ARGUMENT, "log level 4");
  FAILS(tw_log_write(runtime, 9, "x"), TW_INVALID_ARGUMENT, "log level 9");
  OK(tw_log_set_sink(runtime, NULL, NULL, 0));
  OK(tw_log_write(runtime, TW_LOG_ERROR, "heard"));
  CHECK(lines == 1);
  tw_runtime_release(runtime);
}

MAIN(TEST(OptionsAreListedAndChecked), TEST(TheDefaultRuntimeIsOne), TEST(DevicesTellAboutThemselves), TEST(HostMemoryInUseIsCounted),
     TEST(PluginsTellWhatBecameOfThem), TEST(APluginThatIsNoneIsRefusedAndRemembered), TEST(WithoutDevicesRunsFailClearly),
     TEST(TheLogReachesItsSink))
