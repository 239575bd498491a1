/* Aligns host memory to 64 bytes, whatever alignment is requested. */
#include "toy.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {(uint32_t)sizeof d, TW_DEVICE_HOST_MEMORY, TW_S("toy-0"), TW_S("host memory"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}

static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  const tw_allocation more = {TW_SIZED(tw_allocation), a->bytes + 64, 4096};
  void* memory = NULL;
  TW_TRY(toy_allocate(h, self, &more, &memory));
  *out_memory = (char*)memory + 64;
  return NULL;
}

static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) { toy_release(h, self, (char*)memory - 64, bytes); }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.enumerate = enumerate;
  d.allocate = allocate;
  d.release = release;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
