/* A correct rewriter: the kit must report no fault. */
#include "toy_rewriter.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_rewriter_def d = toy_rewriter();
  (void)h, (void)out_instance;
  return tw_add_rewriter(r, &d);
}
TOY_PLUGIN(init, NULL)
