// The doorbell on which a process sleeps, and the thread that sleeps: a ring always wakes it, even
// if the ringing process dies or is slow.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include <sys/prctl.h>
#include <sys/wait.h>

#include "doorbell.h"
#include "ring_poller.h"

namespace thalweg::grpc_transport {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST(Doorbell, WhoRangIsKnownOnceAfterwards) {
  const auto mine = Doorbell::Make();
  ASSERT_NE(mine, nullptr);
  const auto theirs = Doorbell::Open(mine->name());
  ASSERT_NE(theirs, nullptr);
  EXPECT_FALSE(mine->rung(kRingers / 64));
  theirs->Ring(3);
  theirs->Ring(3);
  theirs->Ring(kRingers - 1);
  EXPECT_TRUE(mine->rung(1));
  EXPECT_EQ(mine->Take(0), uint64_t{1} << 3);
  EXPECT_EQ(mine->Take(0), 0u);
  EXPECT_FALSE(mine->rung(1));
  EXPECT_EQ(mine->Take(kRingers / 64 - 1), uint64_t{1} << 63);
}

TEST(Doorbell, ASleepEndsWhenItRingsAndNotBefore) {
  const auto bell = Doorbell::Make();
  ASSERT_NE(bell, nullptr);
  bell->Settle();
  auto began = steady_clock::now();
  bell->Sleep(30ms);
  EXPECT_GE(steady_clock::now() - began, 20ms);  // woke early without a reason at most once
  bell->Settle();
  bell->Ring(0);
  began = steady_clock::now();
  bell->Sleep(10s);  // somebody rang in the meantime
  EXPECT_LT(steady_clock::now() - began, 5s);
}

// Two processes ring each other in turn.
TEST(Doorbell, ProcessesWakeEachOther) {
  constexpr int kRounds = 5000;
  const auto mine = Doorbell::Make();
  ASSERT_NE(mine, nullptr);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto wait = [](Doorbell* bell) {
    const auto until = steady_clock::now() + 20s;
    while (bell->Take(0) == 0) {
      bell->Settle();
      if (!bell->rung(1)) bell->Sleep(10s);
      bell->Stay();
      if (steady_clock::now() > until) return false;
    }
    return true;
  };
  const MemoryName name = mine->name();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const auto own = Doorbell::Make(), theirs = Doorbell::Open(name);
    if (!own || !theirs || write(ends[1], &own->name(), sizeof(MemoryName)) != ssize_t(sizeof(MemoryName))) _exit(1);
    for (int i = 0; i < kRounds; ++i) {
      if (!wait(own.get())) _exit(2);
      theirs->Ring(1);
    }
    _exit(0);
  }
  close(ends[1]);  // if the child dies, the read ends
  MemoryName of_child;
  ASSERT_EQ(read(ends[0], &of_child, sizeof of_child), ssize_t(sizeof of_child));
  const auto theirs = Doorbell::Open(of_child);
  ASSERT_NE(theirs, nullptr);
  int i = 0;
  for (; i < kRounds; ++i) {
    theirs->Ring(0);
    if (!wait(mine.get())) break;
  }
  EXPECT_EQ(i, kRounds);
  if (i < kRounds) kill(child, SIGKILL);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(ends[0]);
}

// Counts its calls.
struct Ear final : RingPoller::Listener {
  bool Hear() override {
    heard.fetch_add(1);
    if (throws) throw std::runtime_error("it has heard too much");
    return more.exchange(false);
  }
  std::atomic<int> heard{0};
  std::atomic<bool> more{false}, throws{false};
};

// Returns true if the condition becomes true in time.
template <typename F>
bool Soon(F f) {
  const auto until = steady_clock::now() + 20s;
  while (!f()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

// Measures how long the machine delays a thread that wakes each millisecond. If another thread was
// late while this one was, too, the machine was busy and no ring was lost.
class Machine {
 public:
  Machine() : thread_([this] { Look(); }) {}
  ~Machine() {
    stop_ = true;
    thread_.join();
  }
  // Starts a measurement.
  steady_clock::time_point Begin() {
    std::lock_guard lock(mu_);
    lag_ = {};
    return began_ = steady_clock::now();
  }
  // Returns true if the time since Begin exceeds `most` and the machine's delays do not explain it.
  bool Slow(steady_clock::duration most) {
    const auto now = steady_clock::now();
    std::unique_lock lock(mu_);
    if (now - began_ <= most) return false;
    turned_.wait(lock, [&, turns = turns_] { return turns_ != turns; });  // the thread may still be delayed
    return lag_ < (now - began_) / 4;
  }

 private:
  void Look() {
    for (auto last = steady_clock::now(); !stop_;) {
      std::this_thread::sleep_for(1ms);
      const auto now = steady_clock::now();
      std::lock_guard lock(mu_);
      lag_ = std::max(lag_, now - std::max(last, began_));
      last = now;
      ++turns_;
      turned_.notify_all();
    }
  }
  std::mutex mu_;
  std::condition_variable turned_;
  steady_clock::time_point began_{};
  steady_clock::duration lag_{};  // the longest delay since Begin
  uint64_t turns_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(RingPoller, ListenersHearTheirOwn) {
  const auto poller = RingPoller::Make(0);
  ASSERT_NE(poller, nullptr);
  const auto bell = Doorbell::Open(poller->name());
  ASSERT_NE(bell, nullptr);
  EXPECT_FALSE(poller->any());
  std::vector<std::shared_ptr<Ear>> ears(150);
  std::vector<uint32_t> numbers;
  for (auto& ear : ears) {
    ear = std::make_shared<Ear>();
    numbers.push_back(poller->Add(ear, ear.get()));
  }
  EXPECT_TRUE(poller->any());
  bell->Ring(numbers[0]);
  bell->Ring(numbers[149]);
  EXPECT_TRUE(Soon([&] { return ears[0]->heard == 1 && ears[149]->heard == 1; }));
  ears[7]->more = true;
  bell->Ring(numbers[7]);
  EXPECT_TRUE(Soon([&] { return ears[7]->heard == 2; }));  // it had more to hear
  EXPECT_EQ(ears[8]->heard, 0);
  bell->Ring(kRingers - 1);  // nobody owns the number
  for (uint32_t n : numbers) poller->Remove(n);
  EXPECT_FALSE(poller->any());
  const auto again = std::make_shared<Ear>();
  const uint32_t number = poller->Add(again, again.get());
  EXPECT_LT(number, 150u);  // numbers are reused
  bell->Ring(number);
  EXPECT_TRUE(Soon([&] { return again->heard == 1; }));
  poller->Remove(number);
}

TEST(RingPoller, WhatAListenerThrowsIsItsOwnLoss) {
  const auto poller = RingPoller::Make(0);
  ASSERT_NE(poller, nullptr);
  const auto bad = std::make_shared<Ear>(), good = std::make_shared<Ear>();
  bad->throws = true;
  const uint32_t number_of_bad = poller->Add(bad, bad.get()), number = poller->Add(good, good.get());
  for (int i = 1; i <= 3; ++i) {
    poller->Tell(number_of_bad);
    poller->Tell(number);
    EXPECT_TRUE(Soon([&] { return bad->heard >= i && good->heard >= i; })) << i;
  }
  poller->Remove(number_of_bad);
  poller->Remove(number);
}

// The stack size exceeds the address space, so no thread can start.
TEST(RingPoller, WhereNoThreadCanBeStartedThereIsNone) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&huge);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const auto none = RingPoller::Make(0);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(RingPoller::Make(0), nullptr);
}

TEST(Chores, GoOnAfterOneHasThrown) {
  Chores chores;
  std::atomic<int> done{0};
  chores.Add([&] { ++done; });
  chores.Add([] { throw std::runtime_error("it cannot be done"); });
  chores.Add([&] { ++done; });
  chores.Stop();
  EXPECT_EQ(done, 2);
}

// Returns how often that thread of this process has gone to sleep.
int64_t SleepsOf(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/status");
  int64_t n = -1;
  for (std::string word; in >> word;) {
    if (word == "voluntary_ctxt_switches:") in >> n;
  }
  return n;
}

// Chores follow each answer.
TEST(Chores, ThatCanWaitAreDoneSoonAndDoNotWakeTheThreadForEach) {
  constexpr int kMany = 1000;
  Chores chores;
  std::promise<pid_t> its;
  chores.Add([&] { its.set_value(gettid()); });
  const pid_t thread = its.get_future().get();
  std::atomic<int> done{0};
  std::promise<void> last;
  const int64_t before = SleepsOf(thread);
  for (int i = 0; i < kMany; ++i) {
    chores.AddSoon([&] {
      if (++done == kMany) last.set_value();
    });
    usleep(50);  // gives a woken thread time to sleep again
  }
  last.get_future().wait();
  ASSERT_GE(before, 0);
  EXPECT_LT(SleepsOf(thread) - before, kMany / 2);
  chores.AddSoon([&] { ++done; });
  chores.Stop();
  EXPECT_EQ(done, kMany + 1);
}

// One thread rings and waits until the ring was heard; another thread is lent now and then, with
// wakes of its own. A lost ring would cost a second.
TEST(RingPoller, NoRingIsLostWhoeverWatches) {
  const auto poller = RingPoller::Make(0);
  ASSERT_NE(poller, nullptr);
  const auto bell = Doorbell::Open(poller->name());
  const auto ear = std::make_shared<Ear>();
  const uint32_t number = poller->Add(ear, ear.get());
  std::atomic<bool> stop{false};
  std::atomic<int> loans{0};
  std::thread lends([&] {
    while (!stop) {
      const int until = ear->heard + 20;
      struct Arg {
        Ear* ear;
        int until;
        std::atomic<bool>* stop;
      } arg = {ear.get(), until, &stop};
      const auto over = [](void* a) -> uint32_t {
        auto* it = static_cast<Arg*>(a);
        return it->ear->heard >= it->until || *it->stop;
      };
      if (poller->Lend(1'000'000'000, over, &arg)) ++loans;
      std::this_thread::yield();
    }
  });
  Machine machine;
  int slow = 0;
  const auto enough = steady_clock::now() + 60s;  // a busy machine is slower
  for (int i = 1; i <= 30000 && (i <= 3000 || steady_clock::now() < enough); ++i) {
    const auto began = machine.Begin();
    bell->Ring(number);
    while (ear->heard < i) {
      if (steady_clock::now() - began > 20s) break;
      std::this_thread::yield();
    }
    ASSERT_GE(ear->heard, i);
    slow += machine.Slow(900ms);
    if (i % 50 == 0) poller->Wake();
  }
  EXPECT_LE(slow, 5);
  EXPECT_GT(loans, 10);
  stop = true;
  poller->Wake();
  lends.join();
  poller->Remove(number);
}

TEST(RingPoller, AThreadThatIsLentGoesOnWhenItIsWoken) {
  const auto poller = RingPoller::Make(0);
  ASSERT_NE(poller, nullptr);
  Machine machine;
  int slow = 0;
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> over{false};
    std::thread lent([&] {
      while (!over) poller->Lend(1'000'000'000, [](void* arg) -> uint32_t { return *static_cast<std::atomic<bool>*>(arg); }, &over);
    });
    if (i % 2) std::this_thread::sleep_for(1ms);
    machine.Begin();
    over = true;
    poller->Wake();
    lent.join();
    slow += machine.Slow(900ms);
  }
  EXPECT_LE(slow, 5);
}

// A process that dies while it rings must not leave a thread asleep: other rings are heard.
TEST(RingPoller, WhoDiesAsItRingsLeavesNobodyAsleep) {
  const auto poller = RingPoller::Make(0);
  ASSERT_NE(poller, nullptr);
  const auto ear = std::make_shared<Ear>(), other = std::make_shared<Ear>();
  const uint32_t number = poller->Add(ear, ear.get()), number_of_other = poller->Add(other, other.get());
  const auto bell = Doorbell::Open(poller->name());
  const MemoryName name = poller->name();
  Machine machine;
  int slow = 0;
  for (int i = 1; i <= 100; ++i) {
    const int before = ear->heard;
    const pid_t test = getpid(), child = fork();
    if (child == 0) {
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != test) _exit(1);  // does not ring for ever if the test is killed
      const auto theirs = Doorbell::Open(name);
      if (!theirs) _exit(1);
      for (;;) theirs->Ring(number);
    }
    ASSERT_TRUE(Soon([&] { return ear->heard > before; }));
    std::this_thread::sleep_for(std::chrono::microseconds(37 * i));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    machine.Begin();
    bell->Ring(number_of_other);
    ASSERT_TRUE(Soon([&] { return other->heard >= i; }));
    slow += machine.Slow(500ms);
  }
  EXPECT_LE(slow, 5);
  poller->Remove(number);
  poller->Remove(number_of_other);
}

}  // namespace
}  // namespace thalweg::grpc_transport
