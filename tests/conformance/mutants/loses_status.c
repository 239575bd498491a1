/* Its init requests a setting that does not exist, and never releases the returned status. */
#include "toy.h"

static tw_status* put(tw_sink* s, const void* bytes, uint64_t len) {
  (void)s, (void)bytes, (void)len;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_sink nowhere = {TW_SIZED(tw_sink), NULL, put};
  (void)out_instance;
  (void)h->setting(h, TW_S("nowhere"), &nowhere);
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
