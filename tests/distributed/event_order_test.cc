// Links of gRPC whose events come in an order that the test sets, and that run out of memory.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "gtest/gtest.h"

#include "tests/distributed/links.h"
#include "tests/distributed/turned_queue.h"

namespace thalweg::distributed {
namespace {

using testing::Link;
using testing::Task;
using thalweg::testing::Harm;
using thalweg::testing::TurnedQueue;
using Code = absl::StatusCode;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kBig = 200 << 10;  // bytes of a body that uses another line of a connection than the first, if there is one

TurnedQueue& Queue() {
  static TurnedQueue queue;
  return queue;
}

bool Becomes(const std::function<bool()>& is_so) {
  for (const auto until = steady_clock::now() + 60s; steady_clock::now() < until; std::this_thread::sleep_for(2ms)) {
    if (is_so()) return true;
  }
  return false;
}

// Waits until no event has come for kTurns turns of this thread; on a busy machine, the turns are
// longer for all threads.
void AwaitRest() {
  constexpr int kTurns = 150;
  for (int still = 0, before = Queue().held; still < kTurns; ++still) {
    std::this_thread::sleep_for(2ms);
    const int now = Queue().held;
    if (now != before) still = 0;
    before = now;
  }
}

class EventOrder : public ::testing::Test {
 protected:
  EventOrder() {
    char text[64];
    std::snprintf(text, sizeof text, "%ld %p", long(getpid()), static_cast<void*>(&Queue()));
    setenv(thalweg::testing::kTurnedQueue, text, 1);
    turned_runtime_ = testing::RuntimeWith(TURNED, testing::Shares::kNothing);
    plain_runtime_ = testing::RuntimeWith(Transport(), testing::Shares::kNothing);
    turned_ = std::make_unique<Task>(turned_runtime_);
    plain_ = std::make_unique<Task>(plain_runtime_);
  }
  ~EventOrder() override { Queue().holds = false; }
  std::shared_ptr<Runtime> turned_runtime_, plain_runtime_;
  std::unique_ptr<Task> turned_, plain_;
};

TEST_F(EventOrder, WhatIsBigGoesWithTheSmallWhereTheEndOfItsLineIsNoticedBeforeItsBeginning) {
  Link link(plain_->address());
  ASSERT_TRUE(turned_->Ask(link.address, Method::kHello).get().ok());
  Queue().holds = true;
  const auto first = turned_->Ask(link.address, Method::kRun, std::string(kBig, 'x'));
  ASSERT_TRUE(Becomes([&] { return link.relay.connections() == 3; }));
  AwaitRest();  // the connections have begun
  const int begun = Queue().held;
  Harm harm;
  harm.half_open = true;
  link.relay.Be(harm);
  link.relay.Cut(1, false);  // the other side keeps its end for some seconds
  ASSERT_TRUE(Becomes([&] { return Queue().held > begun; }));
  AwaitRest();  // the connections have ended
  Queue().holds = false;
  EXPECT_TRUE(Becomes([&] { return plain_->kept() == 1 && Queue().held == 0; }));
  EXPECT_TRUE(turned_->Ask(link.address, Method::kHello).get().ok());  // the held events have been handled
  const auto second = turned_->Ask(link.address, Method::kRun, std::string(kBig, 'x'));
  EXPECT_TRUE(Becomes([&] { return plain_->kept() == 2; }));
}

TEST_F(EventOrder, ALackOfMemoryEndsTheConnectionAndNothingElse) {
  ASSERT_TRUE(plain_->Ask(turned_->address(), Method::kHello).get().ok());
  Queue().no_memory = true;
  auto lost = plain_->Ask(turned_->address(), Method::kHello);
  ASSERT_EQ(lost.wait_for(60s), std::future_status::ready);
  EXPECT_EQ(lost.get().code(), Code::kUnavailable);
  EXPECT_FALSE(Queue().no_memory);
  EXPECT_TRUE(Becomes([&] { return plain_->Ask(turned_->address(), Method::kHello).get().ok(); }));
}

}  // namespace
}  // namespace thalweg::distributed
