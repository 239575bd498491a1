/* Partial runs: the time at which operations run, the values passed from part to part, refusals,
 * and the end of the run. */
#include "check.h"

/* sum = x + draw; product = sum * y + w. draw is random in each step, w is a variable, and
 * `grow` adds 1 to w once per run. */
typedef struct program {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y, draw, sum, product, taken, grown;
  const tw_operation *init, *grow, *put;
} program;

static program make(const char* container) {
  program p = {0};
  const char* options[] = {container};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  p.y = tw_scope_placeholder(s, "y", TW_FLOAT, NULL, 0);
  const int64_t zero[] = {0};
  tw_tensor* no_dims = NULL;
  OK(tw_tensor_create_copy(TW_INT32, zero, 1, NULL, 0, &no_dims));
  tw_op* draw = tw_scope_begin(s, "RandomStandardNormal", "draw");
  tw_op_add_input(draw, tw_scope_constant(s, no_dims));
  tw_tensor_release(no_dims);
  tw_op_set_type(draw, "dtype", TW_FLOAT);
  p.draw = tw_scope_end(s, draw);
  p.sum = tw_scope_name(s, "sum", tw_scope_op2(s, "AddV2", p.x, p.draw));
  const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_FLOAT, 2));
  tw_op* grow = tw_scope_begin(s, "AssignAddVariableOp", "grow");
  tw_op_add_input(grow, w);
  tw_op_add_input(grow, tw_scope_scalar(s, TW_FLOAT, 1));
  p.grow = tw_scope_end_operation(s, grow);
  tw_op* read = tw_scope_begin(s, "ReadVariableOp", "grown");
  tw_op_add_input(read, w);
  tw_op_set_type(read, "dtype", TW_FLOAT);
  tw_op_add_control(read, p.grow);
  p.grown = tw_scope_end(s, read);
  p.product = tw_scope_name(s, "product", tw_scope_op2(s, "AddV2", tw_scope_op2(s, "Mul", p.sum, p.y), p.grown));
  tw_op* queue = tw_scope_begin(s, "FIFOQueueV2", "queue");
  const uint32_t types[] = {TW_FLOAT};
  tw_op_set_types(queue, "component_types", types, 1);
  const tw_output handle = tw_scope_end(s, queue);
  tw_op* take = tw_scope_begin(s, "QueueDequeueV2", "taken");
  tw_op_add_input(take, handle);
  tw_op_set_types(take, "component_types", types, 1);
  p.taken = tw_scope_end(s, take);
  p.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, options, 1, &p.session));
  run(p.session, p.init);
  return p;
}

static void free_program(program* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

static tw_signature what(const tw_output* feeds, uint32_t n_feeds, const tw_output* fetches, uint32_t n_fetches,
                         const tw_operation* const* targets, uint32_t n_targets) {
  return (tw_signature){.size = sizeof(tw_signature),
                        .feeds = feeds,
                        .fetches = fetches,
                        .targets = targets,
                        .n_feeds = n_feeds,
                        .n_fetches = n_fetches,
                        .n_targets = n_targets};
}

static tw_partial_run* begin(const program* p) {
  const tw_output feeds[] = {p->x, p->y}, fetches[] = {p->sum, p->draw, p->product, p->grown, p->taken};
  const tw_signature whole = what(feeds, 2, fetches, 5, &p->grow, 1);
  tw_partial_run* run = NULL;
  OK(tw_partial_run_create(p->session, &whole, &run));
  return run;
}

/* Runs a part with one feed or none, and one fetch. */
static tw_status* part(tw_partial_run* run, const tw_output* feed, float value, const tw_output* fetch, const tw_run_options* options,
                       float* out) {
  const tw_signature one = what(feed, feed != NULL, fetch, fetch != NULL, NULL, 0);
  tw_tensor *in = scalar(value), *result = NULL;
  tw_status* s = tw_partial_run_run(run, &one, &in, options, &result);
  if (result) *out = *(const float*)tw_tensor_data(result);
  tw_tensor_release(result);
  tw_tensor_release(in);
  return s;
}

static void WhatOnePartComputesTheNextOnesSee(void) {
  program p = make("container=parts");
  for (int turn = 0; turn < 3; ++turn) { /* the second turn uses the plans of the first */
    tw_partial_run* run = begin(&p);
    float sum = 0, draw = 0, product = 0, grown = 0;
    CHECK(tw_partial_run_left(run) == 6);
    OK(part(run, &p.x, 10, &p.sum, NULL, &sum));
    OK(part(run, NULL, 0, &p.draw, NULL, &draw));
    CHECK(sum == 10 + draw);
    OK(part(run, &p.y, sum, &p.product, NULL, &product));
    OK(part(run, NULL, 0, &p.grown, NULL, &grown));
    CHECK(grown == 3 + (float)turn);
    CHECK(product == sum * sum + grown);
    CHECK(tw_partial_run_left(run) == 2); /* grow, which has run because others needed it, and taken */
    const tw_signature last = what(NULL, 0, NULL, 0, &p.grow, 1);
    OK(tw_partial_run_run(run, &last, NULL, NULL, NULL));
    tw_partial_run_destroy(run); /* abandoned: no element was dequeued */
  }
  free_program(&p);
}

static void AFeedThatIsMissingIsNamedAndMayStillCome(void) {
  program p = make("container=missing");
  tw_partial_run* run = begin(&p);
  float value = 0;
  FAILS(part(run, &p.y, 2, &p.product, NULL, &value), TW_INVALID_ARGUMENT, "fetch 'product' needs 'x', which no part has fed yet");
  OK(part(run, &p.y, 2, NULL, NULL, &value)); /* kept for later parts */
  FAILS(part(run, &p.y, 2, NULL, NULL, &value), TW_INVALID_ARGUMENT, "'y' is fed twice");
  OK(part(run, &p.x, 1, &p.product, NULL, &value));
  FAILS(part(run, NULL, 0, &p.product, NULL, &value), TW_INVALID_ARGUMENT, "'product' is fetched twice");
  tw_partial_run_destroy(run);
  free_program(&p);
}

static void WhatWasNotDeclaredIsRefused(void) {
  program p = make("container=undeclared");
  const tw_signature whole = what(&p.x, 1, &p.sum, 1, NULL, 0);
  tw_partial_run* run = NULL;
  OK(tw_partial_run_create(p.session, &whole, &run));
  float value = 0;
  FAILS(part(run, &p.y, 1, NULL, NULL, &value), TW_INVALID_ARGUMENT, "'y' is fed, but was not declared");
  FAILS(part(run, NULL, 0, &p.product, NULL, &value), TW_INVALID_ARGUMENT, "'product' is fetched, but was not declared");
  const tw_signature grow = what(NULL, 0, NULL, 0, &p.grow, 1);
  FAILS(tw_partial_run_run(run, &grow, NULL, NULL, NULL), TW_INVALID_ARGUMENT, "target 'grow' was not declared");
  OK(part(run, &p.x, 1, &p.sum, NULL, &value));
  FAILS(part(run, NULL, 0, NULL, NULL, &value), TW_FAILED_PRECONDITION, "all that the run was set up for has been run");
  tw_partial_run_destroy(run);
  const tw_output twice[] = {p.x, p.x};
  const tw_signature wrong = what(twice, 2, &p.sum, 1, NULL, 0);
  FAILS(tw_partial_run_create(p.session, &wrong, &run), TW_INVALID_ARGUMENT, "fed twice");
  CHECK(run == NULL);
  free_program(&p);
}

static void WhatIsNeverFedIsNamedAndEndsNothing(void) {
  program p = make("container=never");
  const tw_output fetches[] = {p.sum, p.product};
  const tw_signature whole = what(&p.x, 1, fetches, 2, NULL, 0);
  tw_partial_run* run = NULL;
  OK(tw_partial_run_create(p.session, &whole, &run));
  float value = 0;
  FAILS(part(run, &p.x, 1, &p.product, NULL, &value), TW_INVALID_ARGUMENT,
        "fetch 'product' needs 'y', which the run was not set up to feed");
  OK(part(run, &p.x, 1, &p.sum, NULL, &value));
  tw_partial_run_destroy(run);
  free_program(&p);
}

static void AFeedOfAnotherTypeIsRefusedAtOnce(void) {
  program p = make("container=types");
  tw_partial_run* run = begin(&p);
  tw_tensor* integer = NULL;
  OK(tw_tensor_create_int64(1, &integer));
  const tw_signature early = what(&p.y, 1, NULL, 0, NULL, 0);
  FAILS(tw_partial_run_run(run, &early, &integer, NULL, NULL), TW_INVALID_ARGUMENT, "the feed of 'y' is int64 but must be float");
  float value = 0;
  OK(part(run, &p.y, 1, NULL, NULL, &value));
  tw_tensor_release(integer);
  tw_partial_run_destroy(run);
  free_program(&p);
}

static void ADeadlineOrATokenEndsTheRun(void) {
  program p = make("container=ends");
  float value = 0;
  const tw_run_options late = {.size = sizeof late, .timeout_ns = 20 * 1000 * 1000};
  tw_partial_run* run = begin(&p);
  FAILS(part(run, NULL, 0, &p.taken, &late, &value), TW_DEADLINE_EXCEEDED, "taken");
  FAILS(part(run, &p.x, 1, &p.sum, NULL, &value), TW_FAILED_PRECONDITION, "an earlier part of the run has failed");
  tw_partial_run_destroy(run);
  tw_cancel_token* token = NULL;
  OK(tw_cancel_token_create(&token));
  tw_cancel_token_cancel(token);
  const tw_run_options cancelled = {.size = sizeof cancelled, .cancel = token};
  run = begin(&p);
  FAILS(part(run, &p.x, 1, &p.sum, &cancelled, &value), TW_CANCELLED, "cancelled");
  tw_partial_run_destroy(run);
  tw_cancel_token_destroy(token);
  run = begin(&p);
  OK(tw_session_close(p.session));
  FAILS(part(run, &p.x, 1, &p.sum, NULL, &value), TW_FAILED_PRECONDITION, "closed");
  free_program(&p);
  tw_partial_run_destroy(run); /* it kept the session alive */
}

MAIN(TEST(WhatOnePartComputesTheNextOnesSee), TEST(AFeedThatIsMissingIsNamedAndMayStillCome), TEST(WhatWasNotDeclaredIsRefused),
     TEST(WhatIsNeverFedIsNamedAndEndsNothing), TEST(AFeedOfAnotherTypeIsRefusedAtOnce), TEST(ADeadlineOrATokenEndsTheRun))
