/* Makes a model of contents that it does not recognise. */
#include "toy_importer.h"

static tw_status* load(const tw_import_call* c) { return toy_build(c, 0); }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_importer_def d = toy_importer();
  (void)h, (void)out_instance;
  d.load = load;
  return tw_add_importer(r, &d);
}
TOY_PLUGIN(init, NULL)
