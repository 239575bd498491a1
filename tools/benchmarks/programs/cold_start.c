/* Times the start of a process up to the first step of a graph of 100 nodes, with all defaults.
 * usage: cold_start [wait]; with `wait` it stays until standard input ends, so that its memory
 * can be read. */
#include <stdio.h>

#include "thalweg/thalweg.h"

static int fail(tw_status* status) {
  if (status) fprintf(stderr, "cold_start: %s\n", tw_status_message(status));
  return status != NULL;
}

int main(int argc, char** argv) {
  (void)argv;
  tw_graph* graph;
  tw_session* session;
  tw_tensor *one, *sum;
  if (fail(tw_graph_create(NULL, &graph))) return 1;
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_output y = x;
  for (int i = 1; i < 100; ++i) y = tw_scope_op2(s, "AddV2", y, x);
  if (fail(tw_scope_finish(s)) || fail(tw_session_create(graph, NULL, 0, &session)) || fail(tw_tensor_create_float(1, &one))) return 1;
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  if (fail(tw_session_run(session, &what, &one, NULL, &sum))) return 1;
  const int right = *(const float*)tw_tensor_data(sum) == 100;
  if (argc > 1) {
    puts("ready");
    fflush(stdout);
    getchar();
  }
  tw_tensor_release(sum);
  tw_tensor_release(one);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return !right;
}
