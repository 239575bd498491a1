/* A graph rewriter in C: x * x becomes Square(x). Programs and model files stay as they are; the
 * plans made of them have the other op. Needs only the public headers:
 *
 *     cc -std=c11 -O2 -shared -fPIC -I<prefix>/include squares.c -o libsquares.so
 *
 * `thalweg inspect --plan` shows each replacement. */
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  (void)user;
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_node* n = part->nodes[i];
    if (n->op_len != 3 || memcmp(n->op, "Mul", 3) != 0) continue;
    if (n->in[0].node != n->in[1].node || n->in[0].port != n->in[1].port) continue;
    const tw_added_node square = {TW_SIZED(tw_added_node), TW_S("Square"), NULL, n->in, 0, 1};
    const tw_added_node* const added[] = {&square};
    const tw_part_edge product = {(int32_t)i, 0}, result = {(int32_t)part->n_nodes, 0};
    const tw_substitution s = {TW_SIZED(tw_substitution), TW_S("x * x is Square(x)"), &i, added, &product, &result, 1, 1, 1, 0};
    h->status->release(to->substitute(to, &s)); /* the plan's report has the reason if Square cannot be used here */
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  const tw_rewriter_def d = {TW_SIZED(tw_rewriter_def), TW_S("squares"), NULL, rewrite};
  return tw_add_rewriter(r, &d);
}

TW_PLUGIN("org.example.squares", "1.0", init)
