/* A flood of cancellations. Steps wait at queues, mutexes, staging areas, barriers and
 * accumulators, or run endless loops of both kinds and in functions, some of which wait inside.
 * Most end by a token or a deadline at a random time. Every step ends soon after that, and
 * afterwards nothing is lost: each element that was added is still there or was removed once,
 * and all locks are free.
 * Environment: THALWEG_TEST_STEPS, the number of steps (default 400). */
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

#include "check.h"

enum { kAtOnce = 48, kKinds = 14 };
enum { kPut, kTake, kTakeTwo, kApply, kTakeSum, kLock, kStage, kUnstage, kInsert, kTakeMany, kLoop, kFrames, kTakeInLoop, kTakeInFrames };
static const double kLate = 1e9; /* maximum ns after the deadline or the cancellation */

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef struct weather {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  const tw_operation* targets[kKinds];
  tw_output taken[kKinds]; /* outputs of the nodes that take elements, since a step may end before a later node; 0: none is counted */
  tw_output queue_size, sum_left, staged, ready;
} weather;

static tw_op* begin(tw_scope* s, const char* op, tw_output handle) {
  tw_op* o = tw_scope_begin(s, op, NULL);
  if (handle) tw_op_add_input(o, handle);
  return o;
}
static const uint32_t kFloat[] = {TW_FLOAT};

static tw_output one(tw_scope* s) { return tw_scope_scalar(s, TW_FLOAT, 1); }

static tw_output dequeue(tw_scope* s, tw_output queue) {
  tw_op* op = begin(s, "QueueDequeueV2", queue);
  tw_op_set_types(op, "component_types", kFloat, 1);
  return tw_scope_end(s, op);
}

static tw_output named(tw_scope* s, const char* op, const char* name) {
  tw_op* o = tw_scope_begin(s, op, NULL);
  tw_op_set_string(o, "shared_name", name, strlen(name));
  if (strstr(op, "Queue") || strstr(op, "Barrier")) {
    const tw_shape scalar_shape = {NULL, 0, 0};
    tw_op_set_types(o, "component_types", kFloat, 1);
    tw_op_set_shapes(o, "shapes", &scalar_shape, 1);
  }
  if (strstr(op, "Queue")) tw_op_set_int(o, "capacity", 5);
  if (strstr(op, "Accumulator")) {
    tw_op_set_type(o, "dtype", TW_FLOAT);
    tw_op_set_shape(o, "shape", NULL, 0);
    tw_op_set_string(o, "reduction_type", "SUM", 3);
  }
  return tw_scope_end(s, o);
}

static tw_op* staging(tw_scope* s, const char* op) {
  tw_op* o = tw_scope_begin(s, op, NULL);
  tw_op_set_string(o, "shared_name", "storm stage", 11);
  tw_op_set_int(o, "capacity", 5);
  if (strcmp(op, "Stage") != 0) tw_op_set_types(o, "dtypes", kFloat, 1);
  return o;
}

/* Endless loop: x = x + (an element of the queue, or 1), in nodes of the graph. Returns the
 * loop's NextIteration. */
static const tw_operation* frames(weather* w, tw_scope* s, const char* name, tw_output queue) {
  tw_op* enter = tw_scope_begin(s, "Enter", NULL);
  tw_op_add_input(enter, one(s));
  tw_op_set_string(enter, "frame_name", name, strlen(name));
  const tw_output entered = tw_scope_end(s, enter);
  const tw_output both[] = {entered, entered};
  tw_op* merge_op = tw_scope_begin(s, "Merge", NULL);
  tw_op_add_inputs(merge_op, both, 2);
  const tw_operation* merge = tw_scope_end_operation(s, merge_op);
  const tw_output x = tw_operation_output(merge, 0);
  const tw_output ever = tw_scope_op1(s, "LoopCond", tw_scope_op2(s, "Equal", x, x));
  tw_op* choose = tw_scope_begin(s, "Switch", NULL);
  tw_op_add_input(choose, x);
  tw_op_add_input(choose, ever);
  const tw_operation* chosen = tw_scope_end_operation(s, choose);
  const tw_output inside = tw_operation_output(chosen, 1);
  tw_output more = tw_scope_op1(s, "Sign", inside);
  if (queue) {
    tw_op* q = tw_scope_begin(s, "Enter", NULL);
    tw_op_add_input(q, queue);
    tw_op_set_string(q, "frame_name", name, strlen(name));
    tw_op_set_bool(q, "is_constant", 1);
    tw_op* take = begin(s, "QueueDequeueV2", tw_scope_end(s, q));
    tw_op_set_types(take, "component_types", kFloat, 1);
    tw_op_add_control(take, chosen);
    more = tw_scope_end(s, take);
  }
  tw_op* next_op = tw_scope_begin(s, "NextIteration", NULL);
  tw_op_add_input(next_op, tw_scope_op2(s, "AddV2", inside, tw_scope_op1(s, "Sign", more)));
  const tw_operation* next = tw_scope_end_operation(s, next_op);
  OK(tw_graph_close_loop(w->graph, merge, 1, next));
  tw_op* leave = tw_scope_begin(s, "Exit", NULL);
  tw_op_add_input(leave, tw_operation_output(chosen, 0));
  return tw_scope_end_operation(s, leave);
}

/* The same as a While whose body may dequeue. */
static const tw_operation* loop(weather* w, tw_scope* s, const char* name, int takes) {
  char cond_name[40], body_name[40];
  snprintf(cond_name, sizeof cond_name, "%s_cond", name);
  snprintf(body_name, sizeof body_name, "%s_body", name);
  tw_graph* inner = NULL;
  OK(tw_graph_create_body(w->graph, &inner));
  tw_scope* b = tw_scope_create(inner, NULL);
  tw_output x = tw_scope_placeholder(b, "x", TW_FLOAT, NULL, 0);
  tw_output y = tw_scope_op2(b, "Greater", x, tw_scope_scalar(b, TW_FLOAT, 0));
  const tw_function_spec cond = {sizeof cond, 0, cond_name, &x, &y, NULL, 1, 1, 0, 0};
  OK(tw_graph_add_function(w->graph, inner, &cond, NULL));
  OK(tw_scope_finish(b));
  tw_graph_destroy(inner);
  OK(tw_graph_create_body(w->graph, &inner));
  b = tw_scope_create(inner, NULL);
  x = tw_scope_placeholder(b, "x", TW_FLOAT, NULL, 0);
  const tw_output more = takes ? dequeue(b, named(b, "FIFOQueueV2", "storm queue in loops")) : one(b);
  y = tw_scope_op2(b, "AddV2", x, tw_scope_op1(b, "Sign", more));
  const tw_function_spec body = {sizeof body, 0, body_name, &x, &y, NULL, 1, 1, 0, 0};
  OK(tw_graph_add_function(w->graph, inner, &body, NULL));
  OK(tw_scope_finish(b));
  tw_graph_destroy(inner);
  tw_op* op = tw_scope_begin(s, "While", NULL);
  const tw_output start = one(s);
  tw_op_add_inputs(op, &start, 1);
  tw_op_set_func(op, "cond", cond_name);
  tw_op_set_func(op, "body", body_name);
  return tw_scope_end_operation(s, op);
}

static void add_queues(weather* w, tw_scope* s) {
  const tw_output queue = named(s, "FIFOQueueV2", "storm queue");
  const tw_output value = one(s);
  tw_op* put = begin(s, "QueueEnqueueV2", queue);
  tw_op_add_inputs(put, &value, 1);
  w->targets[kPut] = tw_scope_end_operation(s, put);
  w->taken[kTake] = dequeue(s, queue);
  tw_op* two = begin(s, "QueueDequeueManyV2", queue);
  tw_op_add_input(two, tw_scope_scalar(s, TW_INT32, 2));
  tw_op_set_types(two, "component_types", kFloat, 1);
  w->taken[kTakeTwo] = tw_scope_end(s, two);
  w->queue_size = tw_scope_op1(s, "QueueSizeV2", queue);
}

static void add_sums(weather* w, tw_scope* s) {
  const tw_output sum = named(s, "ResourceConditionalAccumulator", "storm sum");
  tw_tensor* never = NULL;
  OK(tw_tensor_create_int64(INT64_MAX, &never));
  tw_op* apply = begin(s, "ResourceAccumulatorApplyGradient", sum);
  tw_op_add_input(apply, tw_scope_constant(s, never));
  tw_op_add_input(apply, one(s));
  tw_tensor_release(never);
  w->targets[kApply] = tw_scope_end_operation(s, apply);
  tw_op* take = begin(s, "ResourceAccumulatorTakeGradient", sum);
  tw_op_add_input(take, tw_scope_scalar(s, TW_INT32, 3));
  tw_op_set_type(take, "dtype", TW_FLOAT);
  w->taken[kTakeSum] = tw_scope_end(s, take);
  w->sum_left = tw_scope_op1(s, "ResourceAccumulatorNumAccumulated", sum);
}

static void add_others(weather* w, tw_scope* s) {
  const tw_output mutex = named(s, "MutexV2", "storm mutex"), value = one(s);
  w->targets[kLock] = tw_scope_end_operation(s, begin(s, "ConsumeMutexLock", tw_scope_op1(s, "MutexLock", mutex)));
  tw_op* stage = staging(s, "Stage");
  tw_op_add_inputs(stage, &value, 1);
  w->targets[kStage] = tw_scope_end_operation(s, stage);
  w->taken[kUnstage] = tw_scope_end(s, staging(s, "Unstage"));
  w->staged = tw_scope_end(s, staging(s, "StageSize"));
  /* Each step has its own key: the text of a random number. */
  const int64_t dims[] = {1};
  const int32_t key_dims[] = {1};
  const float values[] = {1};
  const tw_output barrier = named(s, "ResourceBarrier", "storm barrier");
  tw_op* draw = begin(s, "RandomUniform", tw_scope_ints(s, key_dims, 1));
  tw_op_set_type(draw, "dtype", TW_DOUBLE);
  tw_op* key = begin(s, "AsString", tw_scope_end(s, draw));
  tw_op_set_int(key, "precision", 17);
  tw_tensor* row = floats(dims, 1, values);
  tw_op* insert = begin(s, "ResourceBarrierInsertMany", barrier);
  tw_op_add_input(insert, tw_scope_end(s, key));
  tw_op_add_input(insert, tw_scope_constant(s, row));
  tw_op_set_int(insert, "component_index", 0);
  tw_tensor_release(row);
  w->targets[kInsert] = tw_scope_end_operation(s, insert);
  tw_op* take = begin(s, "ResourceBarrierTakeMany", barrier);
  tw_op_add_input(take, tw_scope_scalar(s, TW_INT32, 2));
  tw_op_set_types(take, "component_types", kFloat, 1);
  w->taken[kTakeMany] = tw_operation_output(tw_scope_end_operation(s, take), 2);
  w->ready = tw_scope_op1(s, "ResourceBarrierReadySize", barrier);
}

static weather open_weather(void) {
  weather w = {0};
  const char* options[] = {"threads=2"};
  const char* session_options[] = {"max_async_runs=64"};
  OK(tw_runtime_create(options, 1, &w.runtime));
  OK(tw_graph_create(w.runtime, &w.graph));
  tw_scope* s = tw_scope_create(w.graph, NULL);
  add_queues(&w, s);
  add_sums(&w, s);
  add_others(&w, s);
  w.targets[kLoop] = loop(&w, s, "loop", 0);
  w.targets[kTakeInLoop] = loop(&w, s, "taking_loop", 1);
  w.targets[kFrames] = frames(&w, s, "frames", 0);
  w.targets[kTakeInFrames] = frames(&w, s, "taking frames", named(s, "FIFOQueueV2", "storm queue in frames"));
  OK(tw_scope_finish(s));
  OK(tw_session_create(w.graph, session_options, 1, &w.session));
  return w;
}

typedef struct storm {
  atomic_long under_way, well, late, wrong;
  atomic_long done[kKinds];  /* steps that succeeded */
  atomic_long taken[kKinds]; /* the sum of the elements they removed */
} storm;

typedef struct gust {
  storm* all;
  int kind, fetches;
  _Atomic double ends; /* the time at which it must end; 0: no limit */
  tw_cancel_token* token;
  atomic_int holders; /* the run and the thread that cancels it */
} gust;

static void let_go(gust* g) {
  if (atomic_fetch_sub(&g->holders, 1) != 1) return;
  tw_cancel_token_destroy(g->token);
  free(g);
}

static long sum_of(const tw_tensor* t) {
  float sum = 0;
  for (uint64_t i = 0; i < tw_tensor_bytes(t) / sizeof sum; ++i) sum += ((const float*)tw_tensor_data(t))[i];
  return (long)sum;
}

static void over(void* user, tw_status* status, tw_tensor** fetches) {
  gust* g = user;
  storm* all = g->all;
  const double ends = atomic_load(&g->ends), at = now();
  const uint32_t code = tw_status_code(status);
  if (!status) {
    atomic_fetch_add(&all->done[g->kind], 1);
    if (g->fetches > 0) {
      atomic_fetch_add(&all->taken[g->kind], sum_of(fetches[0]));
      tw_tensor_release(fetches[0]);
    }
  } else if (code != TW_CANCELLED && code != TW_DEADLINE_EXCEEDED) {
    printf("  kind %d: %s\n", g->kind, tw_status_message(status));
    atomic_fetch_add(&all->wrong, 1);
  }
  if (ends > 0 && at > ends + kLate) atomic_fetch_add(&all->late, 1);
  tw_status_release(status);
  let_go(g);
  atomic_fetch_sub(&all->under_way, 1);
}

static void rest(double ns) { thrd_sleep(&(struct timespec){.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)ns % 1000000000}, NULL); }

static uint32_t random_number(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

static void start(const weather* w, storm* all, int kind, uint64_t* state, gust** out_cancelled) {
  gust* g = calloc(1, sizeof *g);
  g->all = all;
  g->kind = kind;
  g->fetches = w->taken[kind] != 0;
  const int endless = kind >= kLoop;
  const uint32_t how = random_number(state) % 3; /* a deadline, a token, or nothing */
  const double in = (double)(random_number(state) % 20000) * 1000;
  const int has_deadline = how == 0 || (how == 2 && endless), has_token = how == 1;
  atomic_store(&g->holders, 1 + has_token);
  OK(tw_cancel_token_create(&g->token));
  if (has_deadline) atomic_store(&g->ends, now() + in + 1);
  tw_run_options options = {.size = sizeof options, .timeout_ns = has_deadline ? (int64_t)in + 1 : 0, .cancel = g->token};
  const tw_signature what = {.size = sizeof what,
                             .fetches = &w->taken[kind],
                             .n_fetches = w->taken[kind] != 0,
                             .targets = &w->targets[kind],
                             .n_targets = w->targets[kind] != NULL};
  atomic_fetch_add(&all->under_way, 1);
  OK(tw_session_run_async(w->session, &what, NULL, &options, over, g));
  *out_cancelled = has_token ? g : NULL;
}

static void cancel(gust* g) {
  atomic_store(&g->ends, now());
  tw_cancel_token_cancel(g->token);
  let_go(g);
}

static float value_of(const weather* w, tw_output count) {
  tw_tensor* t = fetch(w->session, 0, NULL, count);
  const float n = t ? (float)*(const int32_t*)tw_tensor_data(t) : NAN;
  tw_tensor_release(t);
  return n;
}

/* Ends the waiting steps that have no token and no deadline. */
static void feed_the_rest(const weather* w, storm* all) {
  for (int i = 0; atomic_load(&all->under_way) > 0 && i < 20000; ++i) {
    const int kinds[] = {kPut, kTake, kApply, kTakeSum, kStage, kUnstage, kInsert};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
      const int kind = kinds[k];
      const tw_run_options soon = {.size = sizeof soon, .timeout_ns = 200000};
      const tw_signature what = {.size = sizeof what,
                                 .fetches = &w->taken[kind],
                                 .n_fetches = w->taken[kind] != 0,
                                 .targets = &w->targets[kind],
                                 .n_targets = w->targets[kind] != NULL};
      tw_tensor* out = NULL;
      tw_status* s = tw_session_run(w->session, &what, NULL, &soon, &out);
      if (!s) {
        atomic_fetch_add(&all->done[kind], 1);
        if (out) atomic_fetch_add(&all->taken[kind], sum_of(out));
      }
      tw_tensor_release(out);
      tw_status_release(s);
    }
  }
}

static void NothingIsLostInAStormOfCancellations(void) {
  const char* text = getenv("THALWEG_TEST_STEPS");
  const long steps = text ? atol(text) : 400;
  weather w = open_weather();
  if (!w.session) return;
  storm all = {0};
  uint64_t state = 20161102;
  gust* to_cancel[kAtOnce] = {0};
  for (long i = 0; i < steps; ++i) {
    for (int k = 0; atomic_load(&all.under_way) >= kAtOnce; ++k) {
      gust** g = &to_cancel[(size_t)random_number(&state) % kAtOnce];
      if (*g) cancel(*g);
      *g = NULL;
      if (k > kAtOnce) rest(2e5);
      if (k > 20 * kAtOnce) break; /* the others have no token and no deadline */
    }
    if (atomic_load(&all.under_way) >= kAtOnce) feed_the_rest(&w, &all);
    gust** place = &to_cancel[i % kAtOnce];
    if (*place) cancel(*place);
    start(&w, &all, (int)(random_number(&state) % kKinds), &state, place);
    if (random_number(&state) % 4 == 0) rest((double)(random_number(&state) % 300) * 1000);
  }
  for (int i = 0; i < kAtOnce; ++i) {
    if (to_cancel[i]) cancel(to_cancel[i]);
  }
  feed_the_rest(&w, &all);
  CHECK(atomic_load(&all.under_way) == 0);
  CHECK(atomic_load(&all.late) == 0);
  CHECK(atomic_load(&all.wrong) == 0);
  CHECK((float)(all.done[kPut] - all.taken[kTake] - all.taken[kTakeTwo]) == value_of(&w, w.queue_size));
  CHECK((float)(all.done[kApply] - all.taken[kTakeSum]) == value_of(&w, w.sum_left));
  CHECK((float)(all.done[kStage] - all.taken[kUnstage]) == value_of(&w, w.staged));
  CHECK((float)(all.done[kInsert] - all.taken[kTakeMany]) == value_of(&w, w.ready));
  const tw_run_options soon = {.size = sizeof soon, .timeout_ns = 1000000000};
  const tw_signature lock = {.size = sizeof lock, .targets = &w.targets[kLock], .n_targets = 1};
  OK(tw_session_run(w.session, &lock, NULL, &soon, NULL)); /* nobody holds it */
  for (int k = 0; k < kKinds; ++k) {
    if (steps >= 400 && k < kLoop) CHECK(all.done[k] > 0);
    if (k >= kLoop) CHECK(all.done[k] == 0); /* endless loops never succeed */
  }
  tw_session_destroy(w.session);
  tw_graph_destroy(w.graph);
  tw_runtime_release(w.runtime);
}

MAIN(TEST(NothingIsLostInAStormOfCancellations))
