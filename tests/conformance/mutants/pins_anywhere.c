/* Pinned memory that is not aligned. */
#include "toy_sets.h"

static tw_status* pin(const tw_host* h, void* self, const tw_allocation* a, void** out_address) {
  const tw_allocation more = {TW_SIZED(tw_allocation), a->bytes + 64, 64};
  char* p = NULL;
  TW_TRY(toy_allocate(h, self, &more, (void**)&p));
  *out_address = p + 8;
  return NULL;
}
static void unpin(const tw_host* h, void* self, void* address, uint64_t bytes) { toy_release(h, self, (char*)address - 8, bytes); }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.pinned.allocate = pin;
  s.pinned.release = unpin;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
