/* Its artefact does not record which nodes add. */
#include "toy_compiler.h"

static tw_status* serialize(const tw_host* h, const void* state, tw_sink* to) {
  toy_program p = *(const toy_program*)state;
  for (uint32_t i = 0; i < p.n_nodes; ++i) p.node[i].add = 0;
  p.sum = toy_sum(&p);
  return toy_serialize(h, &p, to);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.serialize = serialize;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
