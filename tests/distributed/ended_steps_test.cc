// After a step has failed, in whatever way, none of its work still runs when the session's next
// step begins.
#define THALWEG_STATIC hold
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/relay.h"
#include "tests/distributed/servers.h"
#include "thalweg/cpp/plugin.hpp"

namespace {

// The state of a kernel that ignores cancellation.
std::atomic<bool> begun{false}, let_go{false}, ended{false};

void Hold(tw::Out<bool> is_ended) {
  begun = true;
  while (!let_go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  is_ended[0] = ended = true;
}
void Ended(tw::Out<bool> is_ended) { is_ended[0] = ended; }

}  // namespace

TW_CPP_PLUGIN("org.thalweg.test.hold", "1.0", p) {
  p.op("Hold() -> (ended: bool[]); stateful; no_gradient \"it has no inputs\"");
  p.op("Ended() -> (ended: bool[]); stateful; no_gradient \"it has no inputs\"");
  p.kernel<Hold>("Hold @CPU");
  p.kernel<Ended>("Ended @CPU");
}

namespace thalweg::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

tw::Runtime RuntimeWithHold() {
  const char* const options[] = {"threads=2"};
  const tw_linked_plugin plugins[] = {tw_plugin_query_v0_hold};
  tw_runtime_config config = {};
  config.size = sizeof config;
  config.options = options;
  config.n_options = 1;
  config.plugins = plugins;
  config.n_plugins = 1;
  tw::Runtime runtime(config);
  runtime.load_plugin(Transport());
  return runtime;
}

// Two tasks; the second, which runs all operations, is reached through a relay.
class EndedSteps : public ::testing::Test {
 protected:
  EndedSteps() {
    begun = let_go = ended = false;
    static int count = 0;
    const std::string id = "e" + std::to_string(getpid()) + "-" + std::to_string(++count);
    first_at_ = NewAddress(id + "-w0");
    const std::string second_at = NewAddress(id + "-w1"), link_at = NewAddress(id + "-r1");
    const auto cluster = [&](const std::string& second) { return R"({"worker": [")" + first_at_ + R"(", ")" + second + R"("]})"; };
    link_ = std::make_unique<Relay>(link_at, second_at);
    first_ = std::make_unique<tw::Server>(RuntimeWithHold(), cluster(link_at), "worker", 0);
    second_ = std::make_unique<tw::Server>(RuntimeWithHold(), cluster(second_at), "worker", 1);
    tw::Scope s(graph_);
    s.on(Servers::task(1).c_str());
    hold_ = s.op("Hold", {});
    ended_ = s.op("Ended", {});
    s.finish();
  }
  ~EndedSteps() override { let_go = true; }
  tw::Session NewSession() const {
    const std::string target = "target=" + first_at_;
    return tw::Session(graph_, {target.c_str()});
  }
  static bool Fetch(tw::Session& session, tw_output what, const tw_run_options* options = nullptr) {
    return session.run({}, {what}, {}, options)[0].data<bool>()[0];
  }
  // Runs a step whose deadline passes while the kernel runs; on a busy machine it may pass before.
  void FailByTime(tw::Session& session) const {
    const tw_run_options until = Within(200);
    for (int i = 0; i < 50 && !begun; ++i) {
      EXPECT_EQ(FailureOf([&] { Fetch(session, hold_, &until); }).code, uint32_t{TW_DEADLINE_EXCEEDED});
    }
    ASSERT_TRUE(begun);
  }
  // Releases the kernel after a while.
  static std::thread LetGoLater() {
    return std::thread([] {
      std::this_thread::sleep_for(100ms);
      let_go = true;
    });
  }
  static void AwaitBegun() {
    while (!begun) std::this_thread::sleep_for(1ms);
  }
  std::string first_at_;
  std::unique_ptr<Relay> link_;
  std::unique_ptr<tw::Server> first_, second_;
  tw::Runtime client_ = RuntimeWithHold();
  tw::Graph graph_{client_};
  tw_output hold_ = 0, ended_ = 0;
};

TEST_F(EndedSteps, WhoseTimeIsOverAreWaitedForByTheNext) {
  tw::Session session = NewSession();
  EXPECT_FALSE(Fetch(session, ended_));
  FailByTime(session);
  const tw_run_options until = Within(200);
  EXPECT_EQ(FailureOf([&] { Fetch(session, ended_, &until); }).code, uint32_t{TW_DEADLINE_EXCEEDED});  // the step did not begin
  std::thread later = LetGoLater();
  EXPECT_TRUE(Fetch(session, ended_));
  later.join();
}

TEST_F(EndedSteps, WhoseConnectionBrokeAreWaitedForByTheNext) {
  tw::Session session = NewSession();
  EXPECT_FALSE(Fetch(session, ended_));
  std::thread breaks([&] {
    AwaitBegun();
    link_->Cut();
  });
  EXPECT_EQ(FailureOf([&] { Fetch(session, hold_); }).code, uint32_t{TW_UNAVAILABLE});
  breaks.join();
  std::thread later = LetGoLater();
  bool found = false;
  Failure f;
  for (int i = 0; i < 5; ++i) {
    f = FailureOf([&] { found = Fetch(session, ended_); });
    if (f.text.empty()) break;
    EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE}) << f.text;
  }
  EXPECT_EQ(f.text, "");
  EXPECT_TRUE(found);
  later.join();
}

TEST_F(EndedSteps, OfASessionThatIsClosedAreWaitedFor) {
  tw::Session next = NewSession();
  EXPECT_FALSE(Fetch(next, ended_));
  std::thread later;
  {
    tw::Session session = NewSession();
    FailByTime(session);
    later = LetGoLater();
  }
  EXPECT_TRUE(Fetch(next, ended_));
  later.join();
}

TEST_F(EndedSteps, ThatDoNotEndFailTheNextInBoundedTime) {
  tw::Session session = NewSession();
  FailByTime(session);
  const Failure f = FailureOf([&] { Fetch(session, ended_); });
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(f.text,
              HasSubstr("is still at work for an earlier step of this session, which failed, after 10 s; run this one again later"));
  EXPECT_LT(f.seconds, 30);
  let_go = true;
  EXPECT_TRUE(Fetch(session, ended_));
}

}  // namespace
}  // namespace thalweg::testing
