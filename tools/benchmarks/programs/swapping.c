/* The gradient of a loop on a simulated device of little memory: the tensors that its iterations
 * keep are swapped to host memory when the device is full. device_load loads the device's plugin
 * before. */
#include <stdio.h>
#include <string.h>

#include "thalweg_worker.h"

enum { kElements = 8192, kMost = 1024, kSessions = 4 };

typedef struct loop {
  char option[64]; /* swap_memory_above=BYTES */
  prepared gradient;
} loop;

/* for (i = 0; i < n; ++i) y = (y - x) x, with y = x at first, and the gradient of y by x; x and
 * n are fed. */
static prepared make_gradient(const char* option) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {kElements};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1), tw_scope_placeholder(s, "n", TW_INT32, NULL, 0)};
  const tw_output first[] = {tw_scope_scalar(s, TW_INT32, 0), feeds[0]};
  tw_output at[2], last[2];
  tw_block *cond = tw_block_begin(s), *body = tw_block_begin(s);
  tw_block_arguments(cond, first, 2, NULL, at);
  const tw_output more = tw_scope_op2(tw_block_scope(cond), "Less", at[0], feeds[1]);
  tw_block_give(cond, &more, 1);
  tw_block_arguments(body, first, 2, NULL, at);
  tw_scope* in = tw_block_scope(body);
  tw_output next[] = {tw_scope_op2(in, "Add", at[0], tw_scope_scalar(in, TW_INT32, 1)), 0};
  tw_scope_set_device(in, "FAKE:0");
  next[1] = tw_scope_op2(in, "Mul", tw_scope_op2(in, "Sub", at[1], feeds[0]), feeds[0]);
  tw_block_give(body, next, 2);
  tw_while_loop(s, cond, body, first, 2, NULL, last);
  tw_gradient dx;
  tw_scope_gradients(s, last[1], feeds, 1, &dx);
  check(tw_scope_finish(s));
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &dx.values, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, option), &what, &p.callable));
  static float half[kElements];
  for (int k = 0; k < kElements; ++k) half[k] = 0.5f;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 1, half, sizeof half, &p.feeds[0]));
  return p;
}

static prepared* gradient_above(const char* bytes) {
  static loop made[kSessions];
  loop* l = made;
  char option[64];
  snprintf(option, sizeof option, "swap_memory_above=%s", bytes);
  while (l < made + kSessions && l->option[0] && strcmp(l->option, option) != 0) ++l;
  if (l == made + kSessions) worker_fail("there are too many sessions");
  if (!l->option[0]) {
    memcpy(l->option, option, sizeof option);
    l->gradient = make_gradient(option);
  }
  return &l->gradient;
}

static void set_length(prepared* p, int32_t n) {
  tw_tensor_release(p->feeds[1]);
  check(tw_tensor_create_copy(TW_INT32, NULL, 0, &n, sizeof n, &p->feeds[1]));
}

/* Returns true if n iterations fit into memory; fails the worker if the gradient is wrong. */
static int runs(prepared* p, int32_t n) {
  tw_tensor* dx = NULL;
  set_length(p, n);
  tw_status* failed = tw_callable_run(p->callable, p->feeds, NULL, &dx);
  if (failed) {
    if (tw_status_code(failed) != TW_RESOURCE_EXHAUSTED) check(failed);
    tw_status_release(failed);
    return 0;
  }
  float y = 0.5f, slope = 1;
  for (int32_t i = 0; i < n; ++i) {
    slope = (slope - 1) * 0.5f + (y - 0.5f);
    y = (y - 0.5f) * 0.5f;
  }
  const float found = ((const float*)tw_tensor_data(dx))[kElements - 1];
  tw_tensor_release(dx);
  if (!(found > slope - 1e-4f && found < slope + 1e-4f))
    worker_fail("%d iterations have the gradient %g, not %g", n, (double)found, (double)slope);
  return 1;
}

/* argument: the bytes. Replies with the largest number of iterations that run, up to kMost. */
void answer_swapping_longest(const char* argument) {
  prepared* p = gradient_above(argument);
  int32_t longest = 0;
  for (int32_t step = kMost; step >= 8; step /= 2) {
    if (longest + step <= kMost && runs(p, longest + step)) longest += step;
  }
  worker_reply("%d", longest);
}

/* argument: "BYTES N": replies with the time per iteration, forward and back, of N iterations. */
void answer_swapping_step(const char* argument) {
  char bytes[32];
  int n;
  if (sscanf(argument, "%31s %d", bytes, &n) != 2) worker_fail("not 'BYTES N': %s", argument);
  prepared* p = gradient_above(bytes);
  if (!runs(p, n)) worker_fail("there is no room for %d iterations", n);
  worker_reply_time(run_prepared, p, 1, 1, n);
}
