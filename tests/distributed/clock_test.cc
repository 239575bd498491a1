// Tests the real clock: callbacks run at their times, in order, and a forgotten callback does not
// wake the clock's thread.
#include "distributed/clock.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include <sys/syscall.h>

namespace thalweg::distributed {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Returns how often a thread of this process has gone to sleep.
int64_t SleepsOf(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string word; in >> word;) {
    if (word != "voluntary_ctxt_switches:") continue;
    int64_t n = -1;
    in >> n;
    return n;
  }
  return -1;
}

TEST(Clock, CallsInTheOrderOfTimesWhateverTheOrderOfTheirComing) {
  SystemClock clock;
  std::mutex mu;
  std::condition_variable changed;
  std::vector<int> order;
  const auto say = [&](int n) {
    return [&, n] {
      std::lock_guard lock(mu);
      order.push_back(n);
      changed.notify_all();
    };
  };
  const int64_t now = clock.Now();
  clock.At(now + kSecond / 10, say(3));
  clock.At(now + kSecond / 20, say(2));
  const uint64_t dropped = clock.At(now + kSecond / 50, say(0));
  clock.Soon(say(1));
  clock.Forget(dropped);
  std::unique_lock lock(mu);
  changed.wait(lock, [&] { return order.size() == 3; });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Adds a time before the one that the clock's thread sleeps until, which was forgotten meanwhile.
TEST(Clock, AnEarlierTimeThanTheOneThatWasForgottenIsKept) {
  SystemClock clock;
  clock.Forget(clock.At(clock.Now() + 3600 * kSecond, [] {}));
  std::promise<void> called;
  const int64_t began = clock.Now();
  clock.At(began + kSecond / 100, [&] { called.set_value(); });
  called.get_future().wait();
  EXPECT_LT(clock.Now() - began, 60 * kSecond);
}

// Each call over a transport has a deadline and usually ends long before it.
TEST(Clock, DeadlinesThatAreForgottenDoNotWakeItsThread) {
  SystemClock clock;
  std::promise<pid_t> thread;
  clock.Soon([&] { thread.set_value(pid_t(syscall(SYS_gettid))); });
  const pid_t its = thread.get_future().get();
  constexpr int kCalls = 2000;
  const int64_t before = SleepsOf(its);
  for (int i = 0; i < kCalls; ++i) {
    const uint64_t name = clock.At(clock.Now() + 3600 * kSecond, [] {});
    usleep(50);  // gives a woken thread time to sleep again
    clock.Forget(name);
  }
  ASSERT_GE(before, 0);
  EXPECT_LE(SleepsOf(its) - before, kCalls / 10);
}

}  // namespace
}  // namespace thalweg::distributed
