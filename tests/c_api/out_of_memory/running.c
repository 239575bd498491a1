/* Steps: in a session, prepared, asynchronous, with a log, and steps that fail in any case. */
#include <pthread.h>
#include <string.h>

#include "programs.h"

static tw_status* a_run(void) { return steps(NULL, "container=oom_run"); }

static tw_status* a_callable(void) {
  net n = {0};
  tw_callable* callable = NULL;
  tw_tensor *out = NULL, *batch = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, NULL, "container=oom_callable"));
  TRY(run_target(&n, n.init, 0, NULL));
  const tw_signature what = {.size = sizeof what, .feeds = &n.in, .n_feeds = 1, .fetches = &n.loss, .n_fetches = 1};
  TRY(tw_callable_create(n.session, &what, &callable));
  for (int64_t i = 1; i < 12; ++i) { /* more shapes than a signature has plans */
    const int64_t dims[] = {i, 3};
    TRY(tw_tensor_create(TW_FLOAT, dims, 2, &batch));
    TRY(tw_callable_run(callable, &batch, NULL, &out));
    tw_tensor_release(out);
    tw_tensor_release(batch);
    out = batch = NULL;
  }
done:
  tw_tensor_release(out);
  tw_tensor_release(batch);
  tw_callable_destroy(callable);
  end_net(&n);
  return status;
}

typedef struct ending {
  pthread_mutex_t mu;
  pthread_cond_t over;
  int waiting;
  tw_status* first;
} ending;

static void ended(void* user, tw_status* status, tw_tensor** fetches) {
  ending* e = user;
  tw_tensor_release(fetches[0]);
  pthread_mutex_lock(&e->mu);
  if (e->first)
    tw_status_release(status);
  else
    e->first = status;
  --e->waiting;
  pthread_cond_signal(&e->over);
  pthread_mutex_unlock(&e->mu);
}

static tw_status* without_waiting(void) {
  net n = {0};
  ending e = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};
  tw_cancel_token* token = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, NULL, "container=oom_async"));
  TRY(run_target(&n, n.init, 0, NULL));
  TRY(tw_cancel_token_create(&token));
  const tw_run_options options = {.size = sizeof options, .timeout_ns = 10000000000, .cancel = token};
  const tw_signature what = {.size = sizeof what, .feeds = &n.in, .n_feeds = 1, .fetches = &n.loss, .n_fetches = 1};
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&e.mu);
    ++e.waiting;
    pthread_mutex_unlock(&e.mu);
    status = tw_session_run_async(n.session, &what, &n.x, &options, ended, &e);
    if (!status) continue;
    pthread_mutex_lock(&e.mu);
    --e.waiting; /* the run did not start */
    pthread_mutex_unlock(&e.mu);
    break;
  }
  pthread_mutex_lock(&e.mu);
  while (e.waiting) pthread_cond_wait(&e.over, &e.mu);
  pthread_mutex_unlock(&e.mu);
  if (status)
    tw_status_release(e.first);
  else
    status = e.first;
done:
  tw_cancel_token_destroy(token);
  end_net(&n);
  return status;
}

static void quiet(void* user, uint32_t level, const char* text, uint64_t bytes) { (void)user, (void)level, (void)text, (void)bytes; }

static tw_status* the_log(void) {
  tw_status* status = NULL;
  TRY(tw_log_set_sink(runtime, quiet, NULL, TW_LOG_DEBUG));
  TRY(tw_log_write(runtime, TW_LOG_WARNING, "a line that is longer than what a string keeps in itself"));
  status = steps(NULL, "container=oom_log");
done:
  tw_status_release(tw_log_set_sink(runtime, NULL, NULL, TW_LOG_DEBUG));
  return status;
}

/* The message of any other failure needs memory, too. */
static tw_status* failures_told(void) {
  net n = {0};
  const tw_operation* found = NULL;
  tw_tensor* out = NULL;
  tw_status *status = NULL, *failed = NULL;
  TRY(make_net(&n, NULL, "container=oom_failures"));
  failed = tw_graph_find(n.graph, "net/v", &found);
  EXPECT(failed && (tw_status_code(failed) == TW_NOT_FOUND || tw_status_code(failed) == TW_RESOURCE_EXHAUSTED));
  tw_status_release(failed);
  failed = run_target(&n, NULL, n.loss, &out); /* fails: not initialised */
  EXPECT(failed && (tw_status_code(failed) == TW_FAILED_PRECONDITION || tw_status_code(failed) == TW_RESOURCE_EXHAUSTED));
  EXPECT(strlen(tw_status_message(failed)) > 0);
  tw_status_release(failed);
done:
  end_net(&n);
  return status;
}

const program running_programs[] = {PROGRAM(a_run, 0),   PROGRAM(a_callable, 0),    PROGRAM(without_waiting, 0),
                                    PROGRAM(the_log, 0), PROGRAM(failures_told, 0), {NULL, NULL, 0}};
