/* Out of memory: programs over the whole API run again and again, each time with another one of their heap calls answering NULL, until one
 * passes untouched; and with every heap call from there on answering NULL. Each call succeeds or says RESOURCE_EXHAUSTED; nothing crashes,
 * leaks or is left broken. The heap's functions are replaced in this program alone.
 * Usage: out_of_memory_test [MOST]: at most so many points for each program and way (default 150; 0: all). */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

/* ---- The heap ---- */

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static atomic_int armed, lasting; /* lasting: every call from the chosen one on fails */
static atomic_long calls, chosen, live;
static void* where[40]; /* of the first call that failed */
static int where_n;

static int fails(void) {
  if (!atomic_load_explicit(&armed, memory_order_relaxed)) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&chosen);
  if (n < at || (n > at && !atomic_load(&lasting))) return 0;
  if (n == at) {
    const int was = atomic_exchange(&armed, 0);
    where_n = backtrace(where, 40);
    atomic_store(&armed, was);
  }
  errno = ENOMEM;
  return 1;
}
static void* counted(void* p) {
  if (p) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return p;
}

#define HEAP_CALL __attribute__((visibility("default")))
HEAP_CALL void* malloc(size_t n) { return fails() ? NULL : counted(__libc_malloc(n)); }
HEAP_CALL void* calloc(size_t n, size_t size) { return fails() ? NULL : counted(__libc_calloc(n, size)); }
HEAP_CALL void* memalign(size_t align, size_t n) { return fails() ? NULL : counted(__libc_memalign(align, n)); }
HEAP_CALL void* aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
HEAP_CALL int posix_memalign(void** out, size_t align, size_t n) {
  *out = memalign(align, n);
  return *out || n == 0 ? 0 : ENOMEM;
}
HEAP_CALL void* realloc(void* p, size_t n) {
  if (fails()) return NULL;
  return p ? __libc_realloc(p, n) : counted(__libc_realloc(p, n));
}
HEAP_CALL void free(void* p) {
  if (p) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  __libc_free(p);
}

/* ---- What the programs share ---- */

static tw_runtime* runtime;
static char folder[64];

/* The first failure of a program; what it made is NULL or right, so that one way out serves all. */
#define TRY(call)          \
  do {                     \
    status = (call);       \
    if (status) goto done; \
  } while (0)

/* A builder is NULL when memory is out. */
static tw_status* finish(tw_op* op, const tw_operation** out) {
  return op ? tw_op_finish(op, out) : tw_status_create(TW_RESOURCE_EXHAUSTED, "no builder");
}

typedef struct net {
  tw_graph* graph;
  tw_session* session;
  tw_tensor* x;
  tw_output in, w, loss;
  const tw_operation *init, *train;
} net;

static void end_net(net* n) {
  tw_session_destroy(n->session);
  tw_graph_destroy(n->graph);
  tw_tensor_release(n->x);
}

/* loss = mean((x w)^2), with `optimizer` 0 (none), 1 (SGD), 2 (momentum) or 3 (Adam). */
static tw_status* make_net(net* n, int optimizer, const char* container) {
  const int64_t dims[] = {-1, 3}, shape[] = {3, 2};
  const float values[] = {1, 2, 3, 4, 5, 6};
  const char* options[] = {container};
  tw_gradient g = {0, 0};
  tw_tensor* t = NULL;
  tw_scope* s = NULL;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &n->graph));
  TRY(tw_tensor_create_copy(TW_FLOAT, shape, 2, values, sizeof values, &t));
  s = tw_scope_create(n->graph, "net");
  n->in = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  n->w = tw_variable_create(s, "w", tw_scope_constant(s, t));
  const tw_output y = tw_scope_op2(s, "MatMul", n->in, tw_variable_read(s, n->w));
  const int32_t axes[] = {0, 1};
  n->loss = tw_scope_op2(s, "Mean", tw_scope_op1(s, "Square", y), tw_scope_ints(s, axes, 2));
  if (optimizer) tw_scope_gradients(s, n->loss, &n->w, 1, &g);
  if (optimizer == 1) n->train = tw_train_sgd(s, &n->w, &g, 1, tw_scope_scalar(s, TW_FLOAT, 0.1));
  if (optimizer == 2) n->train = tw_train_momentum(s, &n->w, &g, 1, NULL);
  if (optimizer == 3) n->train = tw_train_adam(s, &n->w, &g, 1, NULL);
  n->init = tw_variable_initializer(s, "init");
  status = tw_scope_finish(s);
  if (status) goto done;
  TRY(tw_session_create(n->graph, options, 1, &n->session));
  const int64_t fed[] = {2, 3};
  TRY(tw_tensor_create_copy(TW_FLOAT, fed, 2, values, sizeof values, &n->x));
done:
  tw_tensor_release(t);
  return status;
}

static tw_status* run_target(net* n, const tw_operation* target, tw_output fetch, tw_tensor** out) {
  const tw_signature what = {.size = sizeof what,
                             .feeds = &n->in,
                             .n_feeds = 1,
                             .fetches = &fetch,
                             .n_fetches = out != NULL,
                             .targets = &target,
                             .n_targets = target != NULL};
  return tw_session_run(n->session, &what, &n->x, NULL, out);
}

/* ---- The programs ---- */

static tw_status* a_runtime(void) {
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  tw_runtime* made = NULL;
  tw_devices* devices = NULL;
  tw_status* status = NULL;
  TRY(tw_runtime_create(options, 2, &made));
  TRY(tw_devices_create(made, &devices));
done:
  tw_devices_destroy(devices);
  tw_runtime_release(made);
  return status;
}

static tw_status* a_graph(void) {
  tw_graph* graph = NULL;
  const tw_operation* found = NULL;
  tw_output value = 0;
  uint32_t dtype = 0;
  tw_shape shape;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, "a");
  const tw_output x = tw_scope_scalar(s, TW_FLOAT, 2);
  tw_scope_name(s, "y", tw_scope_op2(s, "Add", tw_scope_op2(s, "Mul", x, x), x));
  TRY(tw_scope_finish(s));
  TRY(tw_graph_find(graph, "a/y", &found));
  TRY(tw_graph_find_output(graph, "a/y:0", &value));
  TRY(tw_graph_describe(graph, value, &dtype, &shape));
done:
  tw_graph_destroy(graph);
  return status;
}

static tw_status* attributes(void) {
  const int64_t dims[] = {2, 2};
  const char* words[] = {"SAME"};
  tw_graph* graph = NULL;
  tw_tensor* t = NULL;
  tw_buffer* text = NULL;
  const tw_operation *made = NULL, *image = NULL;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &graph));
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  tw_op* op = tw_op_create(graph, "Const", "c");
  tw_op_set_tensor(op, "value", t);
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_device(op, "CPU:0");
  TRY(finish(op, &made));
  op = tw_op_create(graph, "Placeholder", "image");
  const int64_t image_dims[] = {1, 4, 4, 1};
  tw_op_set_type(op, "dtype", TW_FLOAT);
  tw_op_set_shape(op, "shape", image_dims, 4);
  TRY(finish(op, &image));
  op = tw_op_create(graph, "MaxPool", "pool");
  const int64_t sizes[] = {1, 2, 2, 1};
  tw_op_add_input(op, tw_operation_output(image, 0));
  tw_op_set_ints(op, "ksize", sizes, 4);
  tw_op_set_ints(op, "strides", sizes, 4);
  tw_op_set_string(op, "padding", words[0], 4);
  tw_op_add_control(op, made);
  TRY(finish(op, &made));
  TRY(tw_operation_attr_text(made, "ksize", &text));
  const void* values = NULL;
  TRY(tw_operation_attr(made, "strides", NULL, NULL, NULL, &values));
done:
  tw_buffer_release(text);
  tw_tensor_release(t);
  tw_graph_destroy(graph);
  return status;
}

static tw_status* export_and_import(void) {
  net n = {0};
  tw_graph* copy = NULL;
  tw_buffer* bytes = NULL;
  const tw_import_options options = {.size = sizeof options, .prefix = "copy", .device = "CPU:0"};
  tw_status* status = NULL;
  TRY(make_net(&n, 1, "container=oom_export"));
  TRY(tw_graph_export(n.graph, &bytes));
  TRY(tw_graph_create(runtime, &copy));
  TRY(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), NULL));
  TRY(tw_graph_import(copy, tw_buffer_data(bytes), tw_buffer_bytes(bytes), &options));
done:
  tw_buffer_release(bytes);
  tw_graph_destroy(copy);
  end_net(&n);
  return status;
}

static tw_status* verify(void) {
  net n = {0};
  tw_buffer* bytes = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, 0, "container=oom_verify"));
  TRY(tw_graph_export(n.graph, &bytes));
  TRY(tw_graph_verify(runtime, tw_buffer_data(bytes), tw_buffer_bytes(bytes)));
done:
  tw_buffer_release(bytes);
  end_net(&n);
  return status;
}

static tw_status* gradients(void) {
  net n = {0};
  tw_gradient g[2] = {{0, 0}, {0, 0}};
  tw_status* status = NULL;
  TRY(make_net(&n, 0, "container=oom_gradients"));
  const tw_output xs[] = {n.in, n.w};
  TRY(tw_gradients_add(n.graph, &n.loss, NULL, 1, xs, 2, g));
  TRY(tw_gradients_add_until(n.graph, &n.loss, NULL, 1, xs, 2, &n.in, 1, g));
done:
  end_net(&n);
  return status;
}

static tw_status* steps(int optimizer, const char* container) {
  net n = {0};
  tw_tensor* out = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, optimizer, container));
  TRY(run_target(&n, n.init, 0, NULL));
  for (int i = 0; i < 2; ++i) TRY(run_target(&n, n.train, 0, NULL));
  TRY(run_target(&n, NULL, n.loss, &out));
done:
  tw_tensor_release(out);
  end_net(&n);
  return status;
}
static tw_status* a_run(void) { return steps(0, "container=oom_run"); }
static tw_status* sgd(void) { return steps(1, "container=oom_sgd"); }
static tw_status* momentum(void) { return steps(2, "container=oom_momentum"); }
static tw_status* adam(void) { return steps(3, "container=oom_adam"); }

static tw_status* a_callable(void) {
  net n = {0};
  tw_callable* callable = NULL;
  tw_tensor *out = NULL, *batch = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, 0, "container=oom_callable"));
  TRY(run_target(&n, n.init, 0, NULL));
  const tw_signature what = {.size = sizeof what, .feeds = &n.in, .n_feeds = 1, .fetches = &n.loss, .n_fetches = 1};
  TRY(tw_callable_create(n.session, &what, &callable));
  for (int64_t i = 1; i < 12; ++i) { /* more shapes than a signature has plans */
    const int64_t dims[] = {i, 3};
    TRY(tw_tensor_create(TW_FLOAT, dims, 2, &batch));
    TRY(tw_callable_run(callable, &batch, NULL, &out));
    tw_tensor_release(out);
    tw_tensor_release(batch);
    out = batch = NULL;
  }
done:
  tw_tensor_release(out);
  tw_tensor_release(batch);
  tw_callable_destroy(callable);
  end_net(&n);
  return status;
}

typedef struct ending {
  pthread_mutex_t mu;
  pthread_cond_t over;
  int waiting;
  tw_status* first;
} ending;

static void ended(void* user, tw_status* status, tw_tensor** fetches) {
  ending* e = user;
  tw_tensor_release(fetches[0]);
  pthread_mutex_lock(&e->mu);
  if (e->first)
    tw_status_release(status);
  else
    e->first = status;
  --e->waiting;
  pthread_cond_signal(&e->over);
  pthread_mutex_unlock(&e->mu);
}

static tw_status* without_waiting(void) {
  net n = {0};
  ending e = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};
  tw_cancel_token* token = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, 0, "container=oom_async"));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_cancel_token_create(&token));
  const tw_run_options options = {.size = sizeof options, .timeout_ns = 10000000000, .cancel = token};
  const tw_signature what = {.size = sizeof what, .feeds = &n.in, .n_feeds = 1, .fetches = &n.loss, .n_fetches = 1};
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&e.mu);
    ++e.waiting;
    pthread_mutex_unlock(&e.mu);
    status = tw_session_run_async(n.session, &what, &n.x, &options, ended, &e);
    if (!status) continue;
    pthread_mutex_lock(&e.mu);
    --e.waiting; /* there was no run */
    pthread_mutex_unlock(&e.mu);
    break;
  }
  pthread_mutex_lock(&e.mu);
  while (e.waiting) pthread_cond_wait(&e.over, &e.mu);
  pthread_mutex_unlock(&e.mu);
  if (status)
    tw_status_release(e.first);
  else
    status = e.first;
done:
  tw_cancel_token_destroy(token);
  end_net(&n);
  return status;
}

static const char* in_folder(const char* name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static tw_status* a_checkpoint(void) {
  const int64_t dims[] = {2, 3};
  const char* names[] = {"a", "b"};
  tw_tensor *t[2] = {NULL, NULL}, *read = NULL, *text = NULL;
  tw_checkpoint* checkpoint = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t[0]));
  TRY(tw_tensor_create_string("a text that is too long to be stored in place", 45, &t[1]));
  TRY(tw_checkpoint_write(in_folder("plain"), names, t, 2));
  TRY(tw_checkpoint_open(in_folder("plain"), &checkpoint));
  TRY(tw_checkpoint_read(checkpoint, "a", &read));
  TRY(tw_checkpoint_read(checkpoint, "b", &text));
  TRY(tw_checkpoint_verify(checkpoint, NULL));
done:
  tw_checkpoint_close(checkpoint);
  tw_tensor_release(t[0]);
  tw_tensor_release(t[1]);
  tw_tensor_release(read);
  tw_tensor_release(text);
  return status;
}

static tw_status* a_saver(void) {
  net n = {0};
  tw_saver* saver = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, 3, "container=oom_saver"));
  TRY(tw_saver_create(n.graph, NULL, 0, &saver));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_saver_save(saver, n.session, in_folder("saver")));
  TRY(tw_saver_restore(saver, n.session, in_folder("saver")));
done:
  tw_saver_destroy(saver);
  end_net(&n);
  return status;
}

static tw_status* dlpack(void) {
  const int64_t dims[] = {2, 3};
  tw_tensor *t = NULL, *back = NULL, *versioned = NULL;
  void* managed = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  TRY(tw_tensor_to_dlpack(t, &managed));
  TRY(tw_tensor_from_dlpack(managed, &back));
  TRY(tw_tensor_to_dlpack_versioned(t, &managed));
  TRY(tw_tensor_from_dlpack_versioned(managed, &versioned));
done:
  tw_tensor_release(t);
  tw_tensor_release(back);
  tw_tensor_release(versioned);
  return status;
}

static tw_status* strings(void) {
  const int64_t dims[] = {3};
  tw_tensor *t = NULL, *s = NULL;
  tw_buffer* text = NULL;
  tw_status* status = NULL;
  TRY(tw_tensor_create(TW_STRING, dims, 1, &t));
  for (uint64_t i = 0; i < 3; ++i) TRY(tw_tensor_set_string(t, i, "longer than what a string keeps in itself", 41));
  TRY(tw_tensor_create_string("another one of the longer texts", 31, &s));
  TRY(tw_tensor_text(t, 0, &text));
done:
  tw_tensor_release(t);
  tw_tensor_release(s);
  tw_buffer_release(text);
  return status;
}

static int released;
static void count_release(void* user) {
  (void)user;
  ++released;
}

static tw_status* tensors(void) {
  static _Alignas(64) float memory[6];
  const int64_t dims[] = {2, 3}, other[] = {3, 2};
  tw_tensor *from = NULL, *fixed = NULL, *shaped = NULL, *one = NULL;
  tw_buffer* text = NULL;
  tw_status* status = NULL;
  released = 0;
  status = tw_tensor_create_from(TW_FLOAT, dims, 2, memory, sizeof memory, count_release, NULL, &from);
  if (status) {
    CHECK(released == 1); /* also when the call fails */
    goto done;
  }
  TRY(tw_tensor_create_from_const(TW_FLOAT, dims, 2, memory, sizeof memory, NULL, NULL, &fixed));
  TRY(tw_tensor_reshape(from, other, 2, &shaped));
  TRY(tw_tensor_create_double(2, &one));
  TRY(tw_tensor_text(shaped, 3, &text));
done:
  tw_tensor_release(from);
  tw_tensor_release(fixed);
  tw_tensor_release(shaped);
  tw_tensor_release(one);
  tw_buffer_release(text);
  CHECK(released == 1);
  return status;
}

static tw_status* ops(void) {
  tw_ops* list = NULL;
  tw_buffer* json = NULL;
  tw_status* status = NULL;
  TRY(tw_ops_create(runtime, &list));
  for (uint32_t i = 0; i < tw_ops_count(list); i += 40) {
    TRY(tw_ops_json(list, i, &json));
    tw_buffer_release(json);
    json = NULL;
  }
done:
  tw_buffer_release(json);
  tw_ops_destroy(list);
  return status;
}

static tw_status* lists(void) {
  net n = {0};
  tw_plugins* plugins = NULL;
  tw_devices* devices = NULL;
  tw_variables* variables = NULL;
  tw_status* status = NULL;
  TRY(tw_plugins_create(runtime, &plugins));
  TRY(tw_devices_create(runtime, &devices));
  TRY(make_net(&n, 3, "container=oom_lists"));
  TRY(tw_variables_create(n.graph, &variables));
done:
  tw_plugins_destroy(plugins);
  tw_devices_destroy(devices);
  tw_variables_destroy(variables);
  end_net(&n);
  return status;
}

static void quiet(void* user, uint32_t level, const char* text, uint64_t bytes) { (void)user, (void)level, (void)text, (void)bytes; }

static tw_status* the_log(void) {
  tw_status* status = NULL;
  TRY(tw_log_set_sink(runtime, quiet, NULL, TW_LOG_DEBUG));
  TRY(tw_log_write(runtime, TW_LOG_WARNING, "a line that is longer than what a string keeps in itself"));
  status = steps(0, "container=oom_log");
done:
  tw_status_release(tw_log_set_sink(runtime, NULL, NULL, TW_LOG_DEBUG));
  return status;
}

/* What goes wrong anyway needs memory for its story. */
static tw_status* failures_told(void) {
  net n = {0};
  const tw_operation* found = NULL;
  tw_tensor* out = NULL;
  tw_status *status = NULL, *failed = NULL;
  TRY(make_net(&n, 0, "container=oom_failures"));
  failed = tw_graph_find(n.graph, "net/v", &found);
  CHECK(failed && (tw_status_code(failed) == TW_NOT_FOUND || tw_status_code(failed) == TW_RESOURCE_EXHAUSTED));
  tw_status_release(failed);
  failed = run_target(&n, NULL, n.loss, &out); /* not initialised */
  CHECK(failed && (tw_status_code(failed) == TW_FAILED_PRECONDITION || tw_status_code(failed) == TW_RESOURCE_EXHAUSTED));
  CHECK(strlen(tw_status_message(failed)) > 0);
  tw_status_release(failed);
done:
  end_net(&n);
  return status;
}

/* lost: pieces of memory that a library which knows no failing heap loses in one failure: a message that protobuf was about to add to a
 * list, the parts of a table that LevelDB was opening. */
typedef struct program {
  const char* name;
  tw_status* (*run)(void);
  long lost;
} program;
#define PROGRAM(name, lost) {#name, name, lost}
static const program programs[] = {PROGRAM(a_runtime, 0),    PROGRAM(a_graph, 0),   PROGRAM(attributes, 0), PROGRAM(export_and_import, 1),
                                   PROGRAM(verify, 1),       PROGRAM(gradients, 0), PROGRAM(a_run, 0),      PROGRAM(sgd, 0),
                                   PROGRAM(momentum, 0),     PROGRAM(adam, 0),      PROGRAM(a_callable, 0), PROGRAM(without_waiting, 0),
                                   PROGRAM(a_checkpoint, 3), PROGRAM(a_saver, 6),   PROGRAM(dlpack, 0),     PROGRAM(strings, 0),
                                   PROGRAM(tensors, 0),      PROGRAM(ops, 0),       PROGRAM(lists, 0),      PROGRAM(the_log, 0),
                                   PROGRAM(failures_told, 0)};

/* ---- The injection ---- */

static const program* running;

static void say_where(void) {
  fprintf(stderr, "  %s, heap call %ld%s, made by\n", running->name, atomic_load(&chosen),
          atomic_load(&lasting) ? " and all later ones" : "");
  backtrace_symbols_fd(where, where_n, STDERR_FILENO);
}

static void crashed(int number) {
  atomic_store(&armed, 0);
  fprintf(stderr, "  killed by signal %d\n", number);
  say_where();
  void* frames[40];
  fprintf(stderr, "  at\n");
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
  _exit(1);
}

/* The program once, with call n failing; 0: none. Answers its code. */
static uint32_t once(const program* p, long n) {
  running = p;
  where_n = 0;
  atomic_store(&calls, 0);
  atomic_store(&chosen, n);
  atomic_store(&armed, n > 0);
  tw_status* status = p->run();
  atomic_store(&armed, 0);
  const uint32_t code = tw_status_code(status);
  if (code != TW_OK && code != TW_RESOURCE_EXHAUSTED) {
    printf("  %s: %s: %s\n", p->name, tw_status_code_name(code), tw_status_message(status));
    ++failures;
    if (n) say_where();
  }
  tw_status_release(status);
  return code;
}

static long most = 150;

static long every_point(const program* p) {
  atomic_store(&calls, 0);
  atomic_store(&chosen, 0);
  once(p, 0);
  /* How many calls there are when nothing fails. */
  once(p, 1000000000);
  const long total = atomic_load(&calls), step = most && total > most ? total / most : 1;
  long points = 0;
  for (long n = 1; n <= total && failures < 3; n += step, ++points) {
    once(p, n);
    const long before = atomic_load(&live);
    once(p, n);
    const long after = atomic_load(&live);
    once(p, n); /* what is only kept for later stays the same from here on */
    long again = atomic_load(&live);
    if (again > after + p->lost) { /* a thread of the runtime may not be done with letting go */
      usleep(50000);
      again = atomic_load(&live);
    }
    if (after > before && again > after + p->lost) {
      printf("  %s: leaves %ld pieces of memory behind\n", p->name, again - after);
      say_where();
      ++failures;
    }
  }
  CHECK(once(p, 0) == TW_OK); /* whatever happened, it works */
  return points;
}

int main(int argc, char** argv) {
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  if (argc > 1) most = atol(argv[1]);
  void* frames[4];
  backtrace(frames, 4); /* loads what it needs */
  signal(SIGSEGV, crashed);
  signal(SIGABRT, crashed);
  snprintf(folder, sizeof folder, "/dev/shm/thalweg_oom_XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  OK(tw_runtime_create(options, 2, &runtime));
  int failed = 0;
  const int n_programs = (int)(sizeof programs / sizeof programs[0]);
  for (int i = 0; i < n_programs; ++i) {
    if (argc > 2 && strcmp(argv[2], programs[i].name) != 0) continue;
    for (int way = 0; way < 2; ++way) {
      atomic_store(&lasting, way);
      failures = 0;
      const long points = every_point(&programs[i]);
      printf("%s  %s: %ld points, %s\n", failures ? "FAILED" : "passed", programs[i].name, points,
             way ? "every later call fails too" : "one call fails");
      fflush(stdout);
      failed += failures > 0;
    }
  }
  tw_runtime_release(runtime);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) failed = 1;
  printf("%d programs, %d failures\n", n_programs, failed);
  return failed > 0;
}
