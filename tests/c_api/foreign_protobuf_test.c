/* The library in a process that already has another protobuf with global symbols: neither
 * disturbs the other. */
#include <dlfcn.h>

#include "check.h"

int main(void) {
  void* foreign = dlopen("libprotobuf.so.32", RTLD_NOW | RTLD_GLOBAL);
  if (!foreign) {
    printf("skipped: no other protobuf here (%s)\n", dlerror());
    return 77;
  }
  /* Loaded last, so that its protobuf would bind to the other one's symbols if it left any
   * undefined. */
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return printf("%s\n", dlerror()), 1;
  tw_status* (*graph_create)(tw_runtime*, tw_graph**) = NULL;
  tw_status* (*graph_export)(const tw_graph*, tw_buffer**) = NULL;
  tw_status* (*graph_import)(tw_graph*, const void*, uint64_t, const tw_import_options*) = NULL;
  tw_op* (*op_create)(tw_graph*, const char*, const char*) = NULL;
  tw_status* (*op_finish)(tw_op*, const tw_operation**) = NULL;
  uint32_t (*graph_count)(const tw_graph*) = NULL;
  const char* (*buffer_data)(const tw_buffer*) = NULL;
  uint64_t (*buffer_bytes)(const tw_buffer*) = NULL;
  void (*buffer_release)(tw_buffer*) = NULL;
  void (*graph_destroy)(tw_graph*) = NULL;
  *(void**)&graph_create = dlsym(library, "tw_graph_create");
  *(void**)&graph_export = dlsym(library, "tw_graph_export");
  *(void**)&graph_import = dlsym(library, "tw_graph_import");
  *(void**)&graph_count = dlsym(library, "tw_graph_count");
  *(void**)&op_create = dlsym(library, "tw_op_create");
  *(void**)&op_finish = dlsym(library, "tw_op_finish");
  *(void**)&buffer_data = dlsym(library, "tw_buffer_data");
  *(void**)&buffer_bytes = dlsym(library, "tw_buffer_bytes");
  *(void**)&buffer_release = dlsym(library, "tw_buffer_release");
  *(void**)&graph_destroy = dlsym(library, "tw_graph_destroy");
  tw_graph *graph = NULL, *copy = NULL;
  tw_buffer* bytes = NULL;
  CHECK(!graph_create(NULL, &graph) && !graph_create(NULL, &copy));
  CHECK(!op_finish(op_create(graph, "NoOp", "nothing"), NULL));
  CHECK(!graph_export(graph, &bytes));
  CHECK(!graph_import(copy, buffer_data(bytes), buffer_bytes(bytes), NULL));
  CHECK(graph_count(copy) == 1);
  buffer_release(bytes);
  graph_destroy(graph);
  graph_destroy(copy);
  printf("%s\n", failures ? "FAILED" : "passed");
  return failures > 0;
}
