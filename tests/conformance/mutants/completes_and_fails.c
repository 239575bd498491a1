/* An asynchronous kernel that ends its call and then returns an error all the same. */
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  toy_half(f);
  f->host->run->complete(f->host, f->token, NULL);
  return tw_fail(f->host, TW_INTERNAL, TW_S("it did not go well"));
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Half(float) @CPU; async"), .execute = half};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
