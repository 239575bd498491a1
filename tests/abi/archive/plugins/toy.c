/* A device of four functions and one kernel of its own, for the archive. */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {TW_SIZED(tw_device_info), TW_S("toy-0"), TW_S("host memory that plays a device"), .self = user,
                            .memory = 1 << 20};
  (void)h;
  return to->add(to, &d);
}

static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  *out_memory = aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  return *out_memory ? NULL : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("the toy is full"));
}

static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  (void)h, (void)self, (void)bytes;
  free(memory);
}

static tw_status* copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)h, (void)self;
  memcpy((char*)c->to + c->to_offset, (const char*)c->from + c->from_offset, c->bytes);
  return NULL;
}

static tw_status* negate(const tw_frame* f) {
  const float* x = (const float*)((const char*)f->in[0]->data + f->in[0]->offset);
  float* y = (float*)((char*)f->out[0]->data + f->out[0]->offset);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = -x[i];
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("TOY"),        .enumerate = enumerate,
                           .allocate = allocate,    .release = release, .copy = copy};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Neg(float) @TOY"), .execute = negate};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_device(r, &d));
  return tw_add_kernel(r, &k);
}
TW_PLUGIN("org.example.toy", "1.0", init)
