// Callbacks at a time and at the end of a step, and the set of the host table that offers them.
#include "framework/runtime/later_calls.h"

#include <condition_variable>
#include <mutex>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/cancel.h"
#include "framework/runtime/host/host_table.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/frame.h"
#include "tests/framework/support/fakes.h"
#include "thalweg/plugin/callback.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::TakeText;

struct Step final : StepBase {
  void Complete(uint64_t, Status) override {}
};

// Counts calls, which tests wait for.
struct Bell {
  static void Ring(void* bell) {
    auto* b = static_cast<Bell*>(bell);
    std::lock_guard lock(b->mu);
    ++b->rung;
    b->changed.notify_all();
  }
  void Await(int n) {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return rung >= n; });
  }
  std::mutex mu;
  std::condition_variable changed;
  int rung = 0;
};

LaterCalls& Calls() { return LaterCalls::Get(); }

TEST(LaterCallsTest, CallsInTheOrderOfTimesAndKeepsTheCodeUntilThen) {
  struct Note {
    std::vector<int>* all;
    int number;
    Bell* bell;
  };
  const auto write = [](void* p) {
    const auto* n = static_cast<const Note*>(p);
    n->all->push_back(n->number);
    Bell::Ring(n->bell);
  };
  std::vector<int> all;
  Bell bell;
  Note notes[] = {{&all, 2, &bell}, {&all, 1, &bell}, {&all, 0, &bell}};
  auto pin = std::make_shared<int>();
  const int64_t now = MonotonicNs();
  const uint64_t later = Calls().At(now + 20'000'000, write, &notes[0], pin);
  Calls().At(now + 10'000'000, write, &notes[1], pin);
  Calls().At(0, write, &notes[2], pin);
  bell.Await(3);
  EXPECT_GE(MonotonicNs(), now + 20'000'000);
  EXPECT_THAT(all, ElementsAre(0, 1, 2));
  EXPECT_FALSE(Calls().Forget(later));  // waits for its end
  EXPECT_EQ(pin.use_count(), 1);
}

TEST(LaterCallsTest, AForgottenCallNeverComes) {
  Bell bell;
  auto pin = std::make_shared<int>();
  const uint64_t id = Calls().At(MonotonicNs() + 3'600'000'000'000, Bell::Ring, &bell, pin);
  EXPECT_EQ(pin.use_count(), 2);
  EXPECT_TRUE(Calls().Forget(id));
  EXPECT_EQ(pin.use_count(), 1);
  EXPECT_FALSE(Calls().Forget(id));
  EXPECT_EQ(bell.rung, 0);
}

TEST(LaterCallsTest, ACancelledStepIsToldOnTheThreadThatCancels) {
  CancelToken token, other;
  Step step, of_other;
  step.cancel = &token;
  of_other.cancel = &other;
  Bell bell, silent;
  uint64_t first = 0, second = 0, quiet = 0;
  Calls().WhenInterrupted(step, Bell::Ring, &bell, nullptr, &first);
  Calls().WhenInterrupted(step, Bell::Ring, &bell, nullptr, &second);
  Calls().WhenInterrupted(of_other, Bell::Ring, &silent, nullptr, &quiet);
  token.Cancel();
  EXPECT_EQ(bell.rung, 2);
  EXPECT_FALSE(Calls().Forget(first));
  EXPECT_TRUE(Calls().Forget(quiet));
  other.Cancel();
  EXPECT_EQ(silent.rung, 0);
  Calls().WhenInterrupted(step, Bell::Ring, &bell, nullptr, &first);  // it is cancelled already
  EXPECT_EQ(bell.rung, 3);
}

TEST(LaterCallsTest, AStepPastItsDeadlineIsToldOnce) {
  CancelToken token;
  Step step;
  step.cancel = &token;
  step.deadline = MonotonicNs() + 5'000'000;
  Bell bell;
  uint64_t id = 0;
  Calls().WhenInterrupted(step, Bell::Ring, &bell, nullptr, &id);
  bell.Await(1);
  EXPECT_FALSE(Calls().Forget(id));
  token.Cancel();
  EXPECT_EQ(bell.rung, 1);
}

TEST(LaterCallsTest, ACallMayForgetItselfAndSetTheNext) {
  struct Own {
    uint64_t id = 0;
    int refused = 0;
    Bell next;
    static void Go(void* p) {
      auto* own = static_cast<Own*>(p);
      own->refused += !Calls().Forget(own->id);
      Calls().At(0, Bell::Ring, &own->next, nullptr);
    }
  } own;
  CancelToken token;
  token.Cancel();
  Step step;
  step.cancel = &token;
  Calls().WhenInterrupted(step, Own::Go, &own, nullptr, &own.id);
  EXPECT_EQ(own.refused, 1);
  own.next.Await(1);
}

TEST(LaterCallsTest, TheHostTableOffersThem) {
  RuntimeOptions options;
  options.threads = 2;
  options.load_plugins = false;
  auto runtime = Runtime::Create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const auto host = MakeHostTable(runtime->get(), "test", "", 0);
  const auto* api = static_cast<const tw_callback_api*>(host->query(host.get(), TW_S(TW_CALLBACK_SET), 1));
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(host->query(host.get(), TW_S(TW_CALLBACK_SET), 2), nullptr);
  Bell bell;
  uint64_t id = 0;
  EXPECT_EQ(TakeText(api->schedule(host.get(), Bell::Ring, &bell)), "");
  EXPECT_EQ(TakeText(api->at(host.get(), host->run->now(host.get()), Bell::Ring, &bell, &id)), "");
  bell.Await(2);
  EXPECT_EQ(api->forget(host.get(), id), 0u);
  EXPECT_EQ(TakeText(api->schedule(host.get(), nullptr, &bell)), "'work' is NULL");
  KernelFrame frame{};
  EXPECT_THAT(TakeText(api->when_cancelled(&frame.c, Bell::Ring, &bell, &id)), HasSubstr("is for asynchronous kernels"));
}

}  // namespace
}  // namespace thalweg
