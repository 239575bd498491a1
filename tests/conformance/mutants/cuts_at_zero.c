/* A value ends at its first zero byte. */
#include "toy_membership.h"

static tw_status* put_text(tw_sink* to, const void* bytes, uint64_t n) {
  tw_sink* all = to->user;
  const char* end = n ? memchr(bytes, 0, n) : NULL;
  return all->put(all, bytes, end ? (uint64_t)(end - (const char*)bytes) : n);
}
static tw_status* get(const tw_host* h, void* member, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to,
                      uint64_t* out_revision) {
  tw_sink text = {TW_SIZED(tw_sink), to, put_text};
  return toy_get(h, member, key, key_len, deadline, &text, out_revision);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  d.get = get;
  return tw_add_membership(r, &d);
}
TOY_PLUGIN(init, NULL)
