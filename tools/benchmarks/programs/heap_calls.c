/* Prints the number of heap calls of 100 warm training steps of a two-layer perceptron with
 * Adam, in all threads. usage: heap_calls THREADS */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "thalweg/thalweg.h"

/* Definitions in the program override those of every library in it. */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
static atomic_long calls;
void* malloc(size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_malloc(bytes); }
void* calloc(size_t n, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_calloc(n, bytes); }
void* realloc(void* old, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_realloc(old, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_memalign(alignment, bytes); }
void* memalign(size_t alignment, size_t bytes) { return atomic_fetch_add(&calls, 1), __libc_memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  atomic_fetch_add(&calls, 1);
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;
}

static void check(tw_status* status) {
  if (!status) return;
  fprintf(stderr, "heap_calls: %s\n", tw_status_message(status));
  exit(1);
}

static tw_output weights(tw_scope* s, const char* name, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  tw_tensor* initial;
  check(tw_tensor_create(TW_FLOAT, dims, 2, &initial));
  float* data = tw_tensor_mutable_data(initial);
  for (int64_t i = 0; i < rows * columns; ++i) data[i] = (float)(i % 13 - 6) * 0.01f;
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, initial));
  tw_tensor_release(initial);
  return v;
}

int main(int argc, char** argv) {
  char threads[32];
  snprintf(threads, sizeof threads, "threads=%s", argc == 2 ? argv[1] : "1");
  const char* options[] = {threads};
  tw_runtime* runtime;
  check(tw_runtime_create(options, 1, &runtime));
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t x_dims[] = {100, 784}, y_dims[] = {100};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2), tw_scope_placeholder(s, "y", TW_INT32, y_dims, 1)};
  const tw_output w[] = {weights(s, "w1", 784, 100), weights(s, "w2", 100, 10)};
  const tw_output hidden = tw_scope_op1(s, "Relu", tw_scope_op2(s, "MatMul", feeds[0], tw_variable_read(s, w[0])));
  const tw_output logits = tw_scope_op2(s, "MatMul", hidden, tw_variable_read(s, w[1]));
  const int32_t axis = 0;
  const tw_output losses = tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", logits, feeds[1]);
  const tw_output loss = tw_scope_op2(s, "Mean", losses, tw_scope_ints(s, &axis, 1));
  tw_gradient gradients[2];
  tw_scope_gradients(s, loss, w, 2, gradients);
  const tw_operation* train = tw_train_adam(s, w, gradients, 2, NULL);
  const tw_operation* init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  tw_session* session;
  check(tw_session_create(graph, NULL, 0, &session));
  const tw_signature start = {.size = sizeof start, .targets = &init, .n_targets = 1};
  check(tw_session_run(session, &start, NULL, NULL, NULL));
  tw_tensor* values[2];
  check(tw_tensor_create(TW_FLOAT, x_dims, 2, &values[0]));
  check(tw_tensor_create(TW_INT32, y_dims, 1, &values[1]));
  for (int i = 0; i < 100 * 784; ++i) ((float*)tw_tensor_mutable_data(values[0]))[i] = (float)(i % 17) * 0.05f;
  for (int i = 0; i < 100; ++i) ((int32_t*)tw_tensor_mutable_data(values[1]))[i] = i % 10;
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .targets = &train, .n_targets = 1};
  tw_callable* step;
  check(tw_callable_create(session, &what, &step));
  for (int i = 0; i < 5; ++i) check(tw_callable_run(step, values, NULL, NULL));
  const long before = atomic_load(&calls);
  for (int i = 0; i < 100; ++i) check(tw_callable_run(step, values, NULL, NULL));
  printf("%ld\n", atomic_load(&calls) - before);
  return 0;
}
