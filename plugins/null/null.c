/* A device that takes every op and computes nothing, so the time of a step on it is the runtime's
 * own time. Its memory is host memory, so it copies nothing either. The contents of its memory are
 * undefined. Ops run on it only if a program names it. */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {
      sizeof d, TW_DEVICE_HOST_MEMORY | TW_DEVICE_ON_REQUEST, TW_S("null"), TW_S("takes every op, computes nothing"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}

static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  void* memory = aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
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

/* The state of a node. A handle must refer to a resource: here to a variable with the node's name,
 * which never gets a value. An output of unknown size gets size 0 along its unknown axes, and the
 * known rank and sizes otherwise. */
typedef struct node_state {
  tw_resource_key key;
  uint32_t most; /* axes of an output */
  int32_t* ranks;
  int64_t* dims; /* `most` for each output */
  char name[];
} node_state;

static void destroy(const tw_host* h, void* state) {
  node_state* s = state;
  (void)h;
  free(s->ranks);
  free(s->dims);
  free(s);
}

static tw_status* create(const tw_node* n, void** out_state) {
  const tw_shape* shapes = n->shapes + n->n_in;
  node_state* s = calloc(1, sizeof *s + n->name_len);
  if (!s) return tw_fail(n->host, TW_RESOURCE_EXHAUSTED, TW_S("the host has no more memory"));
  s->most = 1;
  for (uint32_t o = 0; o < n->n_out; ++o)
    if (shapes[o].rank > (int32_t)s->most) s->most = (uint32_t)shapes[o].rank;
  s->ranks = calloc(n->n_out + 1u, sizeof *s->ranks);
  s->dims = calloc((size_t)n->n_out * s->most + 1, sizeof *s->dims);
  if (!s->ranks || !s->dims) {
    destroy(n->host, s);
    return tw_fail(n->host, TW_RESOURCE_EXHAUSTED, TW_S("the host has no more memory"));
  }
  memcpy(s->name, n->name, n->name_len);
  s->key = (tw_resource_key){TW_SIZED(tw_resource_key), TW_S(TW_VARIABLE_TYPE), NULL, 0, s->name, n->name_len};
  for (uint32_t o = 0; o < n->n_out; ++o) {
    s->ranks[o] = shapes[o].rank < 0 ? 1 : shapes[o].rank;
    for (int32_t k = 0; k < shapes[o].rank; ++k) s->dims[o * s->most + (uint32_t)k] = shapes[o].dims[k] < 0 ? 0 : shapes[o].dims[k];
  }
  *out_state = s;
  return NULL;
}

/* Allocates outputs that have no memory yet, as empty tensors. */
static tw_status* nothing(const tw_frame* f) {
  const node_state* s = f->state;
  for (uint32_t o = 0; o < f->n_out; ++o) {
    if (f->out[o]->rank >= 0) continue;
    if (f->out[o]->dtype == TW_RESOURCE)
      TW_TRY(f->host->resource->open(f, &s->key, NULL, NULL, o));
    else
      TW_TRY(f->host->tensor->allocate(f, o, s->dims + o * s->most, (uint32_t)s->ranks[o]));
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("NULL"), NULL, enumerate, allocate, release, copy};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("* @NULL; cheap"), NULL, create, nothing, destroy, NULL};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_device(r, &d));
  return tw_add_kernel(r, &k);
}
TW_PLUGIN("org.thalweg.null", "0.1.0", init)
