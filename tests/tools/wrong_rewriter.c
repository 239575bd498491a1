/* A graph rewriter with a fault, for the test of `thalweg debug bisect`: x * x becomes x + x. */
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  (void)user;
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_node* n = part->nodes[i];
    if (n->op_len != 3 || memcmp(n->op, "Mul", 3) != 0) continue;
    if (n->in[0].node != n->in[1].node || n->in[0].port != n->in[1].port) continue;
    const tw_added_node sum = {TW_SIZED(tw_added_node), TW_S("Add"), NULL, n->in, 0, 2};
    const tw_added_node* const added[] = {&sum};
    const tw_part_edge product = {(int32_t)i, 0}, result = {(int32_t)part->n_nodes, 0};
    const tw_substitution s = {TW_SIZED(tw_substitution), TW_S("x * x is x + x"), &i, added, &product, &result, 1, 1, 1, 0};
    h->status->release(to->substitute(to, &s));
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  const tw_rewriter_def d = {TW_SIZED(tw_rewriter_def), TW_S("wrong"), NULL, rewrite};
  return tw_add_rewriter(r, &d);
}

TW_PLUGIN("org.test.wrong_rewriter", "1.0", init)
