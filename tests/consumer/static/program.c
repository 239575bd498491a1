/* One executable: the runtime, the CPU plugin and an op of its own, all linked in. Nothing is loaded. */
#include <stdio.h>
#include <string.h>

#include <thalweg/thalweg.h>

const struct tw_plugin* tw_plugin_query_v0_cpu(const struct tw_host_info* host);
const struct tw_plugin* tw_plugin_query_v0_triple(const struct tw_host_info* host);

static int failed(tw_status* status) {
  if (!status) return 0;
  fprintf(stderr, "%s\n", tw_status_message(status));
  tw_status_release(status);
  return 1;
}

static int loads_nothing(void) {
  char line[4096];
  int clean = 1;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) clean = clean && !strstr(line, "libthalweg") && !strstr(line, "/thalweg/plugins/");
  if (maps) fclose(maps);
  return clean;
}

int main(void) {
  const tw_linked_plugin plugins[] = {tw_plugin_query_v0_cpu, tw_plugin_query_v0_triple};
  const char* options[] = {"load_plugins=false"};
  const tw_runtime_config config = {.size = sizeof config, .options = options, .n_options = 1, .plugins = plugins, .n_plugins = 2};
  tw_runtime* runtime = NULL;
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_tensor *five = NULL, *result = NULL;
  if (failed(tw_runtime_create_with(&config, &runtime)) || failed(tw_graph_create(runtime, &graph))) return 1;
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_gradient dx;
  const tw_output y = tw_scope_op1(s, "Triple", tw_scope_op2(s, "Mul", x, x)); /* 3 x^2, so 6 x */
  tw_scope_gradients(s, y, &x, 1, &dx);
  if (failed(tw_scope_finish(s)) || failed(tw_session_create(graph, NULL, 0, &session))) return 1;
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &dx.values, .n_fetches = 1};
  if (failed(tw_tensor_create_float(5, &five)) || failed(tw_session_run(session, &what, &five, NULL, &result))) return 1;
  const float slope = *(const float*)tw_tensor_data(result);
  printf("static: slope %g\n", slope);
  tw_tensor_release(five);
  tw_tensor_release(result);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_runtime_release(runtime);
  return slope == 30 && loads_nothing() ? 0 : 1;
}
