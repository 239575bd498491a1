#include "framework/runtime/thread_pool.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using Parts = std::vector<std::pair<uint64_t, uint64_t>>;

// Returns the parts that Parallel made, ordered by their begin.
Parts PartsOf(ThreadPool& pool, uint64_t n, uint64_t grain) {
  struct Seen {
    std::mutex mu;
    Parts parts;
  } seen;
  pool.Parallel(
      n, grain,
      [](void* arg, uint64_t b, uint64_t e) {
        auto* s = static_cast<Seen*>(arg);
        std::lock_guard lock(s->mu);
        s->parts.emplace_back(b, e);
      },
      &seen);
  std::sort(seen.parts.begin(), seen.parts.end());
  return seen.parts;
}

TEST(ThreadPoolTest, CoversEveryElementOnce) {
  for (uint32_t threads : {1u, 2u, 4u}) {
    ThreadPool pool(threads);
    for (uint64_t n : {0ull, 1ull, 7ull, 64ull, 1000ull}) {
      for (uint64_t grain : {0ull, 1ull, 3ull, 64ull, 5000ull}) {
        uint64_t at = 0;
        for (auto [b, e] : PartsOf(pool, n, grain)) {
          EXPECT_EQ(b, at);
          EXPECT_LT(b, e);
          at = e;
        }
        EXPECT_EQ(at, n) << threads << " threads, grain " << grain;
      }
    }
  }
}

TEST(ThreadPoolTest, CutsPiecesOfTheGrain) {
  ThreadPool pool(2);
  EXPECT_EQ(PartsOf(pool, 10, 4), (Parts{{0, 4}, {4, 8}, {8, 10}}));
}

TEST(ThreadPoolTest, SurvivesTheLargestLoop) {
  ThreadPool pool(2);
  EXPECT_EQ(PartsOf(pool, ~0ull, 1ull << 63), (Parts{{0, 1ull << 63}, {1ull << 63, ~0ull}}));
}

TEST(ThreadPoolTest, RunsEverythingOnTheCallerWithOneThread) {
  ThreadPool pool(1);
  EXPECT_EQ(pool.threads(), 1u);
  EXPECT_FALSE(pool.hungry());
  std::set<std::thread::id> who;
  pool.Parallel(
      100, 1, [](void* arg, uint64_t, uint64_t) { static_cast<std::set<std::thread::id>*>(arg)->insert(std::this_thread::get_id()); },
      &who);
  EXPECT_EQ(who, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(ThreadPoolTest, TakesAsManyThreadsAsItMayUseCpusByDefault) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(ThreadPool(0).threads(), uint32_t(CPU_COUNT(&all)));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  std::thread([&] {
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(ThreadPool(0).threads(), 1u);
  }).join();
}

// Two pieces that wait for each other: only two threads can run them.
void MeetInALoop(ThreadPool* pool) {
  std::atomic<int> inside{0};
  pool->Parallel(
      2, 1,
      [](void* arg, uint64_t, uint64_t) {
        auto* in = static_cast<std::atomic<int>*>(arg);
        ++*in;
        while (*in < 2) std::this_thread::yield();
      },
      &inside);
  EXPECT_EQ(inside, 2);
}

TEST(ThreadPoolTest, WakesASleepingWorkerForALoop) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 2));  // the worker sleeps or still spins
    MeetInALoop(&pool);
  }
}

TEST(ThreadPoolTest, RunsLoopsInsideLoops) {
  ThreadPool pool(3);
  struct Shared {
    ThreadPool* pool;
    std::atomic<uint64_t> sum{0};
  } shared{&pool, {}};
  auto inner = [](void* arg, uint64_t b, uint64_t e) {
    for (uint64_t i = b; i < e; ++i) static_cast<Shared*>(arg)->sum += i;
  };
  struct Outer {
    Shared* shared;
    void (*inner)(void*, uint64_t, uint64_t);
  } outer{&shared, inner};
  pool.Parallel(
      50, 1,
      [](void* arg, uint64_t b, uint64_t e) {
        auto* o = static_cast<Outer*>(arg);
        for (uint64_t i = b; i < e; ++i) o->shared->pool->Parallel(100, 7, o->inner, o->shared);
      },
      &outer);
  EXPECT_EQ(shared.sum, 50u * (99 * 100 / 2));
}

TEST(ThreadPoolTest, ServesSeveralCallersAtOnce) {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  std::atomic<uint64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        pool.Parallel(16, 1, [](void* arg, uint64_t b, uint64_t e) { *static_cast<std::atomic<uint64_t>*>(arg) += e - b; }, &sum);
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 4u * 200 * 16);
}

// A Joint with tickets, which stand for an executor's ready nodes.
class Tickets final : public ThreadPool::Joint {
 public:
  Tickets() : Joint(nullptr) {}
  bool Help() override {
    bool did = false;
    for (int n = left_.load(); n > 0;) {
      if (!left_.compare_exchange_weak(n, n - 1)) continue;
      done_.fetch_add(1);
      did = true;
      n = left_.load();
    }
    return did;
  }
  void Give(int n) { left_.fetch_add(n); }
  int done() const { return done_.load(); }

 private:
  std::atomic<int> left_{0}, done_{0};
};

TEST(ThreadPoolTest, HelpersTakeWhatAJointGives) {
  ThreadPool pool(2);
  Tickets t;
  t.Give(100);
  pool.Offer(&t, 1);
  while (t.done() < 100) std::this_thread::yield();  // this thread does nothing: a worker must come
  t.Give(50);
  pool.Offer(&t, 1);  // announces more work
  while (t.done() < 150) std::this_thread::yield();
  pool.Withdraw(&t);
  t.Give(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(t.done(), 150);
  pool.Withdraw(&t);  // a second call is harmless
}

TEST(ThreadPoolTest, PassesAJointThatHasNothingToGive) {
  ThreadPool pool(2);
  Tickets busy, idle;
  busy.Give(10);
  pool.Offer(&busy, 0);
  pool.Offer(&idle, 1);  // newer, so it is asked first
  while (busy.done() < 10) std::this_thread::yield();
  pool.Withdraw(&idle);
  pool.Withdraw(&busy);
}

TEST(ThreadPoolTest, GetsHungryAndFallsAsleep) {
  ThreadPool pool(2);
  Tickets t;
  t.Give(1);
  pool.Offer(&t, 1);
  while (t.done() < 1) std::this_thread::yield();
  pool.Withdraw(&t);
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (pool.hungry() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(pool.hungry());
}

// A Joint that records the CPU that helped it, and then has no more work.
class Place final : public ThreadPool::Joint {
 public:
  Place() : Joint(nullptr) {}
  bool Help() override {
    if (cpu_.load() >= 0) return false;
    CPU_ZERO(&may_);
    sched_getaffinity(0, sizeof may_, &may_);
    cpu_.store(sched_getcpu());
    return true;
  }
  int Await() const {
    while (cpu_.load() < 0) {  // computes, so that the thread keeps its CPU
    }
    return cpu_.load();
  }
  const cpu_set_t& may() const { return may_; }

 private:
  std::atomic<int> cpu_{-1};
  cpu_set_t may_;
};

TEST(ThreadPoolTest, AWorkerWakesBesideTheOneWhoWakesIt) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  ThreadPool pool(2);
  cpu_set_t here;
  CPU_ZERO(&here);
  const int cpu = sched_getcpu();
  CPU_SET(cpu, &here);
  ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
  int same = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Place place;
    pool.Offer(&place, 1);
    same += place.Await() == cpu;
    pool.Withdraw(&place);
    EXPECT_TRUE(CPU_EQUAL(&place.may(), &all)) << "a worker must be free again once it is awake";
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_LE(same, kRounds / 4);
}

TEST(ThreadPoolTest, BlockingCallsDoNotWaitForEachOther) {
  ThreadPool pool(1);
  std::promise<void> first, second;
  pool.Blocking([&] {
    second.get_future().wait();
    first.set_value();
  });
  pool.Blocking([&] { second.set_value(); });
  first.get_future().wait();
}

TEST(ThreadPoolTest, FinishesBlockingCallsBeforeItGoes) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(2);
    for (int i = 0; i < 20; ++i) {
      pool.Blocking([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 20);
}

TEST(ThreadPoolTest, DoesNotWaitForAThreadThatIsGivenUp) {
  struct Shared {
    std::promise<std::thread::id> begun;
    std::promise<void> go, done;
  };
  auto shared = std::make_shared<Shared>();
  std::future<void> done = shared->done.get_future();
  {
    ThreadPool pool(2);
    pool.GiveUp(std::this_thread::get_id());  // none of its threads
    pool.Blocking([shared] {
      shared->begun.set_value(std::this_thread::get_id());
      shared->go.get_future().wait();
      shared->done.set_value();
    });
    const std::thread::id thread = shared->begun.get_future().get();
    pool.GiveUp(thread);
    pool.GiveUp(thread);
  }
  shared->go.set_value();
  done.wait();
}

TEST(ThreadPoolTest, DoesNotWaitOnForAThreadThatIsGivenUpMeanwhile) {
  struct Shared {
    std::promise<void> begun, ended, go, done;
  };
  auto shared = std::make_shared<Shared>();
  std::future<void> done = shared->done.get_future();
  {
    ThreadPool pool(2);
    pool.Blocking([shared, &pool] {
      shared->begun.set_value();
      shared->ended.get_future().wait();
      pool.GiveUp(std::this_thread::get_id());  // its destructor waits for this thread
      shared->go.get_future().wait();
      shared->done.set_value();
    });
    shared->begun.get_future().wait();
    std::promise<void> ran;
    pool.Blocking([shared, &ran] {
      // The end of this idle thread says that the destructor has begun.
      static thread_local struct AtEnd {
        std::shared_ptr<Shared> shared;
        ~AtEnd() {
          if (shared) shared->ended.set_value();
        }
      } at_end;
      at_end.shared = shared;
      ran.set_value();
    });
    ran.get_future().wait();
  }
  shared->go.set_value();
  done.wait();
}

TEST(ThreadPoolTest, ReusesThreadsOfBlockingCalls) {
  ThreadPool pool(1);
  std::set<std::thread::id> who;
  for (int i = 0; i < 20; ++i) {
    std::promise<std::thread::id> id;
    pool.Blocking([&] { id.set_value(std::this_thread::get_id()); });
    who.insert(id.get_future().get());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until it is idle again
  }
  EXPECT_LT(who.size(), 10u);
}

// ---- Shares ----

// Records the joint of each piece of work, in order.
class Logged final : public ThreadPool::Joint {
 public:
  Logged(ThreadPool* pool, ThreadShare* share, int pieces, std::vector<int32_t>* log, std::mutex* mu)
      : Joint(share), pool_(pool), left_(pieces), log_(log), mu_(mu) {}
  bool Help() override {
    if (!One()) return false;
    while (!pool_->outranks(priority()) && One()) {
    }
    return true;
  }
  int left() const { return left_; }

 private:
  bool One() {
    std::lock_guard lock(*mu_);
    if (left_ == 0) return false;
    --left_;
    log_->push_back(priority());
    return true;
  }
  ThreadPool* pool_;
  std::atomic<int> left_;
  std::vector<int32_t>* log_;
  std::mutex* mu_;
};

// Keeps the workers that join it until it is opened.
class Hall final : public ThreadPool::Joint {
 public:
  explicit Hall(ThreadShare* share) : Joint(share) {}
  bool Help() override {
    ++inside;
    while (!open) std::this_thread::yield();
    --inside;
    return true;
  }
  std::atomic<int> inside{0};
  std::atomic<bool> open{false};
};

TEST(ThreadPoolTest, AShareBoundsHowManyJoin) {
  ThreadPool pool(4);
  ThreadShare two(3, 0);
  Hall hall(&two);
  pool.Offer(&hall, 1);
  while (hall.inside < 2) pool.Offer(&hall, 1);
  for (int i = 0; i < 20; ++i) {
    pool.Offer(&hall, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(hall.inside, 2);
  }
  EXPECT_FALSE(two.Join());
  hall.open = true;
  pool.Withdraw(&hall);
  EXPECT_TRUE(two.Join());  // all have left
}

TEST(ThreadPoolTest, ALoopKeepsToItsShare) {
  ThreadPool pool(4);
  ThreadShare two(2, 0);
  struct {
    std::atomic<int> inside{0}, most{0};
  } seen;
  for (int round = 0; round < 5; ++round) {
    pool.Parallel(
        40, 1,
        [](void* arg, uint64_t, uint64_t) {
          auto* s = static_cast<decltype(seen)*>(arg);
          const int now = ++s->inside;
          for (int most = s->most; most < now && !s->most.compare_exchange_weak(most, now);) {
          }
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          --s->inside;
        },
        &seen, &two);
  }
  EXPECT_EQ(seen.most, 2);
}

// One worker, kept busy until all joints are offered.
std::vector<int32_t> ServedOrder(std::vector<std::pair<int32_t, int>> offers) {
  ThreadPool pool(2);
  ThreadShare first(2, 10);
  Hall hall(&first);
  pool.Offer(&hall, 1);
  while (hall.inside == 0) pool.Offer(&hall, 1);
  std::vector<int32_t> log;
  std::mutex mu;
  std::vector<std::unique_ptr<ThreadShare>> shares;
  std::vector<std::unique_ptr<Logged>> joints;
  for (auto [priority, pieces] : offers) {
    shares.push_back(std::make_unique<ThreadShare>(2, priority));
    joints.push_back(std::make_unique<Logged>(&pool, shares.back().get(), pieces, &log, &mu));
    pool.Offer(joints.back().get(), true);
  }
  hall.open = true;
  pool.Withdraw(&hall);
  for (auto& j : joints) {
    while (j->left() > 0) std::this_thread::yield();
    pool.Withdraw(j.get());
  }
  return log;
}

TEST(ThreadPoolTest, AWorkerTakesTheHigherPriorityFirst) {
  EXPECT_EQ(ServedOrder({{5, 3}, {0, 2}}), (std::vector<int32_t>{5, 5, 5, 0, 0}));
  EXPECT_EQ(ServedOrder({{0, 2}, {5, 3}}), (std::vector<int32_t>{5, 5, 5, 0, 0}));
  EXPECT_EQ(ServedOrder({{-3, 1}, {4, 1}, {0, 1}}), (std::vector<int32_t>{4, 0, -3}));
}

// Always has another piece of work.
class Endless final : public ThreadPool::Joint {
 public:
  explicit Endless(ThreadShare* share) : Joint(share) {}
  bool Help() override { return ++searches, true; }
  std::atomic<int> searches{0};
};

TEST(ThreadPoolTest, ALowPriorityIsNotStarved) {
  ThreadPool pool(2);
  ThreadShare high(2, 10), low(2, -10);
  Endless endless(&high);
  std::vector<int32_t> log;
  std::mutex mu;
  Logged patient(&pool, &low, 5, &log, &mu);
  pool.Offer(&endless, 1);
  pool.Offer(&patient, 1);
  while (patient.left() > 0) pool.Offer(&endless, 1);
  pool.Withdraw(&patient);
  pool.Withdraw(&endless);
  EXPECT_GE(endless.searches, 4 * 7);  // one search of eight began with the low-priority joint
}

// ---- A program's threads ----

// Keeps scheduled work until the test runs it.
struct KeepingPool {
  std::mutex mu;
  std::vector<std::pair<void (*)(void*), void*>> kept;
  std::atomic<int> released{0};
  tw_thread_pool c{};
  explicit KeepingPool(uint32_t threads) {
    c.size = sizeof c;
    c.threads = threads;
    c.user = this;
    c.schedule = [](void* user, void (*work)(void*), void* arg) {
      auto* self = static_cast<KeepingPool*>(user);
      std::lock_guard lock(self->mu);
      self->kept.emplace_back(work, arg);
    };
    c.release = [](void* user) { ++static_cast<KeepingPool*>(user)->released; };
  }
  void RunAll() {
    std::vector<std::pair<void (*)(void*), void*>> now;
    {
      std::lock_guard lock(mu);
      now.swap(kept);
    }
    for (auto [work, arg] : now) work(arg);
  }
};

TEST(ProgramThreadsTest, WorkThatIsNeverRunIsDoneByTheCallerAndAskedForOnce) {
  KeepingPool keeping(3);
  alignas(ThreadPool) unsigned char room[sizeof(ThreadPool)];
  auto* pool = new (room) ThreadPool(0, &keeping.c);
  EXPECT_EQ(pool->threads(), 4u);
  for (int round = 0; round < 10; ++round) EXPECT_EQ(PartsOf(*pool, 10, 1).size(), 10u);
  EXPECT_EQ(keeping.kept.size(), 3u);
  pool->~ThreadPool();
  std::memset(room, 0xff, sizeof room);  // overwrites whatever the calls left on the stack
  keeping.RunAll();                      // late
  EXPECT_EQ(keeping.released, 0);
}

TEST(ProgramThreadsTest, TheirThreadsJoin) {
  KeepingPool keeping(1);
  ThreadPool pool(0, &keeping.c);
  pool.ReleaseAtEnd();
  std::atomic<bool> stop{false};
  std::thread theirs([&] {
    while (!stop) keeping.RunAll();
  });
  for (int round = 0; round < 20; ++round) {
    MeetInALoop(&pool);
  }
  stop = true;
  theirs.join();
}

TEST(ProgramThreadsTest, TheEndWaitsForThoseInsideAndTellsTheProgram) {
  KeepingPool keeping(1);
  std::thread theirs;
  std::atomic<bool> stop{false};
  {
    ThreadPool pool(0, &keeping.c);
    pool.ReleaseAtEnd();
    theirs = std::thread([&] {
      while (!stop) keeping.RunAll();
    });
    for (int i = 0; i < 50; ++i) EXPECT_EQ(PartsOf(pool, 64, 1).size(), 64u);
  }
  EXPECT_EQ(keeping.released, 1);
  stop = true;
  theirs.join();
  keeping.RunAll();  // work that was scheduled late finds the share closed
}

TEST(ProgramThreadsTest, APoolThatRunsEverythingAtOnceOnTheCallerHelpsNobodyAndHarmsNobody) {
  tw_thread_pool at_once{};
  at_once.size = sizeof at_once;
  at_once.threads = 2;
  at_once.schedule = [](void*, void (*work)(void*), void* arg) { work(arg); };
  ThreadPool pool(0, &at_once);
  // The caller may hold a lock that other work waits for, so its call for help must not run other
  // work.
  ThreadShare any(3, 0);
  Endless other(&any);
  pool.Offer(&other, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(PartsOf(pool, 33, 2).size(), 17u);
  pool.Withdraw(&other);
  EXPECT_EQ(other.searches, 0);
}

TEST(ProgramThreadsTest, WithoutThreadsEverythingIsTheCallers) {
  KeepingPool keeping(0);
  ThreadPool pool(0, &keeping.c);
  EXPECT_EQ(pool.threads(), 1u);
  EXPECT_EQ(PartsOf(pool, 10, 1).size(), 1u);
  EXPECT_TRUE(keeping.kept.empty());
  KeepingPool many(9);
  EXPECT_EQ(ThreadPool(3, &many.c).threads(), 3u);  // the option limits the pool
}

// Records its thread and its order.
class Noted final : public ThreadPool::Task {
 public:
  Noted(ThreadPool* pool, std::vector<int>* ran, int number, Task* then = nullptr)
      : pool_(pool), ran_(ran), number_(number), then_(then), thread_(std::this_thread::get_id()) {}
  void Go() override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    ran_->push_back(number_);
    const ThreadPool::TasksHere here;
    if (then_) pool_->Start(then_);
  }

 private:
  ThreadPool* const pool_;
  std::vector<int>* const ran_;
  const int number_;
  Task* const then_;
  const std::thread::id thread_;
};

TEST(ThreadPoolTest, TasksThatAreToRunHereDoSoInTheEndAndInOrder) {
  ThreadPool pool(2);
  ASSERT_TRUE(pool.HasThreadForTasks());
  std::vector<int> ran;
  Noted third(&pool, &ran, 3), first(&pool, &ran, 1, &third), second(&pool, &ran, 2);
  {
    const ThreadPool::TasksHere here;
    pool.Start(&first);
    {
      const ThreadPool::TasksHere inside;
      pool.Start(&second);
    }
    EXPECT_TRUE(ran.empty()) << "whoever starts a task may hold what it needs";
  }
  EXPECT_EQ(ran, (std::vector<int>{1, 3, 2}));
}

}  // namespace
}  // namespace thalweg
