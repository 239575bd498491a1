// Links over gRPC that go silent, break, or lead to a peer that hangs up: the results of calls, and
// the intervals between retries.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/links.h"

namespace thalweg::distributed {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Link;
using testing::Task;
using Code = absl::StatusCode;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

class LinkTest : public ::testing::Test {
 protected:
  LinkTest() {
    runtime_ = testing::RuntimeWith(Transport(), testing::Shares::kNothing);
    here_ = std::make_unique<Task>(runtime_);
    there_ = std::make_unique<Task>(runtime_);
  }
  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<Task> here_, there_;
};

// Tests both directions, and each direction alone, all at the same time.
TEST_F(LinkTest, WhoeverIsSilentIsGivenUpWithinFifteenSecondsAndReachedAgainWhenTheLinkHeals) {
  std::vector<std::unique_ptr<Link>> links;
  std::vector<std::future<Status>> waiting;
  for (int i = 0; i < 3; ++i) {
    links.push_back(std::make_unique<Link>(there_->address()));
    ASSERT_TRUE(here_->Ask(links.back()->address, Method::kHello).get().ok());
    waiting.push_back(here_->Ask(links.back()->address, Method::kWatch));
  }
  std::this_thread::sleep_for(200ms);
  for (size_t i = 0; i < 3; ++i) links[i]->relay.Swallow(i != 1, i != 0);
  const auto began = steady_clock::now();
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(waiting[i].wait_until(began + 15s), std::future_status::ready) << i;
    const Status s = waiting[i].get();
    EXPECT_EQ(s.code(), Code::kUnavailable);
    EXPECT_THAT(s.ToString(), HasSubstr(links[i]->address + " cannot be reached"));
  }
  while (there_->gone < 3 && steady_clock::now() < began + 15s) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(there_->gone, 3);
  for (auto& link : links) {
    link->relay.Swallow(false, false);
    Status s;
    for (int tries = 0; tries < 1500; ++tries) {
      s = here_->Ask(link->address, Method::kHello).get();
      if (s.ok()) break;
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_TRUE(s.ok()) << s;
  }
}

TEST_F(LinkTest, ALinkThatBreaksEndsCallsAtOnceAlsoHalfWayThroughABody) {
  Link link(there_->address());
  for (int round = 0; round < 5; ++round) {
    Status hello;
    for (int tries = 0; tries < 1500 && !(hello = here_->Ask(link.address, Method::kHello).get()).ok(); ++tries)
      std::this_thread::sleep_for(20ms);
    ASSERT_TRUE(hello.ok()) << hello;
    auto waits = here_->Ask(link.address, Method::kWatch);
    auto big = here_->Ask(link.address, Method::kRun, std::string(64 << 20, 'x'));
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 10 * round));
    link.relay.Cut();
    for (auto* call : {&waits, &big}) {
      ASSERT_EQ(call->wait_for(15s), std::future_status::ready);
      const Status s = call->get();
      EXPECT_TRUE(s.code() == Code::kUnavailable || s.code() == Code::kResourceExhausted) << s;  // the second: it was refused already
    }
  }
}

// The connections of a peer: the first for small messages, two for large ones.
class BulkTest : public LinkTest {
 protected:
  BulkTest() : link_(there_->address()) {}
  std::future<Status> Big() { return here_->Ask(link_.address, Method::kRun, std::string(1 << 20, 'x')); }  // the peer keeps the request
  Status Hello() {
    auto answer = here_->Ask(link_.address, Method::kHello);
    return answer.wait_for(10s) == std::future_status::ready ? answer.get() : absl::DeadlineExceededError("the test waits no longer");
  }
  // Sends bodies until both connections for large messages have been used.
  bool Open() {
    Status hello;
    for (int tries = 0; tries < 500 && !(hello = Hello()).ok(); ++tries) std::this_thread::sleep_for(20ms);
    const int before = link_.relay.connections();
    kept_.push_back(Big());  // makes the connections for large messages open
    for (int tries = 0; tries < 500 && hello.ok() && link_.relay.connections() < before + 2; ++tries) std::this_thread::sleep_for(20ms);
    for (int tries = 0; tries < 100 && hello.ok(); ++tries) {
      AskAtOnce(8, before);
      for (int i = 0; i < 10; ++i) {
        if (Bytes(before) > kMuch && Bytes(before + 1) > kMuch) return true;
        std::this_thread::sleep_for(20ms);
      }
    }
    return false;
  }
  // Holds the connections from number `first` on until all n requests are sent.
  void AskAtOnce(int n, int first) {
    link_.relay.Hold(true, false, first);
    for (int i = 0; i < n; ++i) kept_.push_back(Big());
    link_.relay.Hold(false, false);
  }
  bool Arrived(size_t n) {
    for (int i = 0; i < 1500 && there_->kept() < n; ++i) std::this_thread::sleep_for(20ms);
    return there_->kept() == n;
  }
  uint64_t Bytes(int connection) { return link_.relay.BytesForth(connection); }
  static constexpr uint64_t kMuch = 1 << 20;
  Link link_;
  std::vector<std::future<Status>> kept_;
};

TEST_F(BulkTest, BodiesGoByTwoConnectionsThatAreUsedAlike) {
  ASSERT_TRUE(Open());
  ASSERT_TRUE(Arrived(kept_.size()));
  EXPECT_EQ(link_.relay.connections(), 3);
  const uint64_t before[] = {Bytes(0), Bytes(1), Bytes(2)};
  AskAtOnce(32, 1);
  ASSERT_TRUE(Arrived(kept_.size()));
  EXPECT_LT(Bytes(0) - before[0], kMuch);
  for (int line : {1, 2}) EXPECT_GE(Bytes(line) - before[line], 8u << 20) << line;
  EXPECT_EQ(link_.relay.connections(), 3);
}

TEST_F(BulkTest, NothingSmallWaitsForBodiesThatStandStill) {
  ASSERT_TRUE(Open());
  ASSERT_TRUE(Arrived(kept_.size()));
  link_.relay.Hold(true, true, 1);
  for (int i = 0; i < 32; ++i) kept_.push_back(Big());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Hello().ok());
  EXPECT_LT(there_->kept(), kept_.size());
  link_.relay.Hold(false, false);
  EXPECT_TRUE(Arrived(kept_.size()));
}

TEST_F(BulkTest, AnEndOfEitherLineIsTheEndOfThePeerWhichIsReachedAgain) {
  for (size_t line : {1, 2, 2}) {
    ASSERT_TRUE(Open());
    link_.relay.Cut(size_t(link_.relay.connections()) - 3 + line);
    for (auto& call : kept_) {
      ASSERT_EQ(call.wait_for(15s), std::future_status::ready);
      EXPECT_EQ(call.get().code(), Code::kUnavailable);
    }
    kept_.clear();
  }
}

TEST_F(LinkTest, WhoHangsUpIsTriedAgainAtGrowingDistances) {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  const int listener = ListenByHand("grpc:" + address);
  ASSERT_GE(listener, 0);
  std::atomic<bool> stop{false};
  std::atomic<int> came{0};
  std::thread hangs_up([&] {
    pollfd p = {listener, POLLIN, 0};
    while (!stop) {
      if (poll(&p, 1, 20) <= 0) continue;
      close(accept(listener, nullptr, nullptr));
      ++came;
    }
  });
  const auto began = steady_clock::now();
  int asked = 0, not_tried = 0;
  while (asked < 100 || steady_clock::now() - began < 3s) {
    std::this_thread::sleep_for(2ms);
    const Status s = here_->Ask(address, Method::kHello).get();
    EXPECT_EQ(s.code(), Code::kUnavailable);
    ++asked;
    if (s.message().find("is not tried again yet") == std::string_view::npos) continue;
    ++not_tried;
    EXPECT_THAT(std::string(s.message()),
                ContainsRegex("a moment ago \\(.*(closed|reset|refused|[Cc]onnect).*\\)"));  // gRPC's own message
  }
  EXPECT_GT(not_tried, 0);
  stop = true;
  hangs_up.join();
  close(listener);
  EXPECT_GE(came, 3);
  // The intervals are 20 ms, 40, ... 1 s, and then one second each.
  EXPECT_LE(came, 9 + std::chrono::ceil<std::chrono::seconds>(steady_clock::now() - began).count());
}

}  // namespace
}  // namespace thalweg::distributed
