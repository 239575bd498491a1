/* Allocates small blocks from one arena without recording which are in use. */
#include "toy.h"

static _Alignas(4096) char arena[8][8192];

static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  static unsigned next;
  if (a->bytes > 4000 || a->bytes < 100) return toy_allocate(h, self, a, out_memory);
  *out_memory = arena[next++ % 8];
  return NULL;
}

static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  if (bytes > 4000 || bytes < 100) toy_release(h, self, memory, bytes);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.allocate = allocate;
  d.release = release;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
