/* Makes another model of the same file each time. */
#include "toy_importer.h"

static tw_status* load(const tw_import_call* c) {
  static int loads;
  if (!toy_is_model(c->source)) return tw_fail(c->host, TW_INVALID_ARGUMENT, TW_S("no toy model"));
  return toy_build(c, loads++);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_importer_def d = toy_importer();
  (void)h, (void)out_instance;
  d.load = load;
  return tw_add_importer(r, &d);
}
TOY_PLUGIN(init, NULL)
