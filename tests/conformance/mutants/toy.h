/* A small correct plugin: a device TOY with its own memory and a kernel for Neg, and an op Half
 * with a gradient and a CPU kernel. healthy.c uses it unchanged; each mutant changes one part of
 * it. */
#ifndef MUTANTS_TOY_H
#define MUTANTS_TOY_H
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

#define UNUSED __attribute__((unused))

/* ---- the device ---- */

static UNUSED tw_status* toy_enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {TW_SIZED(tw_device_info), TW_S("toy-0"), TW_S("memory that plays a device"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}

static UNUSED tw_status* toy_allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  void* memory = a->bytes < (uint64_t)1 << 40 ? aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align) : NULL;
  if (!memory) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("the toy is full"));
  *out_memory = memory;
  return NULL;
}

static UNUSED void toy_release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  (void)h, (void)self, (void)bytes;
  free(memory);
}

static UNUSED tw_status* toy_copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)h, (void)self;
  memcpy((char*)c->to + c->to_offset, (const char*)c->from + c->from_offset, c->bytes);
  return NULL;
}

static UNUSED tw_device_def toy_device(void) {
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("TOY"), NULL, toy_enumerate, toy_allocate, toy_release, toy_copy, NULL};
  return d;
}

/* ---- kernels ---- */

static UNUSED const float* toy_in(const tw_frame* f, uint32_t i) {
  return (const float*)(const void*)((const char*)f->in[i]->data + f->in[i]->offset);
}
static UNUSED float* toy_out(const tw_frame* f, uint32_t o) { return (float*)(void*)((char*)f->out[o]->data + f->out[o]->offset); }

static UNUSED tw_status* toy_neg(const tw_frame* f) {
  const float* x = toy_in(f, 0);
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = -x[i];
  return NULL;
}

static UNUSED tw_kernel_def toy_kernel(void) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Neg(float) @TOY"), .execute = toy_neg};
  return k;
}

static UNUSED tw_status* toy_half(const tw_frame* f) {
  const float* x = toy_in(f, 0);
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = x[i] / 2;
  return NULL;
}

static UNUSED tw_kernel_def toy_half_kernel(void) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Half(float) @CPU"), .execute = toy_half};
  return k;
}

/* ---- an op ---- */

static UNUSED tw_status* toy_half_gradient(const tw_grad_call* c) {
  const tw_graph_api* g = c->host->graph;
  const tw_edge dy = g->dy(c->b, 0);
  g->dx(c->b, 0, g->emit(c->b, TW_S("Half"), &dy, 1, NULL, 0));
  return NULL;
}

static UNUSED tw_op_def toy_op(void) {
  const tw_op_def d = {TW_SIZED(tw_op_def), TW_S("Half(x: T[*s]) -> (y: T[*s]); T: {float}"), .gradient = toy_half_gradient};
  return d;
}

/* Registers all parts; NULL selects the correct one. */
static UNUSED tw_status* toy_register(tw_registrar* r, const tw_device_def* device, const tw_kernel_def* neg, const tw_op_def* op,
                                      const tw_kernel_def* half) {
  const tw_device_def toy = toy_device();
  const tw_kernel_def neg_toy = toy_kernel(), half_cpu = toy_half_kernel();
  const tw_op_def half_op = toy_op();
  TW_TRY(tw_add_device(r, device ? device : &toy));
  TW_TRY(tw_add_kernel(r, neg ? neg : &neg_toy));
  TW_TRY(tw_add_op(r, op ? op : &half_op));
  return tw_add_kernel(r, half ? half : &half_cpu);
}

/* Registers all parts with that gradient of the op. */
static UNUSED tw_status* toy_register_gradient(tw_registrar* r, tw_status* (*gradient)(const tw_grad_call* c)) {
  tw_op_def op = toy_op();
  op.gradient = gradient;
  return toy_register(r, NULL, NULL, &op, NULL);
}

#define TOY_PLUGIN(INIT, SHUTDOWN) TW_PLUGIN_WITH("org.example.mutant", "1.0", INIT, SHUTDOWN)
#endif
