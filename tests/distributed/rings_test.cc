// Messages between processes of one machine through shared memory: which path they take, the
// effects of a damaged ring, and connections with a side that does not use rings or is forked. The
// stream beside the rings goes through a link that the test can hold, so a message that arrives
// meanwhile has used the rings.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/distributed/links.h"

namespace thalweg::distributed {
namespace {

using ::testing::HasSubstr;
using testing::Link;
using testing::Task;
using Code = absl::StatusCode;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr uint64_t kPage = 4096, kRing = 128 << 10, kAll = 2 * kPage + 2 * kRing;

// Returns the addresses of shared memory of that size in this process.
std::vector<char*> Shared(uint64_t bytes) {
  std::vector<char*> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    if (line.find("memfd:thalweg") == line.npos || std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2) continue;
    if (end - begin == bytes) all.push_back(reinterpret_cast<char*>(begin));
  }
  return all;
}

// Each connection between two endpoints of this process has two.
std::vector<char*> Rings() { return Shared(kAll); }
std::vector<char*> Segments() { return Shared(kPage + (8 << 20)); }

class RingsTest : public ::testing::Test {
 protected:
  RingsTest()
      : runtime_(testing::RuntimeWith(Transport(), testing::Shares::kAll)), here_(runtime_), there_(runtime_), link_(there_.address()) {}
  static Status Answer(std::future<Status> answer, std::chrono::seconds most = 30s) {
    return answer.wait_for(most) == std::future_status::ready ? answer.get() : absl::DeadlineExceededError("the test waits no longer");
  }
  std::future<Status> Ask(Method method, std::string body = "") { return here_.Ask(link_.address, method, std::move(body)); }
  Status Hello(std::string body = "") { return Answer(Ask(Method::kHello, std::move(body))); }
  // Waits until the peer is reached again and nothing is left of the last connection.
  void Heal() {
    Status again;
    for (int i = 0; i < 1500 && (!(again = Hello()).ok() || Rings().size() > 2); ++i) std::this_thread::sleep_for(20ms);
    EXPECT_TRUE(again.ok()) << again;
    EXPECT_LE(Rings().size(), 2u);
  }
  // Makes both sides write to the rings.
  bool Meet() {
    const auto until = steady_clock::now() + 30s;
    while (steady_clock::now() < until) {
      if (!Hello().ok()) continue;
      link_.relay.Hold(true, true);
      const bool by_rings = Answer(Ask(Method::kHello), 1s).ok();
      link_.relay.Hold(false, false);
      if (by_rings) return true;
    }
    return false;
  }
  const std::shared_ptr<Runtime> runtime_;
  Task here_, there_;
  Link link_;
};

TEST_F(RingsTest, MessagesGoByRingsOnceBothSidesKnow) {
  ASSERT_TRUE(Meet());
  EXPECT_EQ(Rings().size(), 2u);
  link_.relay.Hold(true, true);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Hello(std::string(size_t(i) * 300, 'x')).ok()) << i;
  auto waits = Ask(Method::kWatch);
  for (int i = 0; i < 100 && there_.kept() < 1; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(there_.kept(), 1u);
  link_.relay.Hold(false, false);
}

TEST_F(RingsTest, WhatIsToGoByRingsAsksForNothingElse) {
  ASSERT_TRUE(Meet());
  const int streams = link_.relay.connections();
  EXPECT_TRUE(Hello(std::string(72 << 10, 'x')).ok());
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(link_.relay.connections(), streams);
  EXPECT_EQ(Segments().size(), 0u);
}

// A forked child has a copy of the connections' state, but neither their memory nor the threads
// that read them.
TEST_F(RingsTest, AChildThatWasForkedMayAskAndHarmsNobody) {
  ASSERT_TRUE(Meet());
  std::this_thread::sleep_for(100ms);  // other threads go to sleep
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool refused = true;
    for (const std::string& to : {link_.address, there_.address()})  // with a connection, and without
      refused = Answer(here_.Ask(to, Method::kHello), 10s).code() == Code::kFailedPrecondition && refused;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Hello().ok());  // the parent is not affected
}

TEST_F(RingsTest, MoreThanARingHoldsGoesThrough) {
  ASSERT_TRUE(Meet());
  std::vector<std::future<Status>> answers;
  for (int i = 0; i < 400; ++i) answers.push_back(Ask(Method::kHello, std::string(size_t(i % 8) * 8000, 'x')));
  for (auto& a : answers) ASSERT_TRUE(Answer(std::move(a)).ok());
}

TEST_F(RingsTest, ASideThatWantsNoneIsReachedByItsStream) {
  for (const auto shares : {testing::Shares::kNothing, testing::Shares::kBodies}) {
    const auto plain = testing::RuntimeWith(Transport(), shares);
    Task without(plain);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(Answer(here_.Ask(without.address(), Method::kHello)).ok());
      EXPECT_TRUE(Answer(without.Ask(here_.address(), Method::kHello)).ok());
    }
    EXPECT_EQ(Rings().size(), 0u);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(Answer(here_.Ask(without.address(), Method::kHello, std::string(200 << 10, 'x'))).ok());
    if (shares == testing::Shares::kNothing) {
      EXPECT_LE(Segments().size(), 1u);  // the segment that was offered and refused
    } else {
      EXPECT_GE(Segments().size(), 2u);
    }
  }
}

// Overwrites words of the rings repeatedly during its lifetime; the rings may be unmapped
// meanwhile.
class Scribbler {
 public:
  Scribbler(char* rings, uint64_t at, uint64_t bytes) : memory_(mremap(rings, 0, kAll, MREMAP_MAYMOVE)) {  // a second mapping
    EXPECT_NE(memory_, MAP_FAILED);
    char* to = static_cast<char*>(memory_) + at;
    thread_ = std::thread([this, to, bytes] {
      const uint64_t nonsense = uint64_t{1} << 40;
      while (!stop_) {
        for (uint64_t i = 0; i < bytes; i += sizeof nonsense) std::memcpy(to + i, &nonsense, sizeof nonsense);
        std::this_thread::yield();
      }
    });
  }
  ~Scribbler() {
    stop_ = true;
    thread_.join();
    munmap(memory_, kAll);
  }

 private:
  void* const memory_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The offsets are the write (0) or read (64) position, of the callee's ring (0) or of the caller's
// (128).
TEST_F(RingsTest, APositionWithoutSenseEndsTheConnectionAndTheNextOneIsGood) {
  for (const uint64_t at : {0, 64, 128, 192}) {
    ASSERT_TRUE(Meet()) << at;
    const auto rings = Rings();
    ASSERT_EQ(rings.size(), 2u);
    auto waits = Ask(Method::kWatch);
    {
      const Scribbler scribbler(rings[0], kPage + at, sizeof(uint64_t));
      // The side that writes the correct position may win as long as the machine does not run the
      // scribbler.
      const auto until = steady_clock::now() + 60s;
      while (waits.wait_for(0s) != std::future_status::ready && steady_clock::now() < until) Answer(Ask(Method::kHello), 5s).IgnoreError();
    }
    const Status lost = Answer(std::move(waits));
    EXPECT_EQ(lost.code(), Code::kUnavailable) << at << ": " << lost;
    EXPECT_THAT(lost.ToString(), HasSubstr(link_.address)) << at;
    Heal();
  }
}

// The overwritten records may contain anything, but harm no other peer: calls may wait for lost
// answers until their connection ends.
TEST_F(RingsTest, RecordsThatAreOverwrittenHarmNobodyElse) {
  for (const uint64_t of : {uint64_t{0}, kRing, uint64_t{0}, kRing}) {
    ASSERT_TRUE(Meet());
    const auto rings = Rings();
    ASSERT_EQ(rings.size(), 2u);
    std::vector<std::future<Status>> answers;
    {
      const Scribbler scribbler(rings[0], 2 * kPage + of, 4096);
      for (int i = 0; i < 200; ++i) {
        answers.push_back(Ask(Method::kHello, std::string(2000, 'x')));
        answers.back().wait_for(2ms);
      }
    }
    link_.relay.Cut();
    for (auto& a : answers) EXPECT_NE(Answer(std::move(a)).code(), Code::kDeadlineExceeded);
    Heal();
  }
}

TEST_F(RingsTest, AStreamThatBreaksEndsWhatGoesByRings) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(Meet()) << round;
    auto waits = Ask(Method::kWatch);
    std::this_thread::sleep_for(50ms);
    const auto began = steady_clock::now();
    link_.relay.Cut();
    const Status s = Answer(std::move(waits));
    EXPECT_EQ(s.code(), Code::kUnavailable) << s;
    EXPECT_THAT(s.ToString(), HasSubstr(link_.address));
    EXPECT_LT(steady_clock::now() - began, 10s);
    Heal();
  }
}

}  // namespace
}  // namespace thalweg::distributed
