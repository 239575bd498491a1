/* An asynchronous kernel that ends its call twice. */
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  const tw_host* h = f->host;
  const tw_token token = f->token;
  toy_half(f);
  h->run->complete(h, token, NULL);
  h->run->complete(h, token, NULL);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Half(float) @CPU; async"), .execute = half};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
