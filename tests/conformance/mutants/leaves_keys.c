/* A member's keys stay when the member leaves. */
#include "toy_membership.h"

static tw_status* put(const tw_host* h, void* member, const char* key, uint64_t key_len, const void* value, uint64_t bytes, uint32_t mine,
                      uint64_t expected, int64_t deadline, uint64_t* out_revision) {
  (void)mine;
  return toy_put(h, member, key, key_len, value, bytes, 0, expected, deadline, out_revision);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  d.put = put;
  return r->membership(r, &d);
}
TOY_PLUGIN(init, NULL)
