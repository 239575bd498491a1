/* A program's signal handlers run on the program's stack, whatever stacks the library uses. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <sys/time.h>

#include "check.h"

enum { kSize = 600, kProducts = 40 };

static pthread_t program;
static const char *stack_begin, *stack_end;
static volatile sig_atomic_t handled, elsewhere; /* elsewhere: handlers that ran on a stack other than the thread's */

static void on_alarm(int signal_number) {
  const char here = (char)signal_number;
  if (!pthread_equal(pthread_self(), program)) return;
  handled = handled + 1;
  elsewhere = elsewhere + (&here < stack_begin || &here >= stack_end);
}

static void find_stack(void) {
  pthread_attr_t attributes;
  void* begin = NULL;
  size_t size = 0;
  program = pthread_self();
  CHECK(pthread_getattr_np(program, &attributes) == 0 && pthread_attr_getstack(&attributes, &begin, &size) == 0);
  pthread_attr_destroy(&attributes);
  stack_begin = begin;
  stack_end = stack_begin + size;
}

static void HandlersKeepTheirStackWhileProductsAreComputed(void) {
  const int64_t dims[] = {kSize, kSize};
  float* zeros = calloc(kSize * kSize, sizeof(float));
  const char* one_thread[] = {"threads=1"};
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  tw_output y = x;
  for (int i = 0; i < kProducts; ++i) y = tw_scope_op2(s, "MatMul", y, x);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, one_thread, 1, &session));
  tw_tensor* in = floats(dims, 2, zeros);
  tw_tensor_release(fetch(session, x, in, y)); /* loads the library */

  find_stack();
  const struct sigaction on = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGALRM, &on, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 50 && handled < 200; ++i) tw_tensor_release(fetch(session, x, in, y));
  setitimer(ITIMER_REAL, &never, NULL);
  CHECK(handled > 0);
  CHECK(elsewhere == 0);

  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  free(zeros);
}

MAIN(TEST(HandlersKeepTheirStackWhileProductsAreComputed))
