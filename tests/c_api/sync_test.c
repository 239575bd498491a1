/* Synchronous training: replicas on separate threads, late, repeated, lost; backups; refusals. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stddef.h>
#include <time.h>

#include "check.h"

enum { kMost = 3, kWidth = 3, kRows = 5, kBatch = 4, kSteps = 6 };

/* loss = mean over the batch of |rows of e . w|^2: w is a dense variable, and rows of the
 * variable e are gathered. */
typedef struct replica {
  tw_graph* graph;
  tw_session* session;
  tw_output ids, reads[2];
  const tw_operation* init;
  tw_sync_ops ops;
  int number, delay_ms;
  int32_t batch[kBatch];
} replica;

static tw_output weights(tw_scope* s, const char* name, int rows) {
  const int64_t dims[] = {rows, kWidth};
  float values[kRows * kWidth];
  for (int i = 0; i < rows * kWidth; ++i) values[i] = (float)((i * 7) % 11) / 9 - 0.5f;
  tw_tensor* t = floats(dims, 2, values);
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, t));
  tw_tensor_release(t);
  return v;
}

static replica make(const char* container, int number, int replicas, int required) {
  replica r = {.number = number};
  const int64_t any[] = {-1};
  const int32_t axis = 0;
  const char* options[] = {container};
  OK(tw_graph_create(NULL, &r.graph));
  tw_scope* s = tw_scope_create(r.graph, NULL);
  r.ids = tw_scope_placeholder(s, "ids", TW_INT32, any, 1);
  const tw_output variables[] = {weights(s, "w", kWidth), weights(s, "e", kRows)};
  tw_op* gather = tw_scope_begin(s, "ResourceGather", NULL);
  tw_op_add_input(gather, variables[1]);
  tw_op_add_input(gather, r.ids);
  tw_op_set_type(gather, "dtype", TW_FLOAT);
  const tw_output product = tw_scope_op2(s, "MatMul", tw_scope_end(s, gather), tw_variable_read(s, variables[0]));
  const tw_output per_row = tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", product), tw_scope_scalar(s, TW_INT32, 1));
  const tw_output loss = tw_scope_op2(s, "Mean", per_row, tw_scope_ints(s, &axis, 1));
  tw_gradient gradients[2];
  tw_scope_gradients(s, loss, variables, 2, gradients);
  tw_sync_options sync;
  tw_sync_options_init(&sync);
  sync.replicas = (uint32_t)replicas;
  sync.required = (uint32_t)required;
  sync.replica = (uint32_t)number;
  tw_sync* begun = tw_sync_begin(s, &sync, variables, gradients, 2);
  r.ops.size = sizeof r.ops;
  tw_momentum momentum;
  tw_momentum_init(&momentum);
  momentum.learning_rate = tw_scope_scalar(s, TW_FLOAT, 0.3);
  tw_sync_end(s, begun, tw_train_momentum(s, variables, gradients, 2, &momentum), &r.ops);
  for (int k = 0; k < 2; ++k) r.reads[k] = tw_variable_read(s, variables[k]);
  r.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(r.graph, options, 1, &r.session));
  return r;
}

static void let_go(replica* r) {
  tw_session_destroy(r->session);
  tw_graph_destroy(r->graph);
}

static tw_tensor* ticket_of(int64_t stamp, int64_t step) {
  const int64_t two = 2, values[] = {stamp, step};
  tw_tensor* t = NULL;
  OK(tw_tensor_create_copy(TW_INT64, &two, 1, values, sizeof values, &t));
  return t;
}

static int64_t part(tw_tensor* ticket, int i) { return ticket ? ((const int64_t*)tw_tensor_data(ticket))[i] : -1; }

static void reset(replica* r, int64_t stamp, int64_t step) {
  tw_tensor* t = ticket_of(stamp, step);
  const tw_signature what = {.size = sizeof what, .feeds = &r->ops.ticket, .n_feeds = 1, .targets = &r->ops.reset, .n_targets = 1};
  OK(tw_session_run(r->session, &what, &t, NULL, NULL));
  tw_tensor_release(t);
}

/* Chooses the rows that a replica uses in a step. */
static void choose(replica* r, int64_t step) {
  for (int i = 0; i < kBatch; ++i) r->batch[i] = (int32_t)((step * 3 + r->number * 2 + i * i) % kRows);
}

/* Gives the gradients of the ticket's step. Returns the next ticket, or NULL after the timeout.
 * consistent: may be NULL. */
static tw_tensor* next_and(replica* r, tw_tensor* ticket, int64_t timeout_ms, int* consistent) {
  const int64_t n = kBatch;
  choose(r, part(ticket, 1));
  tw_tensor *ids = NULL, *found[2] = {NULL, NULL};
  OK(tw_tensor_create_copy(TW_INT32, &n, 1, r->batch, sizeof r->batch, &ids));
  const tw_output fed[] = {r->ids, r->ops.ticket}, fetched[] = {r->ops.next, r->ops.consistent};
  tw_tensor* values[] = {ids, ticket};
  const tw_signature what = {.size = sizeof what, .feeds = fed, .n_feeds = 2, .fetches = fetched, .n_fetches = 2};
  const tw_run_options until = {.size = sizeof until, .timeout_ns = timeout_ms * 1000 * 1000};
  tw_status* status = tw_session_run(r->session, &what, values, &until, found);
  if (tw_status_code(status) != TW_DEADLINE_EXCEEDED)
    OK(status);
  else
    tw_status_release(status);
  tw_tensor_release(ids);
  if (consistent) *consistent = found[1] ? *(const unsigned char*)tw_tensor_data(found[1]) : -1;
  tw_tensor_release(found[1]);
  return found[0];
}

static tw_tensor* next_of(replica* r, tw_tensor* ticket, int64_t timeout_ms) { return next_and(r, ticket, timeout_ms, NULL); }

static tw_tensor* current(replica* r) { return fetch(r->session, 0, NULL, r->ops.current); }

static int64_t dropped(replica* r) {
  tw_tensor* t = fetch(r->session, 0, NULL, r->ops.dropped);
  const int64_t n = part(t, 0);
  tw_tensor_release(t);
  return n;
}

static void* train(void* user) {
  replica* r = user;
  tw_tensor* ticket = current(r);
  while (ticket && part(ticket, 1) < kSteps) {
    const struct timespec pause = {0, r->delay_ms * 1000000L};
    nanosleep(&pause, NULL);
    tw_tensor* next = next_of(r, ticket, 20000);
    tw_tensor_release(ticket);
    ticket = next;
  }
  CHECK(ticket != NULL);
  tw_tensor_release(ticket);
  return NULL;
}

/* Reads all weights, concatenated. */
static void read_all(replica* r, float* out) {
  for (int k = 0; k < 2; ++k) {
    tw_tensor* t = fetch(r->session, 0, NULL, r->reads[k]);
    if (t) memcpy(out + k * kWidth * kWidth, tw_tensor_data(t), tw_tensor_bytes(t));
    tw_tensor_release(t);
  }
}
enum { kAll = (kWidth + kRows) * kWidth };

/* Trains all steps; each replica runs on a thread that waits for its delay before each step. */
static void train_with(const char* container, const int* delays, float* out) {
  replica all[kMost];
  pthread_t threads[kMost];
  for (int i = 0; i < kMost; ++i) all[i] = make(container, i, kMost, 0);
  run(all[0].session, all[0].init);
  reset(&all[0], 1000, 0);
  for (int i = 0; i < kMost; ++i) {
    all[i].delay_ms = delays[i];
    CHECK(pthread_create(&threads[i], NULL, train, &all[i]) == 0);
  }
  for (int i = 0; i < kSteps; ++i) run(all[0].session, all[0].ops.update);
  for (int i = 0; i < kMost; ++i) pthread_join(threads[i], NULL);
  CHECK(dropped(&all[0]) == 0);
  read_all(&all[0], out);
  for (int i = 0; i < kMost; ++i) let_go(&all[i]);
}

static void HoweverFastReplicasAreTheBitsAreTheSame(void) {
  float first[kAll], again[kAll], start[kAll];
  const int delays[][kMost] = {{0, 0, 0}, {7, 3, 0}, {0, 5, 9}, {4, 0, 4}};
  const char* containers[] = {"container=order0", "container=order1", "container=order2", "container=order3"};
  train_with(containers[0], delays[0], first);
  for (int i = 1; i < 4; ++i) {
    train_with(containers[i], delays[i], again);
    CHECK(memcmp(first, again, sizeof first) == 0);
  }
  replica untrained = make("container=untrained", 0, 1, 0);
  run(untrained.session, untrained.init);
  read_all(&untrained, start);
  CHECK(memcmp(first, start, sizeof first) != 0);
  let_go(&untrained);
}

/* Three replicas with one batch each give the update of one replica whose batch has all rows. */
static void ReplicasTogetherGiveTheUpdateOfTheirBatchesTogether(void) {
  replica all[kMost], whole = make("container=whole", 0, 1, 0);
  for (int i = 0; i < kMost; ++i) all[i] = make("container=parts", i, kMost, 0);
  run(whole.session, whole.init);
  run(all[0].session, all[0].init);
  reset(&whole, 10, 0);
  reset(&all[0], 10, 0);
  pthread_t threads[kMost];
  for (int i = 0; i < kMost; ++i) CHECK(pthread_create(&threads[i], NULL, train, &all[i]) == 0);
  tw_tensor* ticket = current(&whole);
  for (int step = 0; step < kSteps; ++step) {
    run(all[0].session, all[0].ops.update);
    const int64_t n = kBatch * kMost;
    int32_t rows[kBatch * kMost];
    for (int i = 0; i < kMost; ++i) {
      replica of = {.number = i};
      choose(&of, step);
      memcpy(rows + i * kBatch, of.batch, sizeof of.batch);
    }
    tw_tensor *ids = NULL, *next = NULL;
    OK(tw_tensor_create_copy(TW_INT32, &n, 1, rows, sizeof rows, &ids));
    const tw_output fed[] = {whole.ids, whole.ops.ticket};
    tw_tensor* values[] = {ids, ticket};
    const tw_signature what = {.size = sizeof what,
                               .feeds = fed,
                               .n_feeds = 2,
                               .fetches = &whole.ops.next,
                               .n_fetches = 1,
                               .targets = &whole.ops.update,
                               .n_targets = 1};
    OK(tw_session_run(whole.session, &what, values, NULL, &next)); /* one client may give gradients and update in one step */
    tw_tensor_release(ids);
    tw_tensor_release(ticket);
    ticket = next;
    CHECK(part(ticket, 0) == 11 + step && part(ticket, 1) == 1 + step);
  }
  tw_tensor_release(ticket);
  for (int i = 0; i < kMost; ++i) pthread_join(threads[i], NULL);
  float a[kAll], b[kAll];
  read_all(&whole, a);
  read_all(&all[0], b);
  for (int i = 0; i < kAll; ++i) CHECK(near(a[i], b[i], 1e-5));
  let_go(&whole);
  for (int i = 0; i < kMost; ++i) let_go(&all[i]);
}

/* Gives gradients without waiting for the update, as a new replica does. */
static void give(replica* r, tw_tensor* ticket) {
  tw_tensor_release(current(r));
  CHECK(next_of(r, ticket, 60) == NULL);
}

static void BackupsCountWhenTheyAreInTimeAndAreDroppedWhenNot(void) {
  replica all[kMost];
  for (int i = 0; i < kMost; ++i) all[i] = make("container=backup", i, kMost, 2);
  run(all[0].session, all[0].init);
  reset(&all[0], 100, 7);
  tw_tensor* first = current(&all[2]);
  CHECK(part(first, 0) == 100 && part(first, 1) == 7);
  give(&all[2], first);
  give(&all[0], first);
  run(all[0].session, all[0].ops.update); /* two of three have given gradients */
  CHECK(dropped(&all[0]) == 0);
  float with_two[kAll], later[kAll];
  read_all(&all[0], with_two);
  tw_tensor* late = next_of(&all[1], first, 5000); /* its gradients are for a finished step */
  CHECK(part(late, 0) == 101 && part(late, 1) == 8);
  CHECK(dropped(&all[0]) == 1);
  read_all(&all[0], later);
  CHECK(memcmp(with_two, later, sizeof later) == 0);
  give(&all[1], late);
  give(&all[0], late);
  give(&all[2], late); /* in time, but the two others were first */
  CHECK(dropped(&all[0]) == 2);
  run(all[0].session, all[0].ops.update);
  tw_tensor* now = current(&all[0]);
  CHECK(part(now, 0) == 102 && part(now, 1) == 9);
  tw_tensor_release(now);
  tw_tensor_release(late);
  tw_tensor_release(first);
  for (int i = 0; i < kMost; ++i) let_go(&all[i]);
}

/* Two replicas give the same update whether or not the gradients of a third, a backup, are dropped. */
static void WhoIsDroppedLeavesNoTrace(void) {
  float expected[kAll], found[kAll];
  for (int backup = 0; backup < 2; ++backup) {
    replica all[kMost];
    const int n = backup ? 3 : 2;
    for (int i = 0; i < n; ++i) all[i] = make(backup ? "container=trace1" : "container=trace0", i, n, 2);
    run(all[0].session, all[0].init);
    reset(&all[0], 5, 0);
    tw_tensor* ticket = current(&all[0]);
    for (int step = 0; step < 2; ++step) {
      give(&all[0], ticket);
      give(&all[1], ticket);
      if (backup) give(&all[2], ticket);
      run(all[0].session, all[0].ops.update);
      tw_tensor_release(ticket);
      ticket = current(&all[0]);
    }
    CHECK(dropped(&all[0]) == (backup ? 2 : 0));
    read_all(&all[0], backup ? found : expected);
    tw_tensor_release(ticket);
    for (int i = 0; i < n; ++i) let_go(&all[i]);
  }
  CHECK(memcmp(expected, found, sizeof expected) == 0);
}

static void GradientsThatAreGivenTwiceCountOnce(void) {
  float once[kAll], twice[kAll];
  for (int times = 1; times <= 2; ++times) {
    replica a = make(times == 1 ? "container=once" : "container=twice", 0, 2, 0);
    replica b = make(times == 1 ? "container=once" : "container=twice", 1, 2, 0);
    run(a.session, a.init);
    reset(&a, 1, 0);
    tw_tensor* ticket = current(&a);
    for (int i = 0; i < times; ++i) give(&a, ticket);
    const tw_signature what = {.size = sizeof what, .targets = &a.ops.update, .n_targets = 1};
    const tw_run_options until = {.size = sizeof until, .timeout_ns = 50 * 1000 * 1000};
    FAILS(tw_session_run(a.session, &what, NULL, &until, NULL), TW_DEADLINE_EXCEEDED, "");
    for (int i = 0; i < times; ++i) give(&b, ticket);
    run(a.session, a.ops.update);
    CHECK(dropped(&a) == 0);
    read_all(&a, times == 1 ? once : twice);
    tw_tensor_release(ticket);
    let_go(&a);
    let_go(&b);
  }
  CHECK(memcmp(once, twice, sizeof once) == 0);
}

/* Gives gradients and waits for the update, on a separate thread. */
typedef struct waiting {
  replica* r;
  tw_tensor *ticket, *next;
  int consistent;
} waiting;
static void* wait_for_update(void* user) {
  waiting* w = user;
  w->next = next_and(w->r, w->ticket, 20000, &w->consistent);
  return NULL;
}

/* A run's results belong to its ticket's step unless all gradients were in already, or the step
 * is over. */
static void WhoGivesOnceMoreIsToldWhetherTheUpdateMayHaveBegun(void) {
  replica a = make("container=again", 0, 2, 0), b = make("container=again", 1, 2, 0);
  run(a.session, a.init);
  reset(&a, 20, 4);
  tw_tensor* ticket = current(&b);
  CHECK(next_of(&b, ticket, 60) == NULL); /* given, and timed out before the update */
  tw_tensor_release(current(&b));
  waiting again = {.r = &b, .ticket = ticket};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_update, &again) == 0);
  const struct timespec pause = {0, 100 * 1000000L};
  nanosleep(&pause, NULL); /* the thread finds that the other's gradients are missing */
  give(&a, ticket);
  run(a.session, a.ops.update);
  pthread_join(thread, NULL);
  CHECK(part(again.next, 0) == 21 && again.consistent == 1);
  tw_tensor* stale = current(&b); /* the ticket of a step that has all gradients */
  CHECK(next_of(&b, stale, 60) == NULL);
  give(&a, stale);
  tw_tensor_release(current(&b));
  waiting late = {.r = &b, .ticket = stale};
  CHECK(pthread_create(&thread, NULL, wait_for_update, &late) == 0);
  nanosleep(&pause, NULL); /* the update may be in progress */
  run(a.session, a.ops.update);
  pthread_join(thread, NULL);
  CHECK(part(late.next, 0) == 22 && late.consistent == 0);
  int consistent = -1;
  tw_tensor* over = next_and(&a, stale, 5000, &consistent); /* the step is over; the update's token is available */
  CHECK(part(over, 0) == 22 && consistent == 0);
  tw_tensor_release(over);
  tw_tensor_release(late.next);
  tw_tensor_release(stale);
  tw_tensor_release(again.next);
  tw_tensor_release(ticket);
  let_go(&a);
  let_go(&b);
}

static void ARecordOfTheFirstVersionIsFilledAsFarAsItGoes(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 1));
  tw_gradient g = {tw_scope_scalar(s, TW_FLOAT, 1), 0};
  tw_sync* begun = tw_sync_begin(s, NULL, &v, &g, 1);
  tw_sync_ops ops = {.size = offsetof(tw_sync_ops, consistent), .consistent = 7};
  tw_sync_end(s, begun, tw_train_sgd(s, &v, &g, 1, NULL), &ops);
  OK(tw_scope_finish(s));
  CHECK(ops.size == offsetof(tw_sync_ops, consistent) && ops.next != 0 && ops.reset != NULL && ops.consistent == 7);
  tw_graph_destroy(graph);
}

static void AfterAResetWhatWasGivenBeforeIsOfNoUse(void) {
  float expected[kAll], found[kAll];
  replica a = make("container=reset", 0, 2, 0), b = make("container=reset", 1, 2, 0);
  for (int k = 0; k < 2; ++k) {
    run(a.session, a.init);
    tw_tensor* old = NULL;
    if (k == 1) {
      reset(&a, 50, 3);
      old = current(&a);
      give(&a, old); /* of step 3, whose gradients differ */
    }
    reset(&a, 60, 0);
    tw_tensor* ticket = current(&a);
    CHECK(part(ticket, 0) == 60 && part(ticket, 1) == 0);
    if (old) {
      tw_tensor* answer = next_of(&b, old, 5000); /* late, from before the reset */
      CHECK(part(answer, 0) == 60);
      CHECK(dropped(&a) == 1);
      tw_tensor_release(answer);
    }
    give(&a, ticket);
    tw_tensor* same = next_of(&b, ticket, 100); /* a token of the reset may be left; the ticket is then the same */
    CHECK(!same || part(same, 0) == 60);
    tw_tensor_release(same);
    run(a.session, a.ops.update);
    read_all(&a, k == 0 ? expected : found);
    tw_tensor_release(old);
    tw_tensor_release(ticket);
  }
  CHECK(memcmp(expected, found, sizeof expected) == 0);
  let_go(&a);
  let_go(&b);
}

static void refused(tw_sync_options options, tw_gradient g, tw_output variable, tw_scope* s, const char* why) {
  CHECK(tw_sync_begin(s, &options, &variable, &g, 1) == NULL);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, why);
}

static void WhatMakesNoSenseIsRefused(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 1)),
                  open = tw_variable_create(s, "open", tw_scope_placeholder(s, "any", TW_FLOAT, NULL, -1));
  const tw_gradient one = {tw_scope_scalar(s, TW_FLOAT, 1), 0}, none = {0, 0};
  OK(tw_scope_finish(s));
  tw_sync_options o;
  tw_sync_options_init(&o);
  tw_sync_options zero = o, more = o, other = o, flags = o;
  zero.replicas = 0;
  more.required = 2;
  other.replica = 1;
  flags.flags = 1;
  refused(zero, one, v, tw_scope_create(graph, NULL), "replicas is 0; 1 to 4096 are possible");
  refused(more, one, v, tw_scope_create(graph, NULL), "required is 2; there are 1 replicas");
  refused(other, one, v, tw_scope_create(graph, NULL), "replica is 1; they are numbered from 0");
  refused(flags, one, v, tw_scope_create(graph, NULL), "tw_sync_options_init");
  refused(o, none, v, tw_scope_create(graph, NULL), "there are no gradients");
  refused(o, one, open, tw_scope_create(graph, NULL), "variable 'open' has no known shape");
  s = tw_scope_create(graph, NULL);
  tw_gradient g = one;
  tw_sync* begun = tw_sync_begin(s, &o, &v, &g, 1);
  tw_sync_ops ops = {.size = sizeof ops, .dropped = 7};
  tw_sync_end(s, begun, NULL, &ops);
  CHECK(ops.dropped == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "apply is NULL");
  tw_graph_destroy(graph);
}

static void VariablesAreSpreadInTurnOrBySize(void) {
  tw_spread* spread = NULL;
  OK(tw_spread_create("ps", 2, TW_SPREAD_IN_TURN, &spread));
  const char* turns[] = {"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"};
  for (int i = 0; i < 3; ++i) CHECK(strcmp(tw_spread_next(spread, 8), turns[i]) == 0);
  CHECK(tw_spread_bytes(spread, 0) == 16 && tw_spread_bytes(spread, 1) == 8 && tw_spread_bytes(spread, 2) == 0);
  tw_spread_destroy(spread);
  OK(tw_spread_create("ps", 3, TW_SPREAD_BY_SIZE, &spread));
  const uint64_t sizes[] = {100, 10, 20, 15, 5, 60};
  const int places[] = {0, 1, 2, 1, 2, 1};
  for (int i = 0; i < 6; ++i) CHECK(tw_spread_next(spread, sizes[i])[strlen("/job:ps/task:")] == '0' + places[i]);
  CHECK(tw_spread_bytes(spread, 0) == 100 && tw_spread_bytes(spread, 1) == 85 && tw_spread_bytes(spread, 2) == 25);
  tw_spread_destroy(spread);
  FAILS(tw_spread_create("ps", 0, 0, &spread), TW_INVALID_ARGUMENT, "tasks is 0");
  FAILS(tw_spread_create("ps", 1, 2, &spread), TW_INVALID_ARGUMENT, "how is 2");
}

MAIN(TEST(HoweverFastReplicasAreTheBitsAreTheSame), TEST(ReplicasTogetherGiveTheUpdateOfTheirBatchesTogether),
     TEST(BackupsCountWhenTheyAreInTimeAndAreDroppedWhenNot), TEST(WhoIsDroppedLeavesNoTrace), TEST(GradientsThatAreGivenTwiceCountOnce),
     TEST(WhoGivesOnceMoreIsToldWhetherTheUpdateMayHaveBegun), TEST(ARecordOfTheFirstVersionIsFilledAsFarAsItGoes),
     TEST(AfterAResetWhatWasGivenBeforeIsOfNoUse), TEST(WhatMakesNoSenseIsRefused), TEST(VariablesAreSpreadInTurnOrBySize))
