// Sessions over tasks that are destroyed in the callback of their last run.
#include <sched.h>

#include <chrono>
#include <future>

#include "gtest/gtest.h"

#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using namespace std::chrono_literals;

// Puts threads created during its lifetime on one processor, so that a thread that wakes another is
// often preempted there.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

tw_output Placed(
    tw::Scope& s, const char* type, const std::vector<tw_output>& in, const std::function<void(tw_op*)>& describe = [](tw_op*) {}) {
  s.on(Servers::task(0).c_str());
  const tw_output out = s.op(type, in, describe);
  s.on("");
  return out;
}

// A run and its result.
struct AsyncRun {
  tw_session* session = nullptr;  // the callback destroys it
  uint32_t code = TW_OK;
  std::string text;
  std::promise<void> over;

  void Start(tw_output fetch, const tw_run_options* options) {
    tw_signature what = {};
    what.size = sizeof what;
    what.fetches = &fetch;
    what.n_fetches = 1;
    tw::raise(tw_session_run_async(session, &what, nullptr, options, Over, this));
  }
  static void Over(void* user, tw_status* status, tw_tensor** fetches) {
    auto* run = static_cast<AsyncRun*>(user);
    if (status) {
      run->code = tw_status_code(status);
      run->text = tw_status_message(status);
    }
    tw_status_release(status);
    tw_tensor_release(fetches[0]);
    tw_session_destroy(run->session);
    run->over.set_value();
  }
};

// Runs a value repeatedly, each time in a new session that its callback destroys.
void RunInSessionsOfTheirOwn(int times, const Servers& servers, const tw::Graph& graph, tw_output fetch, uint32_t code,
                             const tw_run_options* how = nullptr) {
  const std::string target = "target=" + servers.address(0);
  const char* const options[] = {target.c_str()};
  for (int i = 0; i < times; ++i) {
    AsyncRun run;
    tw::raise(tw_session_create(graph.c(), options, 1, &run.session));
    run.Start(fetch, how);
    ASSERT_EQ(run.over.get_future().wait_for(60s), std::future_status::ready) << i;
    ASSERT_EQ(run.code, code) << run.text;
  }
}

// Destroying the session waits for the transport's threads, so it must not happen on one of them.
TEST(SessionsThatEndInTheirLastCallback, LeaveTheThreadThatBroughtTheAnswer) {
  const OneProcessor one;
  const Servers servers(1);
  const tw::Runtime client = NewRuntime();
  tw::Graph graph(client);
  tw::Scope s(graph);
  const tw_output x = Placed(s, "Neg", {s.scalar(TW_FLOAT, 1)});
  s.finish();
  RunInSessionsOfTheirOwn(100, servers, graph, x, TW_OK);
}

// It must not happen on the clock's thread either.
TEST(SessionsThatEndInTheirLastCallback, LeaveTheThreadThatSawTheDeadline) {
  const OneProcessor one;
  const Servers servers(1);
  const tw::Runtime client = NewRuntime();
  tw::Graph graph(client);
  tw::Scope s(graph);
  const uint32_t type = TW_FLOAT;
  const auto of_floats = [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); };
  const tw_output never = Placed(s, "QueueDequeueV2", {Placed(s, "FIFOQueueV2", {}, of_floats)}, of_floats);
  s.finish();
  const tw_run_options within = Within(20);
  RunInSessionsOfTheirOwn(100, servers, graph, never, TW_DEADLINE_EXCEEDED, &within);
}

}  // namespace
}  // namespace thalweg::testing
