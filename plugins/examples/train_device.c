/* A device with only the kernels in which a net of two layers spends its time, MatMul and Relu. The
 * other ops of a training step run on the CPU, with copies.
 *
 *     cc -std=c11 -shared -fPIC -I<prefix>/include train_device.c -o libtrain_device.so */
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {TW_SIZED(tw_device_info), TW_S("train-0"), TW_S("memory that plays a device"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}
static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  void* memory = a->bytes > SIZE_MAX - a->align ? NULL : aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  if (!memory) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no more memory"));
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
static float* at(const tw_view* v) { return (float*)(void*)((char*)v->data + v->offset); }

/* The state of a MatMul only says which inputs are transposed. */
static tw_status* matmul_create(const tw_node* n, void** out_state) {
  const uint8_t* a = tw_find_attr(n->attrs, n->n_attrs, TW_S("transpose_a"))->data;
  const uint8_t* b = tw_find_attr(n->attrs, n->n_attrs, TW_S("transpose_b"))->data;
  *out_state = (void*)(uintptr_t)(*a + 2 * *b);
  return NULL;
}
static tw_status* matmul(const tw_frame* f) {
  const uintptr_t ta = (uintptr_t)f->state & 1, tb = (uintptr_t)f->state & 2;
  const int64_t m = f->out[0]->dims[0], n = f->out[0]->dims[1], k = f->in[0]->dims[!ta];
  const float *a = at(f->in[0]), *b = at(f->in[1]);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += (double)a[ta ? p * m + i : i * k + p] * (double)b[tb ? j * k + p : p * n + j];
      at(f->out[0])[i * n + j] = (float)sum;
    }
  }
  return NULL;
}
static tw_status* relu(const tw_frame* f) {
  for (uint64_t i = 0; i < f->in[0]->count; ++i) at(f->out[0])[i] = at(f->in[0])[i] < 0 ? 0 : at(f->in[0])[i];
  return NULL;
}
static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("TRAIN"),      .enumerate = enumerate,
                           .allocate = allocate,    .release = release, .copy = copy};
  const tw_kernel_def product = {TW_SIZED(tw_kernel_def), TW_S("MatMul(float, float) @TRAIN"), .create = matmul_create, .execute = matmul};
  const tw_kernel_def positive = {TW_SIZED(tw_kernel_def), TW_S("Relu(float) @TRAIN"), .execute = relu};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_device(r, &d));
  TW_TRY(tw_add_kernel(r, &product));
  return tw_add_kernel(r, &positive);
}
TW_PLUGIN("org.example.train", "1.0", init)
