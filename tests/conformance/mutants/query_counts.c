/* Its descriptor is not constant: the target follows the minor of the host that asks. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, NULL);
}

TW_ENTRY TW_QUERY(const tw_host_info* host);
TW_ENTRY TW_QUERY(const tw_host_info* host) {
  static tw_plugin record = {TW_SIZED(tw_plugin), TW_EPOCH,       0,    0,   TW_MINOR, TW_S("org.example.mutant"), TW_S("1.0"),
                             TW_S(TW_FLOOR_ADDS), TW_S(TW_BUILD), init, NULL};
  record.header = record.target = host->minor;
  return &record;
}
