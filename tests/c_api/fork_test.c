/* A process that has run steps forks; the child continues with its copies, without the threads.
 * See runtime.h. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include <sys/wait.h>

#include "check.h"
#include "folder.h"

typedef struct program {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_saver* saver;
  tw_output x, y;
  const tw_operation* init;
} program;

static program new_program(void) {
  program p = {0};
  const char* options[] = {"threads=4"};
  OK(tw_runtime_create(options, 1, &p.runtime));
  OK(tw_graph_create(p.runtime, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  const int64_t dims[] = {-1, -1};
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  const tw_output product = tw_scope_op2(s, "MatMul", p.x, p.x);
  const tw_output sides = tw_scope_op2(s, "Add", tw_scope_op1(s, "Exp", product), tw_scope_op1(s, "Tanh", product));
  p.y = tw_scope_op2(s, "Sub", sides, tw_scope_op1(s, "Neg", product));
  tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 3));
  p.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, NULL, 0, &p.session));
  OK(tw_saver_create(p.graph, NULL, 0, &p.saver));
  return p;
}

static void free_program(program* p) {
  tw_saver_destroy(p->saver);
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
  tw_runtime_release(p->runtime);
}

/* Large enough for loops on several threads. */
static void step(const program* p) {
  const int64_t dims[] = {300, 300};
  tw_tensor* x = NULL;
  OK(tw_tensor_create(TW_FLOAT, dims, 2, &x));
  memset(tw_tensor_mutable_data(x), 0, tw_tensor_bytes(x));
  CHECK(as_float(fetch(p->session, p->x, x, p->y)) == 1);
  tw_tensor_release(x);
}

static const char* prefix(const char* folder, const char* name) {
  static char text[512];
  snprintf(text, sizeof text, "%s/%s", folder, name);
  return text;
}

static void TheChildOfAForkGoesOnWithoutThreads(void) {
  char folder[256];
  CHECK(make_folder(folder, sizeof folder, "fork") == 0);
  program p = new_program();
  run(p.session, p.init);
  step(&p);
  OK(tw_saver_save(p.saver, p.session, prefix(folder, "parent"))); /* runs on a thread for blocking work */
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60); /* the test must not wait for a thread that does not exist */
    step(&p);
    OK(tw_saver_save(p.saver, p.session, prefix(folder, "child")));
    free_program(&p);
    exit(failures > 0);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (status) printf("  the child ended with %x\n", (unsigned)status);
  CHECK(status == 0);
  tw_checkpoint* c = NULL;
  OK(tw_checkpoint_open(prefix(folder, "child"), &c));
  CHECK(tw_checkpoint_count(c) == 1);
  tw_checkpoint_close(c);
  step(&p); /* the parent still has its threads */
  free_program(&p);
  const char* files[] = {"parent.index", "parent.data-00000-of-00001", "child.index", "child.data-00000-of-00001", "checkpoint"};
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) remove(prefix(folder, files[i]));
  CHECK(remove(folder) == 0);
}

MAIN(TEST(TheChildOfAForkGoesOnWithoutThreads))
