/* Recognises every other time it is asked. */
#include "toy_importer.h"

static tw_status* guess(const tw_host* h, void* user, const tw_model_source* s, uint32_t* out_confidence) {
  static uint32_t asked;
  (void)h, (void)user, (void)s;
  *out_confidence = asked++ % 2 ? 40 : 50;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_importer_def d = toy_importer();
  (void)h, (void)out_instance;
  d.recognise = guess;
  return tw_add_importer(r, &d);
}
TOY_PLUGIN(init, NULL)
