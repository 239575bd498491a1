/* A device that takes every op and computes nothing: what a step on it costs is the runtime's own time. Its memory is the host's, so that
 * nothing is copied either; what is in it is whatever was there before. Nothing runs on it unless it is named. */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {
      sizeof d, TW_DEVICE_HOST_MEMORY | TW_DEVICE_ON_REQUEST, TW_S("null"), TW_S("takes every op, computes nothing"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}

static tw_status* allocate(const tw_host* h, void* self, uint64_t bytes, uint64_t align, void** out_memory) {
  (void)self;
  void* memory = aligned_alloc(align, (bytes + align - 1) / align * align);
  if (!memory) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("the host has no more memory"));
  *out_memory = memory;
  return NULL;
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

/* Handles have to lead somewhere: to a variable of the node's name, which never gets a value. */
static tw_status* create(const tw_node* n, void** out_state) {
  tw_resource_key* key = malloc(sizeof *key + n->name_len);
  if (!key) return tw_fail(n->host, TW_RESOURCE_EXHAUSTED, TW_S("the host has no more memory"));
  *key = (tw_resource_key){TW_SIZED(tw_resource_key), TW_S(TW_VARIABLE_TYPE), NULL, 0, (char*)(key + 1), n->name_len};
  memcpy(key + 1, n->name, n->name_len);
  *out_state = key;
  return NULL;
}

static void destroy(const tw_host* h, void* state) {
  (void)h;
  free(state);
}

/* Outputs that nobody else gives memory become empty vectors. */
static tw_status* nothing(const tw_frame* f) {
  const int64_t empty[] = {0};
  for (uint32_t o = 0; o < f->n_out; ++o) {
    if (f->out[o]->rank >= 0) continue;
    if (f->out[o]->dtype == TW_RESOURCE)
      TW_TRY(f->host->resource->open(f, f->state, NULL, NULL, o));
    else
      TW_TRY(f->host->tensor->allocate(f, o, empty, 1));
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("NULL"), NULL, enumerate, allocate, release, copy};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("* @NULL; cheap"), NULL, create, nothing, destroy, NULL};
  (void)h, (void)out_instance;
  TW_TRY(r->device(r, &d));
  return r->kernel(r, &k);
}
TW_PLUGIN("org.thalweg.null", "0.1.0", init)
