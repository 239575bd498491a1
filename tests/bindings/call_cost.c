/* Prints what two calls of the C API cost in nanoseconds, the best of many rounds: tw_tensor_rank, and tw_callable_run of one addition. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <thalweg/thalweg.h>

enum { kRounds = 40, kCalls = 5000 };

static void check(tw_status* status) {
  if (!status) return;
  fprintf(stderr, "call_cost: %s\n", tw_status_message(status));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_callable* step = NULL;
  tw_tensor *one = NULL, *sum = NULL;
  const char* options[] = {"threads=1"};
  check(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), y = tw_scope_op2(s, "Add", x, x);
  check(tw_scope_finish(s));
  check(tw_session_create(graph, options, 1, &session));
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  check(tw_callable_create(session, &what, &step));
  check(tw_tensor_create_float(1, &one));
  double least_rank = 1e9, least_run = 1e9;
  uint32_t ranks = 0;
  for (int r = 0; r < kRounds; ++r) {
    double began = now();
    for (int i = 0; i < kCalls; ++i) ranks += tw_tensor_rank(one);
    const double rank = (now() - began) / kCalls;
    began = now();
    for (int i = 0; i < kCalls; ++i) {
      check(tw_callable_run(step, &one, NULL, &sum));
      tw_tensor_release(sum);
    }
    const double run = (now() - began) / kCalls;
    if (rank < least_rank) least_rank = rank;
    if (run < least_run) least_run = run;
  }
  printf("cost rank %.0f run %.0f\n", least_rank + ranks, least_run);
  tw_tensor_release(one);
  tw_callable_destroy(step);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  return 0;
}
