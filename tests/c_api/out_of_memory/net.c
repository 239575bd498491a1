#include "programs.h"

tw_status* finish(tw_op* op, const tw_operation** out) {
  return op ? tw_op_finish(op, out) : tw_status_create(TW_RESOURCE_EXHAUSTED, "no builder");
}

void end_net(net* n) {
  tw_session_destroy(n->session);
  tw_graph_destroy(n->graph);
  tw_tensor_release(n->x);
}

tw_status* make_net(net* n, trainer train, const char* container) {
  const int64_t dims[] = {-1, 3}, shape[] = {3, 2};
  const float values[] = {1, 2, 3, 4, 5, 6};
  const char* options[] = {container};
  tw_gradient g = {0, 0};
  tw_tensor* t = NULL;
  tw_scope* s = NULL;
  tw_status* status = NULL;
  TRY(tw_graph_create(runtime, &n->graph));
  TRY(tw_tensor_create_copy(TW_FLOAT, shape, 2, values, sizeof values, &t));
  s = tw_scope_create(n->graph, "net");
  n->in = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  n->w = tw_variable_create(s, "w", tw_scope_constant(s, t));
  const tw_output y = tw_scope_op2(s, "MatMul", n->in, tw_variable_read(s, n->w));
  const int32_t axes[] = {0, 1};
  n->loss = tw_scope_op2(s, "Mean", tw_scope_op1(s, "Square", y), tw_scope_ints(s, axes, 2));
  if (train) tw_scope_gradients(s, n->loss, &n->w, 1, &g);
  if (train) n->train = train(s, &n->w, &g);
  n->init = tw_variable_initializer(s, "init");
  status = tw_scope_finish(s);
  if (status) goto done;
  TRY(tw_session_create(n->graph, options, 1, &n->session));
  const int64_t fed[] = {2, 3};
  TRY(tw_tensor_create_copy(TW_FLOAT, fed, 2, values, sizeof values, &n->x));
done:
  tw_tensor_release(t);
  return status;
}

tw_status* run_target(net* n, const tw_operation* target, tw_output fetch, tw_tensor** out) {
  const tw_signature what = {.size = sizeof what,
                             .feeds = &n->in,
                             .n_feeds = 1,
                             .fetches = &fetch,
                             .n_fetches = out != NULL,
                             .targets = &target,
                             .n_targets = target != NULL};
  return tw_session_run(n->session, &what, &n->x, NULL, out);
}

tw_status* steps(trainer train, const char* container) {
  net n = {0};
  tw_tensor* out = NULL;
  tw_status* status = NULL;
  TRY(make_net(&n, train, container));
  TRY(run_target(&n, n.init, 0, NULL));
  for (int i = 0; i < 2 && n.train; ++i) TRY(run_target(&n, n.train, 0, NULL));
  TRY(run_target(&n, NULL, n.loss, &out));
done:
  tw_tensor_release(out);
  end_net(&n);
  return status;
}
