/* A graph rewriter for floats: x - y becomes x + (-y). */
#ifndef MUTANTS_TOY_REWRITER_H
#define MUTANTS_TOY_REWRITER_H
#include "toy.h"

static UNUSED int toy_is_sub(const tw_part_node* n) { return n->op_len == 3 && memcmp(n->op, "Sub", 3) == 0 && n->types[0] == TW_FLOAT; }

/* Replaces node i of the part. negated, kept: its inputs; the result is kept + (-negated). */
static UNUSED tw_status* toy_replace(const tw_part* part, tw_rewriting* to, uint32_t i, tw_part_edge kept, tw_part_edge negated) {
  const tw_part_edge sum[2] = {kept, {(int32_t)part->n_nodes, 0}};
  const tw_added_node neg = {TW_SIZED(tw_added_node), TW_S("Neg"), NULL, &negated, 0, 1};
  const tw_added_node add = {TW_SIZED(tw_added_node), TW_S("Add"), NULL, sum, 0, 2};
  const tw_added_node* added[2] = {&neg, &add};
  const tw_part_edge old_value = {(int32_t)i, 0}, new_value = {(int32_t)part->n_nodes + 1, 0};
  const tw_substitution s = {TW_SIZED(tw_substitution), TW_S("x - y is x + (-y)"), &i, added, &old_value, &new_value, 1, 2, 1, 0};
  return to->substitute(to, &s);
}

/* Releases the failure of a substitution that this plan refuses. */
static UNUSED void toy_try(const tw_host* h, tw_status* s) { h->status->release(s); }

static UNUSED tw_status* toy_rewrite(const tw_host* h, void* user, const tw_part* part, tw_rewriting* to) {
  (void)user;
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    const tw_part_node* n = part->nodes[i];
    if (toy_is_sub(n)) toy_try(h, toy_replace(part, to, i, n->in[0], n->in[1]));
  }
  return NULL;
}

static UNUSED tw_rewriter_def toy_rewriter(void) {
  const tw_rewriter_def d = {TW_SIZED(tw_rewriter_def), TW_S("sums"), NULL, toy_rewrite};
  return d;
}
#endif
