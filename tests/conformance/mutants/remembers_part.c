/* Reads the part of the call before. */
#include "toy_rewriter.h"

static const tw_part* last;

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  if (last && last->n_nodes == 12345) return tw_fail(h, TW_INTERNAL, TW_S("a strange part"));
  last = part;
  return toy_rewrite(h, user, part, to);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_rewriter_def d = toy_rewriter();
  (void)h, (void)out_instance;
  d.rewrite = rewrite;
  return tw_add_rewriter(r, &d);
}
TOY_PLUGIN(init, NULL)
