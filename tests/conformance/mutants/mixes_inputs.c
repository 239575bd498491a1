/* Uses the first input of the part for every input. */
#include "toy_compiler.h"

static tw_status* compile(const tw_compile_call* c, void** out_state) {
  void* state = NULL;
  TW_TRY(toy_compile(c, &state));
  toy_program* p = state;
  for (uint32_t i = 0; i < p->n_nodes; ++i) {
    for (int k = 0; k < 2; ++k) {
      if (p->node[i].in[k].node < 0) p->node[i].in[k].port = 0;
    }
  }
  *out_state = p;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.compile = compile;
  d.serialize = NULL;
  d.load = NULL;
  d.tag = NULL;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
