/* A watch reports all keys, whatever their prefix. */
#include "toy_membership.h"

static tw_status* watch(const tw_host* h, void* member, const char* prefix, uint64_t len, void (*change)(void* arg, const tw_change* c),
                        void* arg, void** out_watch) {
  (void)len;
  return toy_watch_keys(h, member, prefix, 0, change, arg, out_watch);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  d.watch = watch;
  return tw_add_membership(r, &d);
}
TOY_PLUGIN(init, NULL)
