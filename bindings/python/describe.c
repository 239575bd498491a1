/* Prints one JSON object, from which generate_stubs.py makes type hints: {"ops": [as tw_ops_json],
 * "session": [{"name", "kind", "repeats", "choices"}]}. It covers the ops linked into the library;
 * plugins are not loaded. */
#include <stdio.h>
#include <stdlib.h>

#include <thalweg/thalweg.h>

static void check(tw_status* status) {
  if (!status) return;
  fprintf(stderr, "describe: %s\n", tw_status_message(status));
  exit(1);
}

static void print_options(const char* name, const tw_option* (*option)(uint32_t)) {
  const tw_option* o = NULL;
  printf("\"%s\": [", name);
  for (uint32_t i = 0; (o = option(i)) != NULL; ++i) {
    printf("%s{\"name\": \"%s\", \"kind\": %u, \"repeats\": %u, \"choices\": [", i ? ", " : "", o->name, o->kind, o->repeats);
    for (uint32_t k = 0; k < o->n_choices; ++k) printf("%s\"%s\"", k ? ", " : "", o->choices[k]);
    printf("]}");
  }
  printf("]");
}

int main(void) {
  const char* options[] = {"load_plugins=false", "threads=1"};
  tw_runtime* runtime = NULL;
  tw_ops* ops = NULL;
  check(tw_runtime_create(options, 2, &runtime));
  check(tw_ops_create(runtime, &ops));
  printf("{\"ops\": [");
  for (uint32_t i = 0; i < tw_ops_count(ops); ++i) {
    tw_buffer* json = NULL;
    check(tw_ops_json(ops, i, &json));
    printf("%s%s", i ? ",\n" : "", tw_buffer_data(json));
    tw_buffer_release(json);
  }
  printf("],\n");
  print_options("session", tw_session_option);
  printf("}\n");
  tw_ops_destroy(ops);
  tw_runtime_release(runtime);
  return 0;
}
