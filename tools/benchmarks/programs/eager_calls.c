/* What an eager call costs over its kernel: nanoseconds of one small Add, in a chain of them, for each way to run it, the median of many
 * samples. usage: eager_calls [SAMPLES [ONLY]]; ONLY: one of the names that it prints, to look at one under callgrind. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "thalweg/thalweg.h"

enum { kChain = 100, kElements = 16 };

static tw_runtime* runtime;
static tw_eager* eager;
static tw_tensor* x;

static void check(tw_status* status) {
  if (!status) return;
  fprintf(stderr, "eager_calls: %s\n", tw_status_message(status));
  exit(1);
}

/* One step of the chain: the sum of y and x, in the place of y, which is released. */
static void add(tw_tensor** y) {
  tw_tensor *inputs[] = {*y, x}, *sum;
  const tw_eager_call call = {.size = sizeof call, .op = "AddV2", .inputs = inputs, .n_inputs = 2, .n_outputs = 1};
  check(tw_eager_run(eager, &call, &sum));
  tw_tensor_release(*y);
  *y = sum;
}

static void chain(void) {
  tw_tensor* y = x;
  tw_tensor_retain(y);
  for (int i = 0; i < kChain; ++i) add(&y);
  tw_tensor_release(y);
}

static void taped_chain(void) {
  tw_tape* tape;
  check(tw_tape_create(eager, &tape));
  check(tw_tape_watch(tape, x));
  chain();
  tw_tape_destroy(tape);
}

static void differentiated_chain(void) {
  tw_tape* tape;
  tw_tensor* y = x;
  tw_tensor_retain(y);
  check(tw_tape_create(eager, &tape));
  check(tw_tape_watch(tape, x));
  for (int i = 0; i < kChain; ++i) add(&y);
  tw_tape_result g;
  check(tw_tape_gradient(tape, &y, NULL, 1, &x, 1, &g));
  tw_tensor_release(g.values);
  tw_tensor_release(y);
  tw_tape_destroy(tape);
}

static tw_callable* callable; /* of one Add, fed and fetched: what a session makes of the same step */

static void fed_chain(void) {
  tw_tensor* y = x;
  tw_tensor_retain(y);
  for (int i = 0; i < kChain; ++i) {
    tw_tensor *feeds[] = {y, x}, *sum;
    check(tw_callable_run(callable, feeds, NULL, &sum));
    tw_tensor_release(y);
    y = sum;
  }
  tw_tensor_release(y);
}

static tw_callable* whole; /* of kChain Adds in one graph: the kernels alone, but for the step round them */

static void graph_chain(void) {
  tw_tensor *feeds[] = {x, x}, *sum;
  check(tw_callable_run(whole, feeds, NULL, &sum));
  tw_tensor_release(sum);
}

static tw_callable* callable_of(int adds) {
  tw_graph* graph;
  tw_session* session;
  tw_callable* made;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {-1};
  const tw_output feeds[] = {tw_scope_placeholder(s, "y", TW_FLOAT, dims, 1), tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1)};
  tw_output y = feeds[0];
  for (int i = 0; i < adds; ++i) y = tw_scope_op2(s, "AddV2", y, feeds[1]);
  check(tw_scope_finish(s));
  check(tw_session_create(graph, NULL, 0, &session));
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &y, .n_fetches = 1};
  check(tw_callable_create(session, &what, &made));
  return made;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  return *(const double*)a < *(const double*)b ? -1 : *(const double*)a > *(const double*)b;
}

static void time_of(const char* name, void (*run)(void), int samples, const char* only) {
  if (only && strcmp(only, name) != 0) return;
  double* times = malloc((size_t)samples * sizeof *times);
  for (int i = 0; i < 3; ++i) run();
  for (int i = 0; i < samples; ++i) {
    const double begin = now_ns();
    run();
    times[i] = (now_ns() - begin) / kChain;
  }
  qsort(times, (size_t)samples, sizeof *times, by_size);
  printf("%-16s %8.1f ns an op\n", name, times[samples / 2]);
  free(times);
}

int main(int argc, char** argv) {
  const int samples = argc > 1 ? atoi(argv[1]) : 2000;
  const char *only = argc > 2 ? argv[2] : NULL, *options[] = {"threads=1"};
  if (samples < 1) return fprintf(stderr, "usage: eager_calls [SAMPLES [ONLY]]\n"), 2;
  check(tw_runtime_create(options, 1, &runtime));
  check(tw_eager_create(runtime, NULL, 0, &eager));
  const int64_t dims[] = {kElements};
  float ones[kElements];
  for (int i = 0; i < kElements; ++i) ones[i] = 1;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 1, ones, sizeof ones, &x));
  callable = callable_of(1);
  whole = callable_of(kChain);
  time_of("graph", graph_chain, samples, only);
  time_of("callable", fed_chain, samples, only);
  time_of("eager", chain, samples, only);
  time_of("tape", taped_chain, samples, only);
  time_of("gradient", differentiated_chain, samples, only);
  return 0;
}
