// Runners: which threads run what, and when they end.
#include "tools/thalweg/serve/runners.h"

#include <future>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace thalweg::cli::serve {
namespace {

TEST(RunnersTest, RunsAtOnceAsManyAsTheLimit) {
  std::promise<void> first, second;
  Runners runners(2);
  // Each waits for the other.
  runners.Start([&] { first.set_value(), second.get_future().wait(); });
  runners.Start([&] { second.set_value(), first.get_future().wait(); });
}

TEST(RunnersTest, ARunBeyondTheLimitWaitsForAThread) {
  std::promise<void> begun, release;
  std::thread::id blocked, later;
  {
    Runners runners(1);
    runners.Start([&] {
      blocked = std::this_thread::get_id();
      begun.set_value();
      release.get_future().wait();
    });
    begun.get_future().wait();
    runners.Start([&] { later = std::this_thread::get_id(); });
    release.set_value();
  }
  EXPECT_EQ(later, blocked);
}

TEST(RunnersTest, TheDestructorWaitsForWhatWasStartedAndDestroysIt) {
  const auto held = std::make_shared<int>(0);
  {
    Runners runners(1);
    for (int i = 0; i < 10; ++i) runners.Start([held] { ++*held; });
  }
  EXPECT_EQ(*held, 10);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace thalweg::cli::serve
