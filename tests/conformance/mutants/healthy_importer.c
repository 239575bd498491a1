/* A correct importer: the kit must report no fault. */
#include "toy_importer.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_importer_def d = toy_importer();
  (void)h, (void)out_instance;
  return tw_add_importer(r, &d);
}
TOY_PLUGIN(init, NULL)
