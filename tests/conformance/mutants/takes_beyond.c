/* Imports memory of other libraries without checking its size. */
#include "toy_sets.h"

static tw_status* take(const tw_host* h, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue) {
  (void)h, (void)self, (void)memory, (void)offset, (void)bytes, (void)queue;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.dlpack.take = take;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
