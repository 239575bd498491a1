// Plans of 10,000 independent nodes, of a plugin's ops and of a built-in op; times the kernel, the
// boundary and the executor.
#include <string>
#include <vector>

#include "boundary_worker.h"
#include "thalweg/thalweg.h"

namespace {

tw_runtime* runtime;

void Check(tw_status* status) {
  if (status) worker_fail("%s", tw_status_message(status));
}

struct Prepared {
  tw_callable* callable = nullptr;
  tw_tensor* x = nullptr;
};

void RunOnce(void* user) {
  auto* p = static_cast<Prepared*>(user);
  Check(tw_callable_run(p->callable, &p->x, nullptr, nullptr));
}

// Adds the nodes of the graph: all of one op, on a scalar x or without inputs.
std::vector<const tw_operation*> AddNodes(tw_scope* s, const char* op, const tw_output* x) {
  std::vector<const tw_operation*> all;
  for (int i = 0; i < kNodes; ++i) {
    tw_op* node = tw_scope_begin(s, op, nullptr);
    if (x) tw_op_add_input(node, *x);
    all.push_back(tw_scope_end_operation(s, node));
  }
  return all;
}

tw_tensor* Scalar(float value) {
  tw_tensor* t;
  Check(tw_tensor_create_float(value, &t));
  return t;
}

// Checks that the last node computed 1 + 1.
void CheckResult(tw_session* session, tw_output x, tw_output y, tw_tensor* one) {
  const tw_signature what = {.size = sizeof what, .feeds = &x, .fetches = &y, .n_feeds = 1, .n_fetches = 1};
  tw_tensor* result;
  Check(tw_session_run(session, &what, &one, nullptr, &result));
  const float value = *static_cast<const float*>(tw_tensor_data(result));
  tw_tensor_release(result);
  if (value != 2) worker_fail("the op computes %g instead of 2", double(value));
}

Prepared Make(const char* op, bool takes_x) {
  if (!runtime) worker_fail("load comes first");
  tw_graph* graph;
  Check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, nullptr);
  tw_output x = 0;
  if (takes_x) x = tw_scope_placeholder(s, "x", TW_FLOAT, nullptr, 0);
  const auto all = AddNodes(s, op, takes_x ? &x : nullptr);
  const tw_operation* target = tw_scope_group(s, nullptr, all.data(), kNodes);
  Check(tw_scope_finish(s));
  const char* options[] = {"disable_pass=cse", "engine=fixed"};
  tw_session* session;
  Check(tw_session_create(graph, options, 2, &session));
  Prepared p;
  if (takes_x) {
    p.x = Scalar(1);
    CheckResult(session, x, tw_operation_output(all.back(), 0), p.x);
  }
  const tw_signature what = {.size = sizeof what, .feeds = &x, .targets = &target, .n_feeds = takes_x, .n_targets = 1};
  Check(tw_callable_create(session, &what, &p.callable));
  return p;
}

void Reply(Prepared* p, const char* op, bool takes_x, const char* argument) {
  if (!p->callable) *p = Make(op, takes_x);
  worker_reply_time(RunOnce, p, worker_number(argument), 1, kNodes);
}

}  // namespace

void LoadIntoRuntime(const char* plugin) {
  const char* options[] = {"threads=1"};
  Check(tw_runtime_create(options, 1, &runtime));
  Check(tw_plugin_load(runtime, plugin));
}

void AnswerBarePlan(const char* argument) {
  static Prepared p;
  Reply(&p, "IncrementBare", true, argument);
}
void AnswerSugarPlan(const char* argument) {
  static Prepared p;
  Reply(&p, "Increment", true, argument);
}
void AnswerEmptyPlan(const char* argument) {
  static Prepared p;
  Reply(&p, "Nothing", false, argument);
}
void AnswerBuiltInPlan(const char* argument) {
  static Prepared p;
  Reply(&p, "NoOp", false, argument);
}
