/* Its kernel enqueues work that reads an input in host memory after execute has returned, when the host
 * may reuse that memory. */
#include "toy_stream.h"

typedef struct scaling {
  const float *x, *by;
  float* y;
  uint64_t n;
} scaling;

static void scale_now(void* arg) {
  const scaling* s = arg;
  for (uint64_t i = 0; i < s->n; ++i) s->y[i] = s->x[i] * *s->by;
  free(arg);
}

static tw_status* scale(const tw_frame* f) {
  scaling* s = malloc(sizeof *s);
  if (!s) return tw_fail(f->host, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a job"));
  *s = (scaling){toy_in(f, 0), toy_in(f, 1), toy_out(f, 0), f->in[0]->count};
  if (f->stream) return toy_enqueue(f->host, f->stream, (toy_job){.work = TOY_CALL, .call = scale_now, .arg = s});
  scale_now(s);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("ScaleBy(x: float[*s], by: float[]) -> (y: float[*s]); no_gradient \"left out\"")};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("ScaleBy @TOY; host by"), .execute = scale};
  const tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  TW_TRY(toy_register_streams(r, &set));
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &k);
}
TOY_PLUGIN(init, NULL)
