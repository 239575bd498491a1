/* Shared by the tests of checkpoints: a temporary folder, and a small program with variables. */
#ifndef SAVING_H
#define SAVING_H
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include <sys/resource.h>

#include "check.h"
#include "folder.h"

static char folder[256];

static inline const char* path(const char* name) {
  static char text[512];
  snprintf(text, sizeof text, "%s/%s", folder, name);
  return text;
}

/* Runs the tests with the folder present, then removes it. */
static inline int run_in_folder(const test* tests, size_t n) {
  if (make_folder(folder, sizeof folder, "checkpoint")) return perror(folder), 1;
  const int status = run_tests(tests, n);
  remove_folder(folder);
  return status;
}

/* Two variables and their session. */
typedef struct program {
  tw_graph* graph;
  tw_session* session;
  tw_output a, b, a_value;
  const tw_operation *init, *clear;
} program;

static inline program new_program(const char* container, float start) {
  program p = {0};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  p.a = tw_variable_create(s, "a", tw_scope_scalar(s, TW_FLOAT, start));
  p.b = tw_variable_create(s, "b", tw_scope_scalar(s, TW_INT64, 42));
  p.a_value = tw_variable_read(s, p.a);
  p.init = tw_variable_initializer(s, "init");
  p.clear = tw_variable_assign(s, p.a, tw_scope_scalar(s, TW_FLOAT, 0));
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, &container, 1, &p.session));
  return p;
}

static inline void free_program(program* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

#endif
