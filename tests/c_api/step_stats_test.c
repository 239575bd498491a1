/* Step statistics from C: the records of a run, older records of run options, JSON. */
#include <stddef.h>

#include "check.h"

typedef struct program {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y;
} program;

/* y = Neg(x . x) */
static program new_program(void) {
  program p = {0};
  const int64_t dims[] = {2, 2};
  const char* options[] = {"threads=1"};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  p.y = tw_scope_op1(s, "Neg", tw_scope_op2(s, "MatMul", p.x, p.x));
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, options, 1, &p.session));
  return p;
}

static tw_status* run_with(program* p, const tw_run_options* options) {
  const int64_t dims[] = {2, 2};
  const float ones[] = {1, 1, 1, 1};
  tw_tensor *x = floats(dims, 2, ones), *y = NULL;
  const tw_signature what = {.size = sizeof what, .feeds = &p->x, .fetches = &p->y, .n_feeds = 1, .n_fetches = 1};
  tw_status* s = tw_session_run(p->session, &what, &x, options, &y);
  tw_tensor_release(x);
  tw_tensor_release(y);
  return s;
}

static void free_program(program* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

static void ARunFillsTheObjectThatItIsGiven(void) {
  program p = new_program();
  tw_step_stats* stats = NULL;
  OK(tw_step_stats_create(&stats));
  const tw_run_options options = {.size = sizeof options, .stats = stats};
  CHECK(tw_step_stats_node_count(stats) == 0 && tw_step_stats_total(stats)->total_ns == 0);
  OK(run_with(&p, &options));
  const tw_step_total* total = tw_step_stats_total(stats);
  CHECK(total->size == sizeof *total && total->nodes == 2 && total->threads == 1 && (total->flags & TW_STEP_PLANNED));
  CHECK(total->total_ns > total->plan_ns && total->plan_ns > 0 && total->allocated_bytes == 16);
  const tw_step_node *product = tw_step_stats_node(stats, 0), *negative = tw_step_stats_node(stats, 1);
  CHECK(product && !strcmp(product->op, "MatMul") && !strcmp(product->name, "MatMul") && strstr(product->device, "CPU:0"));
  CHECK(product->end_ns >= product->start_ns && product->busy_ns == product->end_ns - product->start_ns && product->output_bytes == 16);
  CHECK(negative && !strcmp(negative->op, "Neg") && negative->start_ns >= product->end_ns && strstr(negative->kernel, "Neg"));
  CHECK(tw_step_stats_node(stats, 2) == NULL && tw_step_stats_op_count(stats) == 2 && tw_step_stats_op(stats, 2) == NULL);
  CHECK(tw_step_stats_op(stats, 0)->busy_ns >= tw_step_stats_op(stats, 1)->busy_ns && tw_step_stats_op(stats, 0)->count == 1);
  OK(run_with(&p, &options));
  CHECK(total->nodes == 2 && !(total->flags & TW_STEP_PLANNED));
  free_program(&p);
  CHECK(!strcmp(tw_step_stats_node(stats, 1)->name, "Neg")); /* the statistics outlive the graph */
  tw_step_stats_destroy(stats);
}

static void RecordsOfTheFirstVersionHaveNoStatistics(void) {
  program p = new_program();
  tw_step_stats* stats = NULL;
  OK(tw_step_stats_create(&stats));
  const tw_run_options old = {.size = offsetof(tw_run_options, stats), .stats = stats};
  OK(run_with(&p, &old));
  CHECK(tw_step_stats_node_count(stats) == 0);
  const tw_run_options half = {.size = offsetof(tw_run_options, stats) + 4, .stats = stats}; /* a half-covered field is absent */
  OK(run_with(&p, &half));
  CHECK(tw_step_stats_node_count(stats) == 0);
  const tw_run_options shorter = {.size = offsetof(tw_run_options, stats) - 8};
  FAILS(run_with(&p, &shorter), TW_INVALID_ARGUMENT, "tw_run_options says size 16");
  tw_step_stats_destroy(stats);
  free_program(&p);
}

static void TheJsonIsATrace(void) {
  program p = new_program();
  tw_step_stats* stats = NULL;
  tw_buffer* json = NULL;
  OK(tw_step_stats_create(&stats));
  const tw_run_options options = {.size = sizeof options, .stats = stats};
  OK(run_with(&p, &options));
  OK(tw_step_stats_json(stats, &json));
  const char* text = tw_buffer_data(json);
  CHECK(strstr(text, "\"traceEvents\": [") && strstr(text, "\"name\": \"MatMul\", \"ph\": \"X\"") && strstr(text, "\"name\": \"caller\""));
  CHECK(strstr(text, "\"name\": \"make plan\""));
  tw_buffer_release(json);
  tw_step_stats_destroy(stats);
  free_program(&p);
}

static void SeveralRunsAreOneTrace(void) {
  program p = new_program();
  tw_step_stats* stats[2] = {NULL, NULL};
  tw_buffer* json = NULL;
  for (int i = 0; i < 2; ++i) {
    OK(tw_step_stats_create(&stats[i]));
    const tw_run_options options = {.size = sizeof options, .stats = stats[i]};
    OK(run_with(&p, &options));
    CHECK(tw_step_stats_total(stats[i])->step == (uint64_t)i + 1 && tw_step_stats_total(stats[i])->began_ns > 0);
  }
  CHECK(tw_step_stats_total(stats[0])->began_ns < tw_step_stats_total(stats[1])->began_ns);
  const tw_step_node* negative = tw_step_stats_node(stats[1], 1);
  CHECK(!strcmp(negative->shapes, "float [2, 2] -> float [2, 2]") && negative->n_after == 1);
  CHECK(negative->after[0] == tw_step_stats_node(stats[1], 0)->id && !*negative->queue && !*negative->function && !*negative->to);
  OK(tw_step_stats_trace((const tw_step_stats* const*)stats, 2, &json));
  const char* text = tw_buffer_data(json);
  CHECK(strstr(text, "\"step 1\"") && strstr(text, "\"step 2\"") && strstr(text, "\"left_out\": 0"));
  tw_buffer_release(json);
  OK(tw_step_stats_trace(NULL, 0, &json)); /* an empty trace */
  tw_buffer_release(json);
  const tw_step_stats* none[1] = {NULL};
  FAILS(tw_step_stats_trace(none, 1, &json), TW_INVALID_ARGUMENT, "steps[0] is NULL");
  for (int i = 0; i < 2; ++i) tw_step_stats_destroy(stats[i]);
  free_program(&p);
}

static void WhatIsBeyondTheLimitIsCounted(void) {
  program p = new_program();
  tw_step_stats* stats = NULL;
  OK(tw_step_stats_create(&stats));
  tw_step_stats_set_limit(stats, 1);
  const tw_run_options options = {.size = sizeof options, .stats = stats};
  OK(run_with(&p, &options));
  const tw_step_total* total = tw_step_stats_total(stats);
  CHECK(tw_step_stats_node_count(stats) == 1 && total->left_out == 1 && (total->flags & TW_STEP_CUT));
  CHECK(tw_step_stats_wait_count(stats) == 0 && tw_step_stats_wait(stats, 0) == NULL);
  tw_step_stats_set_limit(stats, 10);
  OK(run_with(&p, &options));
  CHECK(tw_step_stats_node_count(stats) == 2 && total->left_out == 0 && !(total->flags & TW_STEP_CUT));
  tw_step_stats_destroy(stats);
  free_program(&p);
}

MAIN(TEST(ARunFillsTheObjectThatItIsGiven), TEST(RecordsOfTheFirstVersionHaveNoStatistics), TEST(TheJsonIsATrace),
     TEST(SeveralRunsAreOneTrace), TEST(WhatIsBeyondTheLimitIsCounted))
