/* Sessions: feeding, fetching, callables, early ends, closing, threads, and use after failures. */
#include <pthread.h>

#include "check.h"

/* y = x * w + 1 over floats of any length, w a variable that starts at 2; `grow` adds 1 to w. */
typedef struct line {
  tw_graph* graph;
  tw_session* session;
  tw_output x, product, y;
  const tw_operation *init, *grow;
} line;

static line new_line(const char* const* options, uint32_t n) {
  line l = {0};
  const int64_t dims[] = {-1};
  OK(tw_graph_create(NULL, &l.graph));
  tw_scope* s = tw_scope_create(l.graph, NULL);
  l.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_FLOAT, 2));
  l.product = tw_scope_name(s, "product", tw_scope_op2(s, "Mul", l.x, tw_variable_read(s, w)));
  l.y = tw_scope_name(s, "y", tw_scope_op2(s, "Add", l.product, tw_scope_scalar(s, TW_FLOAT, 1)));
  tw_op* grow = tw_scope_begin(s, "AssignAddVariableOp", "grow");
  tw_op_add_input(grow, w);
  tw_op_add_input(grow, tw_scope_scalar(s, TW_FLOAT, 1));
  l.grow = tw_scope_end_operation(s, grow);
  l.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(l.graph, options, n, &l.session));
  return l;
}

static void free_line(line* l) {
  tw_session_destroy(l->session);
  tw_graph_destroy(l->graph);
}

/* A separate container isolates the tests, which share the default runtime. */
static line own_line(const char* container) {
  const char* options[] = {container};
  line l = new_line(options, 1);
  run(l.session, l.init);
  return l;
}

static void AnyEdgeMayBeFedAndFetched(void) {
  line l = own_line("container=edges");
  const int64_t two[] = {2};
  const float values[] = {3, 4}, product[] = {10, 20};
  tw_tensor *x = floats(two, 1, values), *p = floats(two, 1, product), *t = fetch(l.session, l.x, x, l.y);
  CHECK(t && ((const float*)tw_tensor_data(t))[0] == 7 && ((const float*)tw_tensor_data(t))[1] == 9);
  tw_tensor_release(t);
  t = fetch(l.session, l.product, p, l.y);
  CHECK(t && ((const float*)tw_tensor_data(t))[1] == 21);
  tw_tensor_release(t);
  t = fetch(l.session, l.x, x, l.x);
  CHECK(t && ((const float*)tw_tensor_data(t))[1] == 4);
  tw_tensor_release(t);
  tw_tensor_release(x);
  tw_tensor_release(p);
  free_line(&l);
}

static void TargetsChangeStateThatLaterStepsSee(void) {
  line l = own_line("container=targets");
  const int64_t one[] = {1};
  const float value = 1;
  tw_tensor* x = floats(one, 1, &value);
  run(l.session, l.grow);
  run(l.session, l.grow);
  CHECK(as_float(fetch(l.session, l.x, x, l.y)) == 5);
  tw_tensor_release(x);
  free_line(&l);
}

static void WrongRunsAreRefusedAndTheSessionGoesOn(void) {
  line l = own_line("container=wrong");
  tw_tensor *integer = NULL, *out[2] = {NULL, NULL}, *none = NULL, *f = scalar(1);
  const int64_t one[] = {1};
  const float value = 1;
  tw_tensor* x = floats(one, 1, &value);
  OK(tw_tensor_create_int32(3, &integer));
  const tw_output y2[] = {l.y, 0}, x2[] = {l.x, l.x};
  tw_signature what = {.size = sizeof what, .feeds = &l.x, .n_feeds = 1, .fetches = &l.y, .n_fetches = 1};
  FAILS(tw_session_run(l.session, &what, &integer, NULL, out), TW_INVALID_ARGUMENT, "x");
  FAILS(tw_session_run(l.session, &what, &f, NULL, out), TW_INVALID_ARGUMENT, "x");
  FAILS(tw_session_run(l.session, &what, &none, NULL, out), TW_INVALID_ARGUMENT, "feed 0 is NULL");
  FAILS(tw_session_run(l.session, &what, NULL, NULL, out), TW_INVALID_ARGUMENT, "feeds is NULL");
  FAILS(tw_session_run(l.session, &what, &x, NULL, NULL), TW_INVALID_ARGUMENT, "out_fetches is NULL");
  what.n_feeds = 0;
  FAILS(tw_session_run(l.session, &what, NULL, NULL, out), TW_INVALID_ARGUMENT, "x");
  what.n_feeds = 1;
  what.fetches = y2;
  what.n_fetches = 2;
  out[0] = f;
  FAILS(tw_session_run(l.session, &what, &x, NULL, out), TW_INVALID_ARGUMENT, "fetch 1");
  CHECK(out[0] == NULL && out[1] == NULL);
  what.n_fetches = 1;
  what.feeds = x2;
  what.n_feeds = 2;
  tw_tensor* twice[] = {x, x};
  FAILS(tw_session_run(l.session, &what, twice, NULL, out), TW_INVALID_ARGUMENT, "x");
  what.size = 8;
  FAILS(tw_session_run(l.session, &what, twice, NULL, out), TW_INVALID_ARGUMENT, "tw_signature");
  CHECK(as_float(fetch(l.session, l.x, x, l.y)) == 3);
  tw_tensor_release(integer);
  tw_tensor_release(f);
  tw_tensor_release(x);
  free_line(&l);
}

static void AnUninitialisedVariableIsNamed(void) {
  const char* options[] = {"container=never"};
  line l = new_line(options, 1);
  const int64_t one[] = {1};
  const float value = 1;
  tw_tensor *x = floats(one, 1, &value), *out = NULL;
  const tw_signature what = {.size = sizeof what, .feeds = &l.x, .n_feeds = 1, .fetches = &l.y, .n_fetches = 1};
  FAILS(tw_session_run(l.session, &what, &x, NULL, &out), TW_FAILED_PRECONDITION, "w");
  run(l.session, l.init);
  CHECK(as_float(fetch(l.session, l.x, x, l.y)) == 3);
  tw_tensor_release(x);
  free_line(&l);
}

static void CallablesRunWhatWasPrepared(void) {
  line l = own_line("container=callable");
  tw_callable* callable = NULL;
  const tw_output fetches[] = {l.product, l.y};
  const tw_signature what = {.size = sizeof what, .feeds = &l.x, .n_feeds = 1, .fetches = fetches, .n_fetches = 2};
  OK(tw_callable_create(l.session, &what, &callable));
  for (int64_t n = 1; n < 40; ++n) {
    float values[40];
    for (int64_t i = 0; i < n; ++i) values[i] = (float)i;
    tw_tensor *x = floats(&n, 1, values), *out[2];
    OK(tw_callable_run(callable, &x, NULL, out));
    CHECK(tw_tensor_dim(out[1], 0) == n && ((const float*)tw_tensor_data(out[1]))[n - 1] == 2 * (float)(n - 1) + 1);
    tw_tensor_release(out[0]);
    tw_tensor_release(out[1]);
    tw_tensor_release(x);
  }
  tw_callable_destroy(callable);
  tw_tensor* out[2];
  const tw_signature unfed = {.size = sizeof unfed, .fetches = fetches, .n_fetches = 2};
  OK(tw_callable_create(l.session, &unfed, &callable));
  FAILS(tw_callable_run(callable, NULL, NULL, out), TW_INVALID_ARGUMENT, "'x'");
  tw_callable_destroy(callable);
  free_line(&l);
}

static void TheGraphMayGrowUnderASession(void) {
  line l = own_line("container=grow");
  const int64_t one[] = {1};
  const float value = 3;
  tw_tensor* x = floats(one, 1, &value);
  CHECK(as_float(fetch(l.session, l.x, x, l.y)) == 7);
  tw_scope* s = tw_scope_create(l.graph, "later");
  const tw_output z = tw_scope_op1(s, "Neg", l.y);
  OK(tw_scope_finish(s));
  CHECK(as_float(fetch(l.session, l.x, x, z)) == -7);
  tw_tensor_release(x);
  free_line(&l);
}

static void AClosedSessionRefusesToRun(void) {
  line l = own_line("container=closed");
  tw_callable* callable = NULL;
  const int64_t one[] = {1};
  const float value = 3;
  tw_tensor *x = floats(one, 1, &value), *out = NULL;
  const tw_signature what = {.size = sizeof what, .feeds = &l.x, .n_feeds = 1, .fetches = &l.y, .n_fetches = 1};
  OK(tw_callable_create(l.session, &what, &callable));
  OK(tw_session_close(l.session));
  OK(tw_session_close(l.session));
  FAILS(tw_session_run(l.session, &what, &x, NULL, &out), TW_FAILED_PRECONDITION, "closed");
  FAILS(tw_callable_run(callable, &x, NULL, &out), TW_FAILED_PRECONDITION, "closed");
  tw_session_destroy(l.session);
  tw_callable_destroy(callable); /* may be destroyed after the session */
  tw_graph_destroy(l.graph);
  tw_tensor_release(x);
}

static void ACancelledTokenStopsRuns(void) {
  line l = own_line("container=cancel");
  tw_cancel_token* token = NULL;
  const int64_t one[] = {1};
  const float value = 3;
  tw_tensor *x = floats(one, 1, &value), *out = NULL;
  OK(tw_cancel_token_create(&token));
  const tw_signature what = {.size = sizeof what, .feeds = &l.x, .n_feeds = 1, .fetches = &l.y, .n_fetches = 1};
  tw_run_options options = {.size = sizeof options, .timeout_ns = 60000000000, .cancel = token};
  OK(tw_session_run(l.session, &what, &x, &options, &out));
  tw_tensor_release(out);
  CHECK(tw_cancel_token_cancelled(token) == 0);
  tw_cancel_token_cancel(token);
  CHECK(tw_cancel_token_cancelled(token) == 1);
  FAILS(tw_session_run(l.session, &what, &x, &options, &out), TW_CANCELLED, "");
  tw_cancel_token_destroy(token);
  options.cancel = NULL;
  OK(tw_session_run(l.session, &what, &x, &options, &out));
  tw_tensor_release(out);
  options.timeout_ns = -1;
  FAILS(tw_session_run(l.session, &what, &x, &options, &out), TW_INVALID_ARGUMENT, "timeout_ns");
  options.size = 1;
  FAILS(tw_session_run(l.session, &what, &x, &options, &out), TW_INVALID_ARGUMENT, "tw_run_options");
  tw_tensor_release(x);
  free_line(&l);
}

static void ATimeoutEndsALongStep(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  const int64_t dims[] = {128, 128};
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  tw_output y = x;
  for (int i = 0; i < 200; ++i) y = tw_scope_op2(s, "MatMul", y, x);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  tw_tensor *t = NULL, *out = NULL;
  OK(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  const tw_run_options options = {.size = sizeof options, .timeout_ns = 100000};
  FAILS(tw_session_run(session, &what, &t, &options, &out), TW_DEADLINE_EXCEEDED, "");
  out = NULL;
  OK(tw_session_run(session, &what, &t, NULL, &out));
  tw_tensor_release(out);
  tw_tensor_release(t);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void* hammer(void* arg) {
  line* l = arg;
  const int64_t one[] = {1};
  const float value = 0;
  tw_tensor* x = floats(one, 1, &value);
  for (int i = 0; i < 200; ++i) {
    run(l->session, l->grow);
    CHECK(as_float(fetch(l->session, l->x, x, l->y)) == 1);
  }
  tw_tensor_release(x);
  return NULL;
}

static void ThreadsShareASession(void) {
  line l = own_line("container=threads");
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, hammer, &l) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  const int64_t one[] = {1};
  const float value = 1;
  tw_tensor* x = floats(one, 1, &value);
  CHECK(as_float(fetch(l.session, l.x, x, l.product)) == 802); /* no update was partial */
  tw_tensor_release(x);
  free_line(&l);
}

static void OptionsAreListedAndChecked(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  const tw_option *option, *engine = NULL, *pass = NULL;
  OK(tw_graph_create(NULL, &graph));
  for (uint32_t i = 0; (option = tw_session_option(i)); ++i) {
    CHECK(option->size >= sizeof(tw_option) && *option->name && option->default_value && *option->doc);
    if (!strcmp(option->name, "engine")) engine = option;
    if (!strcmp(option->name, "disable_pass")) pass = option;
  }
  CHECK(engine && engine->kind == TW_OPTION_CHOICE && engine->n_choices == 3 && !strcmp(engine->choices[0], "auto"));
  CHECK(pass && pass->repeats == 1 && pass->n_choices > 0 && tw_session_option(1000) == NULL);
  const char* wrong[] = {"threads=many", "colour=red", "threads", NULL};
  const char* parts[] = {"many", "colour", "key=value", "NULL"};
  for (int i = 0; i < 4; ++i) FAILS(tw_session_create(graph, &wrong[i], 1, &session), TW_INVALID_ARGUMENT, parts[i]);
  const char* right[] = {"threads=1", "optimize=false"};
  OK(tw_session_create(graph, right, 2, &session));
  tw_graph_destroy(graph); /* the session keeps what it needs alive */
  tw_session_destroy(session);
}

/* The sizes of the results are known, those of an input are not: only a step can detect that the
 * input does not fit. */
static void AFeedThatDoesNotFitIsRefusedUnderThePlanForAnyShape(void) {
  const int64_t any[] = {-1, 4}, column[] = {3, 1}, right[] = {3, 4}, wrong[] = {2, 4};
  const float values[12] = {0};
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, any, 2), tw_scope_placeholder(s, "z", TW_FLOAT, column, 2)};
  const tw_output fixed[] = {feeds[0], tw_scope_placeholder(s, "w", TW_FLOAT, right, 2)};
  const tw_output sum = tw_scope_op1(s, "Neg", tw_scope_op2(s, "Add", feeds[0], feeds[1]));
  const tw_output pack = tw_scope_op1(s, "Neg", tw_scope_op(s, "Pack", fixed, 2));
  OK(tw_scope_finish(s));
  const char* options[] = {"max_shape_plans=1"};
  OK(tw_session_create(graph, options, 1, &session));
  tw_tensor *x = floats(right, 2, values), *bad = floats(wrong, 2, values), *z = floats(column, 2, values), *out = NULL;
  for (int i = 0; i < 2; ++i) {
    tw_tensor *good_values[] = {x, i ? x : z}, *bad_values[] = {bad, i ? x : z};
    const tw_signature what = {.size = sizeof what, .feeds = i ? fixed : feeds, .n_feeds = 2, .fetches = i ? &pack : &sum, .n_fetches = 1};
    OK(tw_session_run(session, &what, good_values, NULL, &out));
    tw_tensor_release(out);
    FAILS(tw_session_run(session, &what, bad_values, NULL, &out), TW_INVALID_ARGUMENT, i ? "[2, 4]" : "do not broadcast");
    OK(tw_session_run(session, &what, good_values, NULL, &out));
    tw_tensor_release(out);
  }
  tw_tensor_release(x);
  tw_tensor_release(bad);
  tw_tensor_release(z);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

MAIN(TEST(AnyEdgeMayBeFedAndFetched), TEST(TargetsChangeStateThatLaterStepsSee), TEST(WrongRunsAreRefusedAndTheSessionGoesOn),
     TEST(AnUninitialisedVariableIsNamed), TEST(CallablesRunWhatWasPrepared), TEST(TheGraphMayGrowUnderASession),
     TEST(AClosedSessionRefusesToRun), TEST(ACancelledTokenStopsRuns), TEST(ATimeoutEndsALongStep), TEST(ThreadsShareASession),
     TEST(OptionsAreListedAndChecked), TEST(AFeedThatDoesNotFitIsRefusedUnderThePlanForAnyShape))
