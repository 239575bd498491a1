#include "framework/runtime/blocking_line.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using namespace std::chrono_literals;

// Work that blocks until it is released; counts the work that runs.
class Crowd {
 public:
  std::function<void()> Work() {
    return [this] {
      std::unique_lock lock(mu_);
      ++inside_;
      ++began_;
      most_ = std::max(most_, inside_);
      changed_.notify_all();
      changed_.wait(lock, [&] { return left_ > 0; });
      --left_;
      --inside_;
      ++ended_;
      changed_.notify_all();
    };
  }
  void Await(int began) {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return began_ >= began; })) << began_ << " of " << began << " began";
  }
  void LetGo(int n) {
    std::lock_guard lock(mu_);
    left_ += n;
    changed_.notify_all();
  }
  void AwaitEnd(int ended) {
    std::unique_lock lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return ended_ >= ended; })) << ended_ << " of " << ended << " ended";
  }
  int most() {
    std::lock_guard lock(mu_);
    return most_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int inside_ = 0, began_ = 0, ended_ = 0, most_ = 0, left_ = 0;
};

TEST(BlockingLine, AGuestHasSoManyThreadsAndNoMoreAndOthersHaveTheirs) {
  ThreadPool pool(1);
  const auto line = BlockingLine::Create(&pool, 10);
  const auto ann = line->MakeGuest(3), bob = line->MakeGuest(3);
  Crowd hers, his;
  for (int i = 0; i < 50; ++i) ann->Run(hers.Work());
  hers.Await(3);
  EXPECT_EQ(line->waiting(), 47u);
  bob->Run(his.Work());
  his.Await(1);
  his.LetGo(1);
  his.AwaitEnd(1);
  hers.LetGo(50);
  hers.AwaitEnd(50);
  EXPECT_EQ(hers.most(), 3);
  EXPECT_EQ(line->waiting(), 0u);
}

TEST(BlockingLine, AllTogetherHaveSoManyAndTakeTurns) {
  ThreadPool pool(1);
  const auto line = BlockingLine::Create(&pool, 2);
  const auto ann = line->MakeGuest(100), bob = line->MakeGuest(100);
  Crowd first;
  for (int i = 0; i < 2; ++i) ann->Run(first.Work());
  first.Await(2);
  std::mutex mu;
  std::string order;
  std::promise<void> all;
  const auto note = [&](char who) {
    return [&, who] {
      std::lock_guard lock(mu);
      order += who;
      if (order.size() == 12) all.set_value();
    };
  };
  for (int i = 0; i < 10; ++i) ann->Run(note('a'));
  for (int i = 0; i < 2; ++i) bob->Run(note('b'));
  first.LetGo(1);  // one thread runs all waiting work
  ASSERT_EQ(all.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(order, "ababaaaaaaaa");
  first.LetGo(1);
  first.AwaitEnd(2);
}

TEST(BlockingLine, RunsEachPieceOnceWhoeverHandsItIn) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(1);
    const auto line = BlockingLine::Create(&pool, 4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&ran, guest = line->MakeGuest(uint32_t(t) + 1)] {
        for (int i = 0; i < 2000; ++i) guest->Run([&ran] { ++ran; });
      });
    }
    for (auto& t : threads) t.join();
  }
  EXPECT_EQ(ran, 8000);
}

int ThreadsOfThisProcess() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int n = 0;
    if (word == "Threads:" && in >> n) return n;
  }
  return -1;
}

TEST(BlockingLine, ThreadsOfABurstEndAlthoughAFewAreStillAtWork) {
  ThreadPool pool(1);
  const int before = ThreadsOfThisProcess();
  Crowd crowd;
  for (int i = 0; i < 100; ++i) pool.Blocking(crowd.Work());
  crowd.Await(100);
  EXPECT_GE(ThreadsOfThisProcess(), before + 100);
  crowd.LetGo(100);
  crowd.AwaitEnd(100);
  // Recurring work is done by the thread that slept last, so the other threads stay asleep.
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (ThreadsOfThisProcess() > before + 4 && std::chrono::steady_clock::now() < patience) {
    std::promise<void> done;
    pool.Blocking([&] { done.set_value(); });
    done.get_future().wait();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_LE(ThreadsOfThisProcess(), before + 4);
  std::promise<void> last;
  pool.Blocking([&] { last.set_value(); });
  last.get_future().wait();
}

}  // namespace
}  // namespace thalweg
