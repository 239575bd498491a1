/* Loops written with the primitives of TensorFlow's v1 control flow: Enter, Merge, Switch,
 * NextIteration, Exit. The order of the calls:
 *     frame f;
 *     frame_begin(&f, s, "loop", 10);
 *     x = frame_enter(&f, outside);                   the same in all iterations
 *     i = frame_variable(&f, first); ...              as seen by the condition
 *     frame_while(&f, condition);
 *     frame_next(&f, 0, of(frame_inside(&f, 0))); ...
 *     last = frame_exit(&f, 0); tw_scope_finish(s); frame_close(&f, graph); */
#ifndef THALWEG_BENCHMARKS_FRAME_H
#define THALWEG_BENCHMARKS_FRAME_H
#include "thalweg/thalweg.h"

enum { kFrameVariables = 4 };

typedef struct frame {
  tw_scope* s;
  const char* name;
  int64_t parallel_iterations;
  int n;
  const tw_operation *merges[kFrameVariables], *switches[kFrameVariables], *nexts[kFrameVariables];
} frame;

void frame_begin(frame* f, tw_scope* s, const char* name, int64_t parallel_iterations);
tw_output frame_enter(const frame* f, tw_output value);
tw_output frame_variable(frame* f, tw_output first);
void frame_while(frame* f, tw_output condition);
tw_output frame_inside(const frame* f, int k);
void frame_next(frame* f, int k, tw_output value);
tw_output frame_exit(const frame* f, int k);
void frame_close(const frame* f, tw_graph* graph);

#endif
