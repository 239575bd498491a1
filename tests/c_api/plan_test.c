/* A session's plans: counts, plans as JSON, orders, priorities, memory budgets. */
#include <stddef.h>

#include "check.h"

enum { kSize = 1024 };

/* y = exp((relu(x) + |x| - x) * 1); all three values are computed before the sums. */
typedef struct sums {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y;
  tw_callable* callable;
} sums;

static sums new_sums(const char* const* options, uint32_t n) {
  sums g = {0};
  const int64_t dims[] = {-1};
  OK(tw_graph_create(NULL, &g.graph));
  tw_scope* s = tw_scope_create(g.graph, NULL);
  g.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  tw_output r[3];
  static const char *const types[] = {"Relu", "Abs", "Neg"}, *const names[] = {"first", "second", "third"};
  for (int i = 0; i < 3; ++i) {
    tw_op* op = tw_scope_begin(s, types[i], names[i]);
    tw_op_add_input(op, g.x);
    tw_op_set_priority(op, i == 2 ? 5 : 0);
    r[i] = tw_scope_end(s, op);
  }
  const tw_output sum = tw_scope_op2(s, "AddV2", tw_scope_op2(s, "AddV2", r[0], r[1]), r[2]);
  g.y = tw_scope_op1(s, "Exp", tw_scope_op2(s, "Mul", sum, tw_scope_scalar(s, TW_FLOAT, 1)));
  OK(tw_scope_finish(s));
  OK(tw_session_create(g.graph, options, n, &g.session));
  const tw_signature what = {.size = sizeof what, .feeds = &g.x, .n_feeds = 1, .fetches = &g.y, .n_fetches = 1};
  OK(tw_callable_create(g.session, &what, &g.callable));
  return g;
}

static void free_sums(sums* g) {
  tw_callable_destroy(g->callable);
  tw_session_destroy(g->session);
  tw_graph_destroy(g->graph);
}

static void run_of_size(const sums* g, int64_t n) {
  static const float values[4 * kSize];
  tw_tensor *x = floats(&n, 1, values), *y = NULL;
  OK(tw_callable_run(g->callable, &x, NULL, &y));
  CHECK(tw_tensor_dim(y, 0) == n && ((const float*)tw_tensor_data(y))[n - 1] == 1);
  tw_tensor_release(x);
  tw_tensor_release(y);
}

static tw_session_info report(const sums* g) {
  tw_session_info info = {.size = sizeof info};
  OK(tw_session_report(g->session, &info));
  return info;
}

static void AReportCountsPlansShapesAndMemory(void) {
  sums g = new_sums(NULL, 0);
  tw_session_info info = report(&g);
  CHECK(info.steps == 0 && info.plans == 0 && info.shapes == 0 && info.block_bytes == 0 && info.signatures == 1);
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 3; ++n) run_of_size(&g, n);
  }
  info = report(&g);
  CHECK(info.size == sizeof info && info.flags == 0);
  CHECK(info.steps == 6 && info.plans == 1 && info.shapes == 3);
  CHECK(info.misses == 1 && info.shape_hits == 2 && info.hits == 3 && info.evictions == 0);
  CHECK(info.block_bytes > 0 && info.peak_bytes >= info.block_bytes);
  free_sums(&g);
}

static void AReportFillsOnlyWhatTheRecordHolds(void) {
  sums g = new_sums(NULL, 0);
  run_of_size(&g, 2);
  tw_session_info info = {.size = offsetof(tw_session_info, plans)};
  info.plans = 77;
  OK(tw_session_report(g.session, &info));
  CHECK(info.steps == 1 && info.signatures == 1 && info.plans == 77 && info.size == offsetof(tw_session_info, plans));
  struct {
    tw_session_info info;
    uint64_t later;
  } larger = {.info.size = sizeof larger, .later = 5};
  OK(tw_session_report(g.session, &larger.info));
  CHECK(larger.info.steps == 1 && larger.later == 5);
  info.size = 4;
  FAILS(tw_session_report(g.session, &info), TW_INVALID_ARGUMENT, "tw_session_info");
  info.size = sizeof info;
  info.flags = 1;
  FAILS(tw_session_report(g.session, &info), TW_INVALID_ARGUMENT, "flags");
  free_sums(&g);
}

static const char* find_after(const char* text, const char* first, const char* then) {
  const char* at = strstr(text, first);
  return at ? strstr(at, then) : NULL;
}

static void APlanIsToldAsJson(void) {
  const char* options[] = {"engine=fixed"};
  sums g = new_sums(options, 1);
  tw_buffer* json = NULL;
  OK(tw_callable_plan_json(g.callable, NULL, &json)); /* before any run, the plan is for any size */
  CHECK(strstr(tw_buffer_data(json), "\"shape\": [-1]") || strstr(tw_buffer_data(json), "\"shape\":[-1]"));
  CHECK(strstr(tw_buffer_data(json), "\"peak_bytes\":"));
  tw_buffer_release(json);
  CHECK(report(&g).plans == 0);
  const int64_t dims[] = {kSize}, other[] = {3};
  tw_shape shape = {.dims = dims, .rank = 1};
  OK(tw_callable_plan_json(g.callable, &shape, &json));
  const char* text = tw_buffer_data(json);
  CHECK(strstr(text, "\"removed\"") && strstr(text, "\"merged\"") && strstr(text, "\"folded\""));
  CHECK(find_after(text, "\"removed\"", "Mul")); /* the factor 1 */
  CHECK(find_after(text, "\"kind\"", "block") && find_after(text, "\"in_place_of\"", "\"id\""));
  /* The third has a priority, so it comes before the others. */
  CHECK(strstr(text, "\"third\"") && strstr(text, "\"first\"") && strstr(text, "\"third\"") < strstr(text, "\"first\""));
  tw_buffer_release(json);
  CHECK(report(&g).plans == 1 && report(&g).steps == 0);
  run_of_size(&g, 3);
  OK(tw_callable_plan_json(g.callable, NULL, &json)); /* the plan of the latest run */
  CHECK(strstr(tw_buffer_data(json), "[3]") && !strstr(tw_buffer_data(json), "[1024]"));
  tw_buffer_release(json);
  json = (tw_buffer*)&g;
  shape.rank = -1;
  FAILS(tw_callable_plan_json(g.callable, &shape, &json), TW_INVALID_ARGUMENT, "feed_shapes[0]");
  CHECK(json == NULL);
  const int64_t unknown[] = {-1};
  shape = (tw_shape){.dims = unknown, .rank = 1};
  FAILS(tw_callable_plan_json(g.callable, &shape, &json), TW_INVALID_ARGUMENT, "'x'");
  shape = (tw_shape){.dims = other, .rank = 0};
  FAILS(tw_callable_plan_json(g.callable, &shape, &json), TW_INVALID_ARGUMENT, "'x'");
  free_sums(&g);
}

static uint64_t number_after(const char* text, const char* key) {
  const char* at = strstr(text, key);
  return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static uint64_t block_bytes(const char* const* options, uint32_t n) {
  sums g = new_sums(options, n);
  run_of_size(&g, kSize);
  const tw_session_info info = report(&g);
  tw_buffer* json = NULL;
  OK(tw_callable_plan_json(g.callable, NULL, &json));
  CHECK(number_after(tw_buffer_data(json), "\"peak_bytes\":") <= info.block_bytes);
  tw_buffer_release(json);
  free_sums(&g);
  return info.block_bytes;
}

static void ABudgetChangesOrderAndMemory(void) {
  const char *fixed[] = {"engine=fixed", "order=given"}, *small[] = {"order=smallest_peak"}, *budget[] = {"memory_budget=8192"};
  const uint64_t given = block_bytes(fixed, 2);
  CHECK(given > 8192);
  CHECK(block_bytes(small, 1) == 8192);
  CHECK(block_bytes(budget, 1) == 8192);
  const char* tight[] = {"memory_budget=8191"};
  sums g = new_sums(tight, 1);
  static const float values[kSize];
  const int64_t n = kSize;
  tw_tensor *x = floats(&n, 1, values), *y = NULL;
  FAILS(tw_callable_run(g.callable, &x, NULL, &y), TW_RESOURCE_EXHAUSTED, "'memory_budget' allows 8191");
  CHECK(y == NULL);
  tw_tensor_release(x);
  run_of_size(&g, kSize / 2); /* this fits */
  free_sums(&g);
}

static void APriorityIsKeptInTheGraph(void) {
  sums g = new_sums(NULL, 0);
  tw_buffer* def = NULL;
  OK(tw_graph_export(g.graph, &def));
  const char* bytes = tw_buffer_data(def);
  int found = 0;
  for (uint64_t i = 0; i + 9 < tw_buffer_bytes(def); ++i) found += memcmp(bytes + i, "_priority", 9) == 0;
  CHECK(found == 3);
  tw_buffer_release(def);
  free_sums(&g);
}

MAIN(TEST(AReportCountsPlansShapesAndMemory), TEST(AReportFillsOnlyWhatTheRecordHolds), TEST(APlanIsToldAsJson),
     TEST(ABudgetChangesOrderAndMemory), TEST(APriorityIsKeptInTheGraph))
