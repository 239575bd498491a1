/* An asynchronous kernel whose timeline ends the call, and which ends it once more by itself. */
#include "thalweg/plugin/timeline.h"
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  const tw_host* h = f->host;
  const tw_token token = f->token;
  const tw_timeline_set* set = (const tw_timeline_set*)h->query(h, TW_S(TW_TIMELINE_SET), 1);
  tw_timeline* line = NULL;
  TW_TRY(set->create(h, &line));
  toy_half(f);
  tw_status* s = set->complete_at(f, line, 1);
  if (!s) h->timeline->signal(line, 1);
  h->timeline->release(line);
  if (!s) h->run->complete(h, token, NULL);
  return s;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Half(float) @CPU; async"), .execute = half};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
