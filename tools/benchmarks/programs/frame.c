#include "frame.h"

#include <stddef.h>
#include <string.h>

#include "thalweg_worker.h"

static const tw_operation* add(tw_scope* s, const char* type, tw_output a, tw_output b) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  const tw_output inputs[] = {a, b};
  const int list = strcmp(type, "Merge") == 0;
  if (list) tw_op_add_inputs(op, inputs, 2);
  for (int k = 0; k < 2 && !list; ++k) {
    if (inputs[k]) tw_op_add_input(op, inputs[k]);
  }
  return tw_scope_end_operation(s, op);
}

static tw_output enter(const frame* f, tw_output value, uint8_t constant) {
  tw_op* op = tw_scope_begin(f->s, "Enter", NULL);
  tw_op_add_input(op, value);
  tw_op_set_string(op, "frame_name", f->name, strlen(f->name));
  tw_op_set_bool(op, "is_constant", constant);
  tw_op_set_int(op, "parallel_iterations", f->parallel_iterations);
  return tw_scope_end(f->s, op);
}

void frame_begin(frame* f, tw_scope* s, const char* name, int64_t parallel_iterations) {
  memset(f, 0, sizeof *f);
  f->s = s;
  f->name = name;
  f->parallel_iterations = parallel_iterations;
}

tw_output frame_enter(const frame* f, tw_output value) { return enter(f, value, 1); }

tw_output frame_variable(frame* f, tw_output first) {
  if (f->n == kFrameVariables) worker_fail("a frame has at most %d variables", kFrameVariables);
  const tw_output entered = enter(f, first, 0);
  f->merges[f->n] = add(f->s, "Merge", entered, entered);
  return tw_operation_output(f->merges[f->n++], 0);
}

void frame_while(frame* f, tw_output condition) {
  const tw_output more = tw_scope_op1(f->s, "LoopCond", condition);
  for (int k = 0; k < f->n; ++k) f->switches[k] = add(f->s, "Switch", tw_operation_output(f->merges[k], 0), more);
}

tw_output frame_inside(const frame* f, int k) { return tw_scope_op1(f->s, "Identity", tw_operation_output(f->switches[k], 1)); }
void frame_next(frame* f, int k, tw_output value) { f->nexts[k] = add(f->s, "NextIteration", value, 0); }
tw_output frame_exit(const frame* f, int k) { return tw_scope_op1(f->s, "Exit", tw_operation_output(f->switches[k], 0)); }

void frame_close(const frame* f, tw_graph* graph) {
  for (int k = 0; k < f->n; ++k) check(tw_graph_close_loop(graph, f->merges[k], 1, f->nexts[k]));
}
