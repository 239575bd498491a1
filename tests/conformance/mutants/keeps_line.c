/* Its init makes a timeline and never releases it. */
#include "thalweg/plugin/timeline.h"
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_timeline_set* set = (const tw_timeline_set*)h->query(h, TW_S(TW_TIMELINE_SET), 1);
  tw_timeline* line = NULL;
  (void)out_instance;
  TW_TRY(set->create(h, &line));
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
