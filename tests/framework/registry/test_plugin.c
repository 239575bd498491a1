/* A plugin file as small as it gets, in the variants that plugin_loader_test asks for by a macro: GOOD; TWIN, another file with the id of
 * GOOD; NO_ENTRY, a library that is no plugin; UNRESOLVED, one that wants a symbol of the program that loads it. */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

#ifdef TEST_PLUGIN_NO_ENTRY
int tw_test_plugin_without_entry(void);
__attribute__((visibility("default"))) int tw_test_plugin_without_entry(void) { return 1; }
#else

static void say(const tw_host* h, const char* text) { h->run->log(h, 1, text, strlen(text)); }

static tw_status* execute(const tw_frame* f) {
  (void)f;
  return NULL;
}

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  (void)h, (void)user, (void)to;
  return NULL;
}
static tw_status* allocate(const tw_host* h, void* self, uint64_t bytes, uint64_t align, void** out_memory) {
  (void)self;
  *out_memory = aligned_alloc(align, (bytes + align - 1) / align * align);
  return *out_memory ? NULL : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory"));
}
static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  (void)self, (void)bytes;
  free(memory);
  say(h, "released");
}
static tw_status* copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)self, (void)c;
  return tw_fail(h, TW_UNIMPLEMENTED, TW_S("no copies here"));
}

#ifdef TEST_PLUGIN_UNRESOLVED
void tw_symbol_that_nobody_has(void);
#endif

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_op_def op = {TW_SIZED(tw_op_def), TW_S("TestPluginOp(x: float) -> (y: float)"), NULL, NULL, NULL};
  tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("TestPluginOp(float) @TEST"), NULL, NULL, execute, NULL, NULL};
  tw_device_def device = {TW_SIZED(tw_device_def), TW_S("TEST"), NULL, enumerate, allocate, release, copy, NULL};
#ifdef TEST_PLUGIN_UNRESOLVED
  tw_symbol_that_nobody_has();
#endif
  TW_TRY(r->op(r, &op));
  TW_TRY(r->kernel(r, &kernel));
  TW_TRY(r->device(r, &device));
  *out_instance = (void*)h;
  say(h, "init");
  return NULL;
}
static void shutdown_plugin(const tw_host* h, void* instance) { say(h, instance == h ? "shutdown" : "shutdown of something else"); }

TW_PLUGIN_WITH("org.test.plugin", "1.2", init, shutdown_plugin)
#endif
