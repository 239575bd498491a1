/* A TensorFlow graph with reference variables (reference_graph/make.py): trained from C with
 * TensorFlow's losses, saved, restored. */
#include "reference_graph/expected.h"
#include "saving.h"

enum { STEPS = 20, ROWS = 8 };

static tw_graph* read_graph(void) {
  FILE* file = fopen(REFERENCE_GRAPH, "rb");
  static char bytes[1 << 20];
  const size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  CHECK(n > 0 && n < sizeof bytes);
  if (file) fclose(file);
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_import(graph, bytes, n, NULL));
  return graph;
}

/* Computes the same feeds as make.py. */
static void make_feeds(tw_tensor* feeds[2]) {
  float x[ROWS][3], y[ROWS][1];
  for (int i = 0; i < ROWS * 3; ++i) x[i / 3][i % 3] = ((float)(i * 7 % 11) - 5) / 5;
  for (int i = 0; i < ROWS; ++i) y[i][0] = (x[i][0] + x[i][1] * x[i][2]) / 2;
  OK(tw_tensor_create_copy(TW_FLOAT, (const int64_t[]){ROWS, 3}, 2, x, sizeof x, &feeds[0]));
  OK(tw_tensor_create_copy(TW_FLOAT, (const int64_t[]){ROWS, 1}, 2, y, sizeof y, &feeds[1]));
}

/* Runs a step that fetches one value and runs one operation; NULL: none. */
static tw_status* step(tw_session* session, tw_graph* graph, tw_tensor* const feeds[2], const char* fetch, const char* target,
                       tw_tensor** out_value) {
  tw_output fed[2] = {0}, value = 0;
  const tw_operation* operation = NULL;
  OK(tw_graph_find_output(graph, "x", &fed[0]));
  OK(tw_graph_find_output(graph, "y", &fed[1]));
  if (fetch) OK(tw_graph_find_output(graph, fetch, &value));
  if (target) OK(tw_graph_find(graph, target, &operation));
  const tw_signature what = {.size = sizeof what,
                             .feeds = fed,
                             .n_feeds = feeds ? 2 : 0,
                             .fetches = &value,
                             .n_fetches = fetch ? 1 : 0,
                             .targets = &operation,
                             .n_targets = target ? 1 : 0};
  return tw_session_run(session, &what, feeds, NULL, out_value);
}

static float sum_of(tw_tensor* t) {
  float sum = 0;
  for (uint64_t i = 0; t && i < tw_tensor_bytes(t) / sizeof(float); ++i) sum += ((const float*)tw_tensor_data(t))[i];
  tw_tensor_release(t);
  return sum;
}

static void like(const char* what, int i, float got, float wanted) {
  if (fabsf(got - wanted) <= 1e-6f + 2e-3f * fabsf(wanted)) return;
  printf("  %s, step %d: %.9g, TensorFlow %.9g\n", what, i, (double)got, (double)wanted);
  ++failures;
}

/* Checks the losses of all optimizers, then runs the ops that no optimizer uses. */
static void train(const char* container, const char* option) {
  tw_graph* graph = read_graph();
  tw_session* session = NULL;
  tw_tensor *feeds[2] = {NULL}, *value = NULL;
  OK(tw_session_create(graph, (const char* const[]){container, option}, 2, &session));
  make_feeds(feeds);
  FAILS(step(session, graph, feeds, "adam/loss", NULL, &value), TW_FAILED_PRECONDITION, "variable 'adam/");
  OK(step(session, graph, NULL, NULL, "init", NULL));
  for (size_t k = 0; k < sizeof expected / sizeof *expected; ++k) {
    char loss[32], update[32];
    snprintf(loss, sizeof loss, "%s/loss", expected[k].optimizer);
    snprintf(update, sizeof update, "%s/train", expected[k].optimizer);
    for (int i = 0; i < STEPS; ++i) {
      value = NULL;
      OK(step(session, graph, feeds, loss, update, &value));
      like(loss, i, sum_of(value), expected[k].losses[i]);
    }
  }
  OK(step(session, graph, NULL, "averaged", NULL, &value));
  like("averaged", 0, sum_of(value), expected_average);
  OK(step(session, graph, NULL, "scattered", NULL, &value));
  like("scattered", 0, sum_of(value), expected_scattered);
  OK(step(session, graph, NULL, "initialized", NULL, &value));
  CHECK(value && *(const char*)tw_tensor_data(value) == 1);
  tw_tensor_release(value);
  OK(step(session, graph, NULL, "adam/steps", NULL, &value));
  CHECK(value && *(const int64_t*)tw_tensor_data(value) == STEPS);
  tw_tensor_release(value);
  tw_tensor_release(feeds[0]);
  tw_tensor_release(feeds[1]);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void LossesAreTensorFlows(void) { train("container=reference_auto", "engine=auto"); }
static void AlsoOneNodeAfterTheOther(void) { train("container=reference_fixed", "engine=fixed"); }
static void AlsoSideBySide(void) { train("container=reference_counted", "engine=counted"); }
static void AlsoAsTheyStand(void) { train("container=reference_plain", "optimize=false"); }

static void TheProgramSavesAndRestoresThem(void) {
  tw_graph* graph = read_graph();
  tw_session *session = NULL, *other = NULL;
  tw_saver* saver = NULL;
  tw_variables* all = NULL;
  tw_tensor* value = NULL;
  OK(tw_variables_create(graph, &all));
  CHECK(tw_variables_count(all) == 78);
  CHECK(strcmp(tw_variables_name(all, 0), "sgd/hidden/w") == 0);
  OK(tw_saver_create(graph, NULL, 0, &saver));
  CHECK(tw_saver_count(saver) == 78);
  OK(tw_session_create(graph, (const char* const[]){"container=reference_saved"}, 1, &session));
  OK(step(session, graph, NULL, NULL, "init", NULL));
  OK(step(session, graph, NULL, "scattered", NULL, &value));
  const float scattered = sum_of(value);
  OK(tw_saver_save(saver, session, path("program")));
  OK(tw_session_create(graph, (const char* const[]){"container=reference_restored"}, 1, &other));
  FAILS(step(other, graph, NULL, "sgd/hidden/w", NULL, &value), TW_FAILED_PRECONDITION, "'sgd/hidden/w' is not initialised");
  OK(tw_saver_restore(saver, other, path("program")));
  OK(step(other, graph, NULL, "sgd/hidden/w", NULL, &value));
  like("restored", 0, sum_of(value), scattered);
  tw_variables_destroy(all);
  tw_saver_destroy(saver);
  tw_session_destroy(session);
  tw_session_destroy(other);
  tw_graph_destroy(graph);
}

static void ItsOwnSaverDoesToo(void) {
  tw_graph* graph = read_graph();
  tw_session* session = NULL;
  tw_tensor *value = NULL, *where = NULL;
  tw_output prefix = 0;
  const tw_operation *save = NULL, *restore = NULL;
  char allow[300];
  snprintf(allow, sizeof allow, "allow_files=%s", folder);
  OK(tw_session_create(graph, (const char* const[]){"container=reference_own", allow}, 2, &session));
  OK(step(session, graph, NULL, NULL, "init", NULL));
  OK(tw_graph_find_output(graph, "save/Const", &prefix));
  OK(tw_graph_find(graph, "save/control_dependency", &save));
  OK(tw_graph_find(graph, "save/restore_all", &restore));
  OK(tw_tensor_create_string("own", 3, &where));
  const tw_signature saving = {.size = sizeof saving, .feeds = &prefix, .n_feeds = 1, .targets = &save, .n_targets = 1};
  const tw_signature restoring = {.size = sizeof restoring, .feeds = &prefix, .n_feeds = 1, .targets = &restore, .n_targets = 1};
  OK(tw_session_run(session, &saving, &where, NULL, NULL));
  OK(step(session, graph, NULL, "sgd/hidden/w", NULL, &value));
  const float saved = sum_of(value);
  OK(step(session, graph, NULL, NULL, "scattered", NULL));
  OK(tw_session_run(session, &restoring, &where, NULL, NULL));
  OK(step(session, graph, NULL, "sgd/hidden/w", NULL, &value));
  CHECK(sum_of(value) == saved);
  tw_tensor_release(where);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void ASessionRefusesTheOpsByTheirOwnNames(void) {
  tw_graph* graph = read_graph();
  tw_session* session = NULL;
  OK(tw_session_create(graph, (const char* const[]){"deny_ops=Assign"}, 1, &session));
  FAILS(step(session, graph, NULL, NULL, "init", NULL), TW_PERMISSION_DENIED, "op Assign is in the session's deny_ops");
  tw_session_destroy(session);
  OK(tw_session_create(graph, (const char* const[]){"deny_ops=AssignVariableOp", "container=reference_denied"}, 2, &session));
  OK(step(session, graph, NULL, NULL, "init", NULL));
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void GradientsAndTrainingSayWhatTheyTake(void) {
  tw_graph* graph = read_graph();
  tw_session* session = NULL;
  tw_output loss = 0, w = 0;
  tw_gradient gradient = {0};
  tw_tensor *feeds[2] = {NULL}, *value = NULL;
  OK(tw_graph_find_output(graph, "sgd/loss", &loss));
  OK(tw_graph_find_output(graph, "sgd/hidden/w", &w));
  OK(tw_gradients_add(graph, &loss, NULL, 1, &w, 1, &gradient));
  OK(tw_session_create(graph, (const char* const[]){"container=reference_gradients"}, 1, &session));
  OK(step(session, graph, NULL, NULL, "init", NULL));
  make_feeds(feeds);
  tw_output fed[2] = {0}, theirs = 0, found[2];
  OK(tw_graph_find_output(graph, "x", &fed[0]));
  OK(tw_graph_find_output(graph, "y", &fed[1]));
  OK(tw_graph_find_output(graph, "sgd/gradients/sgd/hidden/MatMul_grad/tuple/control_dependency_1", &theirs));
  found[0] = gradient.values;
  found[1] = theirs;
  tw_tensor* both[2] = {NULL, NULL};
  const tw_signature what = {.size = sizeof what, .feeds = fed, .n_feeds = 2, .fetches = found, .n_fetches = 2};
  OK(tw_session_run(session, &what, feeds, NULL, both));
  for (int i = 0; both[0] && both[1] && i < 12; ++i)
    like("gradient", i, ((const float*)tw_tensor_data(both[0]))[i], ((const float*)tw_tensor_data(both[1]))[i]);
  tw_tensor_release(both[0]);
  tw_tensor_release(both[1]);
  tw_tensor_release(value);
  tw_tensor_release(feeds[0]);
  tw_tensor_release(feeds[1]);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

int main(void) {
  static const test tests[] = {TEST(LossesAreTensorFlows),
                               TEST(AlsoOneNodeAfterTheOther),
                               TEST(AlsoSideBySide),
                               TEST(AlsoAsTheyStand),
                               TEST(TheProgramSavesAndRestoresThem),
                               TEST(ItsOwnSaverDoesToo),
                               TEST(ASessionRefusesTheOpsByTheirOwnNames),
                               TEST(GradientsAndTrainingSayWhatTheyTake)};
  return run_in_folder(tests, sizeof tests / sizeof *tests);
}
