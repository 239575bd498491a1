#include "framework/runtime/thread_pool.h"

#include <chrono>
#include <future>
#include <numeric>
#include <set>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using Parts = std::vector<std::pair<uint64_t, uint64_t>>;

// The parts that Parallel made, in order of their begin.
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

TEST(ThreadPoolTest, TakesAsManyThreadsAsThereAreCpusByDefault) { EXPECT_GE(ThreadPool(0).threads(), 1u); }

// Two pieces that wait for each other: only two threads can do them.
TEST(ThreadPoolTest, WakesASleepingWorkerForALoop) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 2));  // the worker sleeps by now, or spins still
    std::atomic<int> inside{0};
    pool.Parallel(
        2, 1,
        [](void* arg, uint64_t, uint64_t) {
          auto* in = static_cast<std::atomic<int>*>(arg);
          ++*in;
          while (*in < 2) std::this_thread::yield();
        },
        &inside);
    EXPECT_EQ(inside, 2);
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

// A Joint with tickets, as an executor has ready nodes.
class Tickets final : public ThreadPool::Joint {
 public:
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
  pool.Offer(&t, true);
  while (t.done() < 100) std::this_thread::yield();  // this thread does nothing: a worker must come
  t.Give(50);
  pool.Offer(&t, true);  // says that there is more
  while (t.done() < 150) std::this_thread::yield();
  pool.Withdraw(&t);
  t.Give(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(t.done(), 150);
  pool.Withdraw(&t);  // once more is no harm
}

TEST(ThreadPoolTest, PassesAJointThatHasNothingToGive) {
  ThreadPool pool(2);
  Tickets busy, idle;
  busy.Give(10);
  pool.Offer(&busy, false);
  pool.Offer(&idle, true);  // newer, so it is asked first
  while (busy.done() < 10) std::this_thread::yield();
  pool.Withdraw(&idle);
  pool.Withdraw(&busy);
}

TEST(ThreadPoolTest, GetsHungryAndFallsAsleep) {
  ThreadPool pool(2);
  Tickets t;
  t.Give(1);
  pool.Offer(&t, true);
  while (t.done() < 1) std::this_thread::yield();
  pool.Withdraw(&t);
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (pool.hungry() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(pool.hungry());
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

TEST(ThreadPoolTest, ReusesThreadsOfBlockingCalls) {
  ThreadPool pool(1);
  std::set<std::thread::id> who;
  for (int i = 0; i < 20; ++i) {
    std::promise<std::thread::id> id;
    pool.Blocking([&] { id.set_value(std::this_thread::get_id()); });
    who.insert(id.get_future().get());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until it stands by again
  }
  EXPECT_LT(who.size(), 10u);
}

}  // namespace
}  // namespace thalweg
