// A late message of a task that was lost and opened again does not affect the task's new session.
// The test plays the task.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/by_hand.h"
#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "/job:worker/task:0" with incarnation 7, of version "0.0.9"; 2 steps, 1 session.
const char* const kWhoItIs =
    "06000000776f726b657200000000070000000000000005000000302e302e390200000000000000"
    "0100000000000000";
// One tensor: float, [2], -1.5 and 2.
const char* const kTensors = "010000000100000001000000020000000000000008000000000000000000c0bf00000040";
constexpr int kAborted = 10, kUnavailable = 14;  // codes in messages

// In its first session it runs nothing: it keeps the first status request, and answers the
// session's watch with "it is gone", so that the client gives the task up. During the step of the
// second session it answers the kept request with "it was restarted".
class LateTask {
 public:
  explicit LateTask(const std::string& address) : address_(address), task_(address, [this](const Heard& h) { Serve(h); }) {}

 private:
  void Serve(const Heard& h) {
    switch (h.method()) {
      case kHello: return h.Answer(Good(OfHex(kWhoItIs)), "{\"worker\": [\"" + address_ + "\"]}");
      case kOpen: return ++opened_, h.Answer(Good());
      case kWatch:
        if (opened_ == 1) watch_ = h;
        return;
      case kRegister: return h.Answer(Good(Number(uint64_t{1}) + Number(uint64_t{9})));
      case kRun:
        if (opened_ == 1) return;
        if (question_.fd >= 0) question_.Answer(Failed(kAborted, "it was restarted, long ago"));
        return h.Answer(Good(), OfHex(kTensors));
      case kStatus:
        if (opened_ > 1 || question_.fd >= 0) return;
        question_ = h;
        return watch_.Answer(Failed(kUnavailable, "it is gone"));
      default: return h.Answer(Good());
    }
  }
  const std::string address_;
  int opened_ = 0;
  Heard watch_, question_;
  const TaskByHand task_;
};

TEST(LateWords, ASignOfLifeThatWasAskedForEarlierEndsNoStepOfTheNextSession) {
  const std::string address = NewAddress("late" + std::to_string(getpid()));
  const LateTask task(address);
  tw::Runtime runtime = NewRuntime();
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1}), y = s.op("Neg", {x});
  s.finish();
  const std::string target = "target=" + address;
  tw::Session session(graph, {target.c_str(), "progress_timeout_ms=40"});  // makes it ask for the status every 10 ms
  const auto run = [&] { return session.run({{x, tw::Tensor({2}, std::vector<float>{1.5, -2})}}, {y}); };
  const Failure f = FailureOf([&] { run(); });
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(f.text, HasSubstr("it is gone"));
  EXPECT_THAT(run()[0].values<float>(), ElementsAre(-1.5f, 2.f));
}

}  // namespace
}  // namespace thalweg::testing
