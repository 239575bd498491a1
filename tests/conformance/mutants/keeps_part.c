/* Keeps the part, and reads its number of nodes when it runs. */
#include "toy_compiler.h"

static const tw_part* last;

static tw_status* compile(const tw_compile_call* c, void** out_state) {
  last = c->part;
  return toy_compile(c, out_state);
}

static tw_status* run(const tw_frame* f) {
  if (last->n_nodes == 12345) return tw_fail(f->host, TW_INTERNAL, TW_S("a strange part"));
  return toy_run(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.compile = compile;
  d.execute = run;
  d.serialize = NULL;
  d.load = NULL;
  d.tag = NULL;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
