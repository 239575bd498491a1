/* Repeats a substitution until it is accepted. */
#include "toy_rewriter.h"

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  (void)user;
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_node* n = part->nodes[i];
    if (!toy_is_sub(n)) continue;
    for (tw_status* s; (s = toy_replace(part, to, i, n->in[0], n->in[1])) != NULL;) h->status->release(s);
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
