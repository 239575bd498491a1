/* Does not check whether an allocation succeeded. */
#include "toy.h"

static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)h, (void)self;
  char* memory = a->bytes < (uint64_t)1 << 40 ? aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align) : NULL;
  memory[0] = 0;
  *out_memory = memory;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.allocate = allocate;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
