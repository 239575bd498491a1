/* Adds, besides, a node that reads itself. */
#include "toy_rewriter.h"

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_edge self = {(int32_t)part->n_nodes, 0};
    if (toy_is_sub(part->nodes[i])) toy_try(h, toy_replace(part, to, i, part->nodes[i]->in[0], self));
  }
  return toy_rewrite(h, user, part, to);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_rewriter_def d = toy_rewriter();
  (void)h, (void)out_instance;
  d.rewrite = rewrite;
  return tw_add_rewriter(r, &d);
}
TOY_PLUGIN(init, NULL)
