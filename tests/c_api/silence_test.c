/* The library is silent: it writes nothing to standard output or error unless a sink does. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "check.h"
#include "folder.h"

/* The file to which both streams are redirected. */
typedef struct capture {
  FILE* file;
  int out, err;
} capture;

static capture begin_capture(void) {
  capture c = {.file = tmpfile()};
  fflush(NULL);
  c.out = dup(1);
  c.err = dup(2);
  dup2(fileno(c.file), 1);
  dup2(fileno(c.file), 2);
  return c;
}

/* Returns the number of captured bytes, and the first of them. */
static long end_capture(capture* c, char* text, size_t room) {
  fflush(NULL);
  dup2(c->out, 1);
  dup2(c->err, 2);
  close(c->out);
  close(c->err);
  const long bytes = (long)lseek(fileno(c->file), 0, SEEK_END);
  lseek(fileno(c->file), 0, SEEK_SET);
  const ssize_t got = read(fileno(c->file), text, room - 1);
  text[got > 0 ? got : 0] = 0;
  fclose(c->file);
  return bytes;
}

static int lines;
static void count_line(void* user, uint32_t level, const char* text, uint64_t bytes) {
  (void)user;
  lines += level <= TW_LOG_ERROR && bytes == strlen(text) && !strchr(text, '\n');
}

/* Runs a whole program, with failures, and with a node for a missing device, which the log
 * reports. */
static void train(tw_runtime* runtime) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_saver* saver = NULL;
  const char* options[] = {"soft_placement=true"};
  OK(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output w = tw_variable_create(s, "w", tw_scope_scalar(s, TW_FLOAT, 5));
  tw_op* square = tw_scope_begin(s, "Square", NULL);
  tw_op_add_input(square, tw_variable_read(s, w));
  tw_op_set_device(square, "NOWHERE:0");
  const tw_output loss = tw_scope_end(s, square);
  tw_gradient gradient;
  tw_scope_gradients(s, loss, &w, 1, &gradient);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.1)};
  const tw_operation* step = tw_train_sgd(s, &w, &gradient, 1, &sgd);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, options, 1, &session));
  tw_tensor* out = NULL;
  tw_signature what = {.size = sizeof what, .fetches = &loss, .n_fetches = 1};
  FAILS(tw_session_run(session, &what, NULL, NULL, &out), TW_FAILED_PRECONDITION, "initialised");
  run(session, init);
  for (int i = 0; i < 10; ++i) run(session, step);
  CHECK(as_float(fetch(session, 0, NULL, loss)) < 1);
  OK(tw_saver_create(graph, NULL, 0, &saver));
  char folder[256], prefix[300];
  CHECK(make_folder(folder, sizeof folder, "silence") == 0);
  snprintf(prefix, sizeof prefix, "%s/ckpt", folder);
  OK(tw_saver_save(saver, session, prefix));
  OK(tw_saver_restore(saver, session, prefix));
  FAILS(tw_saver_restore(saver, session, "/no/such/place"), TW_NOT_FOUND, "/no/such/place");
  CHECK(remove_folder(folder) == 0);
  tw_status_release(tw_plugin_load(runtime, "/proc/self/exe"));
  tw_saver_destroy(saver);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void AWholeTrainingProgramPrintsNothing(void) {
  char text[512];
  const int before = failures;
  capture c = begin_capture();
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(NULL, 0, &runtime));
  train(runtime);
  tw_runtime_release(runtime);
  const long bytes = end_capture(&c, text, sizeof text);
  CHECK(bytes == 0 && failures == before);
  if (bytes) printf("  it wrote: %s\n", text);
}

static void TheSameProgramHasThingsToSayToASink(void) {
  tw_runtime* runtime = NULL;
  const tw_runtime_config config = {.size = sizeof config, .log = count_line};
  OK(tw_runtime_create_with(&config, &runtime));
  train(runtime);
  CHECK(lines > 0);
  tw_runtime_release(runtime);
}

static void TheReadyMadeSinkWritesToStandardError(void) {
  char text[512];
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(NULL, 0, &runtime));
  OK(tw_log_set_sink(runtime, tw_log_to_stderr, NULL, TW_LOG_WARNING));
  capture c = begin_capture();
  OK(tw_log_write(runtime, TW_LOG_INFO, "not this"));
  OK(tw_log_write(runtime, TW_LOG_WARNING, "two\nlines, \xff and\x1b[2J"));
  end_capture(&c, text, sizeof text);
  CHECK(!strcmp(text, "thalweg: warning: two\\nlines, \\xff and\\x1b[2J\n"));
  if (!strstr(text, "two\\nlines")) printf("  %s\n", text);
  tw_runtime_release(runtime);
}

MAIN(TEST(AWholeTrainingProgramPrintsNothing), TEST(TheSameProgramHasThingsToSayToASink), TEST(TheReadyMadeSinkWritesToStandardError))
