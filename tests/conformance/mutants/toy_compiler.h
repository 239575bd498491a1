/* A graph compiler for chains of Neg and Add on the CPU, all of one known shape. */
#ifndef MUTANTS_TOY_COMPILER_H
#define MUTANTS_TOY_COMPILER_H
#include "toy.h"

enum { TOY_MOST_NODES = 16, TOY_MAGIC = 0x746f7931 };

/* The program of a part: for each node add or negate, then the outputs. An edge is (node, port),
 * or (-1, input). */
typedef struct toy_program {
  uint32_t magic, n_nodes, n_out, sum;
  uint64_t count;
  struct {
    uint32_t add;
    tw_part_edge in[2];
  } node[TOY_MOST_NODES];
  tw_part_edge out[TOY_MOST_NODES];
} toy_program;

static UNUSED int toy_is(const tw_part_node* n, const char* op) { return n->op_len == strlen(op) && memcmp(n->op, op, n->op_len) == 0; }

static UNUSED int toy_takes(const tw_part_node* n) {
  if (!toy_is(n, "Neg") && !toy_is(n, "Add")) return 0;
  for (uint32_t i = 0; i < n->n_in + n->n_out; ++i) {
    const tw_shape *a = &n->shapes[0], *b = &n->shapes[i];
    if (n->types[i] != TW_FLOAT || b->rank < 0 || a->rank != b->rank) return 0;
    for (int32_t d = 0; d < b->rank; ++d) {
      if (b->dims[d] < 0 || b->dims[d] != a->dims[d]) return 0;
    }
  }
  return 1;
}

static UNUSED int toy_reads(const tw_part_node* n, uint32_t from) {
  for (uint32_t i = 0; i < n->n_in; ++i) {
    if (n->in[i].node == (int32_t)from) return 1;
  }
  return 0;
}

/* Claims consecutive nodes, each of which reads the one before. */
static UNUSED tw_status* toy_claim(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to) {
  (void)h, (void)user, (void)device;
  for (uint32_t i = 0; i < part->n_nodes;) {
    uint32_t nodes[TOY_MOST_NODES], n = 0;
    if (!toy_takes(part->nodes[i])) {
      TW_TRY(to->refuse(to, i++, TW_S("only Neg and Add of one known shape")));
      continue;
    }
    do {
      nodes[n++] = i++;
    } while (n < TOY_MOST_NODES && i < part->n_nodes && toy_takes(part->nodes[i]) && toy_reads(part->nodes[i], i - 1));
    TW_TRY(to->take(to, nodes, n, 1));
  }
  return NULL;
}

static UNUSED uint32_t toy_sum(const toy_program* p) {
  uint32_t sum = p->n_nodes * 31 + p->n_out * 37 + (uint32_t)p->count;
  for (uint32_t i = 0; i < p->n_nodes; ++i) sum = sum * 33 + p->node[i].add;
  return sum;
}

static UNUSED tw_status* toy_compile(const tw_compile_call* c, void** out_state) {
  const tw_part* part = c->part;
  toy_program* p = calloc(1, sizeof *p);
  if (!p) return tw_fail(c->host, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a program"));
  p->magic = TOY_MAGIC;
  p->n_nodes = part->n_nodes;
  p->n_out = part->n_out;
  p->count = 1;
  for (int32_t d = 0; d < part->nodes[0]->shapes[0].rank; ++d) p->count *= (uint64_t)part->nodes[0]->shapes[0].dims[d];
  for (uint32_t i = 0; i < part->n_nodes; ++i) {
    p->node[i].add = toy_is(part->nodes[i], "Add") ? 1 : 0;
    for (uint32_t k = 0; k < part->nodes[i]->n_in; ++k) p->node[i].in[k] = part->nodes[i]->in[k];
  }
  for (uint32_t o = 0; o < part->n_out; ++o) p->out[o] = part->out[o];
  p->sum = toy_sum(p);
  *out_state = p;
  return NULL;
}

static UNUSED tw_status* toy_run(const tw_frame* f) {
  const toy_program* p = f->state;
  float* values = calloc(TOY_MOST_NODES * p->count + 1, sizeof *values);
  if (!values) return tw_fail(f->host, TW_RESOURCE_EXHAUSTED, TW_S("no memory for the values of a part"));
  for (uint32_t i = 0; i < p->n_nodes; ++i) {
    const float* in[2] = {NULL, NULL};
    for (uint32_t k = 0; k <= p->node[i].add; ++k) {
      const tw_part_edge e = p->node[i].in[k];
      in[k] = e.node < 0 ? toy_in(f, e.port) : values + (uint64_t)e.node * p->count;
    }
    float* y = values + i * p->count;
    for (uint64_t j = 0; j < p->count; ++j) y[j] = p->node[i].add ? in[0][j] + in[1][j] : -in[0][j];
  }
  for (uint32_t o = 0; o < p->n_out; ++o) {
    if (p->count) memcpy(toy_out(f, o), values + (uint64_t)p->out[o].node * p->count, p->count * sizeof *values);
  }
  free(values);
  return NULL;
}

static UNUSED void toy_discard(const tw_host* h, void* state) {
  (void)h;
  free(state);
}

static UNUSED tw_status* toy_serialize(const tw_host* h, const void* state, tw_sink* to) {
  (void)h;
  return to->put(to, state, sizeof(toy_program));
}

/* Reads up to n bytes, as many as there are. */
static UNUSED tw_status* toy_read(tw_source* from, void* p, uint64_t n, uint64_t* out_n) {
  for (*out_n = 0; *out_n < n;) {
    uint64_t got = 0;
    TW_TRY(from->get(from, (char*)p + *out_n, n - *out_n, &got));
    if (!got) break;
    *out_n += got;
  }
  return NULL;
}

static UNUSED tw_status* toy_load(const tw_compile_call* c, tw_source* from, void** out_state) {
  toy_program p;
  uint64_t n = 0;
  TW_TRY(toy_read(from, &p, sizeof p, &n));
  if (n != sizeof p || p.magic != TOY_MAGIC || p.n_nodes > TOY_MOST_NODES || p.n_out > TOY_MOST_NODES || p.sum != toy_sum(&p)) {
    return tw_fail(c->host, TW_DATA_LOSS, TW_S("it is no program of the toy, or damaged"));
  }
  toy_program* copy = malloc(sizeof p);
  if (!copy) return tw_fail(c->host, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a program"));
  *copy = p;
  *out_state = copy;
  return NULL;
}

static UNUSED tw_status* toy_tag(const tw_host* h, void* user, void* device, tw_sink* to) {
  (void)h, (void)user, (void)device;
  return to->put(to, "toy 1", 5);
}

static UNUSED tw_compiler_def toy_compiler(void) {
  const tw_compiler_def d = {TW_SIZED(tw_compiler_def),
                             TW_S("toy"),
                             TW_S("CPU"),
                             .claim = toy_claim,
                             .compile = toy_compile,
                             .execute = toy_run,
                             .destroy = toy_discard,
                             .serialize = toy_serialize,
                             .load = toy_load,
                             .tag = toy_tag};
  return d;
}
#endif
