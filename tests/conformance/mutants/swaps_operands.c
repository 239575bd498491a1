/* Turns x - y into y - x. */
#include "toy_rewriter.h"

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  (void)user;
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_node* n = part->nodes[i];
    if (toy_is_sub(n)) toy_try(h, toy_replace(part, to, i, n->in[1], n->in[0]));
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_rewriter_def d = toy_rewriter();
  (void)h, (void)out_instance;
  d.rewrite = rewrite;
  return tw_add_rewriter(r, &d);
}
TOY_PLUGIN(init, NULL)
