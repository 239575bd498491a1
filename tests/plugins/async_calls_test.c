/* Asynchronous runs, and calls of functions in them, that wait for an element and then fail on a
 * device. The run's callback destroys the session with all its references to the run. */
#include <pthread.h>

#include "check.h"

typedef struct program {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_output value, taken;
  const tw_operation* put;
} program;

static tw_output dequeue(tw_scope* s, tw_output queue) {
  const uint32_t type = TW_FLOAT;
  tw_op* op = tw_scope_begin(s, "QueueDequeueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_set_types(op, "component_types", &type, 1);
  return tw_scope_end(s, op);
}

/* Negates an element on a device whose first kernel fails when it runs. */
static tw_output negate_an_element(tw_scope* s, tw_output queue) {
  const tw_output element = dequeue(s, queue);
  tw_op* op = tw_scope_begin(s, "Neg", NULL);
  tw_op_add_input(op, element);
  tw_op_set_device(op, "FAKE:0");
  return tw_scope_end(s, op);
}
static tw_output negate_in_a_call(tw_scope* s, tw_output queue) {
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  const tw_output negated = negate_an_element(tw_block_scope(then), queue), none = tw_scope_scalar(tw_block_scope(otherwise), TW_FLOAT, 0);
  tw_output taken = 0;
  tw_block_give(then, &negated, 1);
  tw_block_give(otherwise, &none, 1);
  /* The predicate is not known in advance, so the branch stays a call. */
  const tw_output any = tw_scope_op2(s, "GreaterEqual", tw_scope_op1(s, "QueueSizeV2", queue), tw_scope_scalar(s, TW_INT32, 0));
  tw_cond(s, NULL, any, then, otherwise, &taken, 1);
  return taken;
}

static program new_program(tw_output (*negate)(tw_scope*, tw_output)) {
  const char* options[] = {"threads=2", "plugin.org.thalweg.fake.fail_kernel=1"};
  program p = {0};
  OK(tw_runtime_create(options, 2, &p.runtime));
  OK(tw_plugin_load(p.runtime, FAKE));
  OK(tw_graph_create(p.runtime, &p.graph));
  const uint32_t type = TW_FLOAT;
  tw_scope* s = tw_scope_create(p.graph, NULL);
  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", NULL);
  tw_op_set_types(op, "component_types", &type, 1);
  tw_op_set_string(op, "shared_name", "queue", 5);
  const tw_output queue = tw_scope_end(s, op);
  p.taken = negate(s, queue);
  p.value = tw_scope_placeholder(s, "value", TW_FLOAT, NULL, 0);
  op = tw_scope_begin(s, "QueueEnqueueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_add_inputs(op, &p.value, 1);
  p.put = tw_scope_end_operation(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, NULL, 0, &p.session));
  return p;
}

/* Returns the number of queues on the device. */
static int streams_of(tw_runtime* runtime) {
  tw_devices* devices = NULL;
  int streams = -1;
  OK(tw_devices_create(runtime, &devices));
  for (uint32_t i = 0; i < tw_devices_count(devices); ++i) {
    if (strstr(tw_devices_name(devices, i), "FAKE:0") == NULL) continue;
    tw_buffer* json = NULL;
    OK(tw_devices_statistics_json(devices, i, &json));
    const char* found = strstr(tw_buffer_data(json), "\"streams\"");
    if (found) streams = atoi(strpbrk(found, "0123456789"));
    tw_buffer_release(json);
  }
  tw_devices_destroy(devices);
  return streams;
}

typedef struct end {
  program* p;
  pthread_mutex_t mu;
  pthread_cond_t changed;
  int over;
} end;

static void end_everything(void* user, tw_status* status, tw_tensor** fetches) {
  end* e = user;
  CHECK(fetches[0] == NULL);
  FAILS(status, TW_INTERNAL, "was to fail while it ran");
  CHECK(streams_of(e->p->runtime) == 0);
  tw_session_destroy(e->p->session);
  pthread_mutex_lock(&e->mu);
  e->over = 1;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->mu);
}

static void device_fails(tw_output (*negate)(tw_scope*, tw_output)) {
  for (int k = 0; k < 20; ++k) {
    program p = new_program(negate);
    tw_session* other = NULL;
    OK(tw_session_create(p.graph, NULL, 0, &other));
    end e = {.p = &p, .mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const tw_signature take = {.size = sizeof take, .fetches = &p.taken, .n_fetches = 1};
    OK(tw_session_run_async(p.session, &take, NULL, NULL, end_everything, &e));
    const tw_signature put = {.size = sizeof put, .feeds = &p.value, .n_feeds = 1, .targets = &p.put, .n_targets = 1};
    const float one = 1;
    tw_tensor* fed = NULL;
    OK(tw_tensor_create_copy(TW_FLOAT, NULL, 0, &one, sizeof one, &fed));
    OK(tw_session_run(other, &put, &fed, NULL, NULL));
    pthread_mutex_lock(&e.mu);
    while (!e.over) pthread_cond_wait(&e.changed, &e.mu);
    pthread_mutex_unlock(&e.mu);
    tw_tensor_release(fed);
    tw_session_destroy(other);
    tw_graph_destroy(p.graph);
    tw_runtime_release(p.runtime);
  }
}

static void WhatARunHadEndsBeforeItIsToldThatItsDeviceFailed(void) { device_fails(negate_an_element); }
static void SoDoesWhatACallInItHad(void) { device_fails(negate_in_a_call); }

MAIN(TEST(WhatARunHadEndsBeforeItIsToldThatItsDeviceFailed), TEST(SoDoesWhatACallInItHad))
