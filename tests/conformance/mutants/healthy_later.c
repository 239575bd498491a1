/* Correct: written for a later minor, it calls an entry of that minor if the host's table has
 * it, and works without the entry on older hosts. */
#define THALWEG_TARGET_MINOR 2
#define THALWEG_FLOOR_MINOR 0
#include "toy.h"
#undef TW_MINOR
#define TW_MINOR 2 /* the later headers will define it */

typedef void (*later_entry)(void);

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  later_entry later;
  (void)out_instance;
  if (h->run->size >= sizeof(tw_run_api) + sizeof later) {
    memcpy(&later, (const char*)h->run + sizeof(tw_run_api), sizeof later);
    later();
  }
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
