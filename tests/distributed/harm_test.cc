// Faulty links (relay.h): links that are slow, stall, have little bandwidth, break in the middle of
// a message, or break at one end only; and a peer that replays messages. The results have the same
// bits as over a clean link, failures come in time, a step has its effects once, and after the
// fault the next step succeeds.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/relay.h"
#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

int Steps(int few) {
  const char* text = std::getenv("THALWEG_HARM_STEPS");
  return text ? std::atoi(text) : few;
}

// Three tasks. The first is the clients' target; the second and the third are reached through
// relays, also by each other.
class HarmTest : public ::testing::Test {
 protected:
  HarmTest() : graph_(client_) {
    static int count = 0;
    const std::string id = "h" + std::to_string(getpid()) + "-" + std::to_string(++count) + "-";
    for (int i = 0; i < 3; ++i) {
      own_.push_back(NewAddress(id + std::to_string(i)));
      reached_.push_back(i == 0 ? own_[0] : NewAddress(id + "r" + std::to_string(i)));
      if (i > 0) links_.push_back(std::make_unique<Relay>(reached_[size_t(i)], own_[size_t(i)]));
    }
    for (int i = 0; i < 3; ++i) {
      std::string cluster;
      for (int k = 0; k < 3; ++k) cluster += (k ? ", \"" : "{\"worker\": [\"") + (k == i ? own_ : reached_)[size_t(k)] + "\"";
      servers_.push_back(std::make_unique<tw::Server>(NewRuntime(), cluster + "]}", "worker", uint32_t(i)));
    }
    Build();
    target_ = "target=" + own_[0];
  }
  tw::Session NewSession(const char* patience = "target_timeout_ms=20000") { return tw::Session(graph_, {target_.c_str(), patience}); }
  void Be(const Harm& harm) {
    for (auto& link : links_) link->Be(harm);
  }
  void Cut() {
    for (auto& link : links_) link->Cut();
  }

  // Values go from the second task to the third and back; on the third a variable counts steps.
  void Build() {
    tw::Scope s(graph_);
    x_ = s.placeholder("x", TW_FLOAT, {-1});
    s.on(Servers::task(1).c_str());
    const tw_output a = s.op("Sin", {x_});
    s.on(Servers::task(2).c_str());
    const tw_output v = s.variable("count", s.scalar(TW_FLOAT, 0));
    const tw_output b = s.op("Tanh", {s.op("AddV2", {a, a})});
    s.on(Servers::task(1).c_str());
    y_ = s.op("Exp", {s.op("Mul", {b, a})});
    s.on(Servers::task(2).c_str());
    tw_op* op = tw_scope_begin(s.c(), "AssignAddVariableOp", nullptr);
    const tw_output in[] = {v, s.scalar(TW_FLOAT, 1)};
    tw_op_add_inputs(op, in, 2);
    add_ = tw_scope_end_operation(s.c(), op);
    count_ = s.read(v);
    begin_ = s.initializer();
    s.finish();
  }
  static tw::Tensor Feed(int step) {
    std::vector<float> values(20'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float((int(i) * 7 + step * 13) % 101) / 50 - 1;
    return tw::Tensor({int64_t(values.size())}, values);
  }
  std::vector<float> Step(tw::Session& session, int step) { return session.run({{x_, Feed(step)}}, {y_}, {add_})[0].values<float>(); }
  std::vector<std::vector<float>> Clean(int steps) {
    std::vector<std::vector<float>> all;
    tw::Session session = NewSession();
    session.run({}, {}, {begin_});
    for (int i = 0; i < steps; ++i) all.push_back(Step(session, i));
    session.run({}, {}, {begin_});
    return all;
  }

  // Repeats an idempotent run until it succeeds.
  std::vector<tw::Tensor> Again(tw::Session& session, const std::vector<tw_output>& fetches,
                                const std::vector<const tw_operation*>& targets = {}) {
    for (int k = 0;; ++k) {
      std::vector<tw::Tensor> found;
      const Failure f = FailureOf([&] { found = session.run({}, fetches, targets); });
      if (f.code == TW_OK) return found;
      // `known`: a replayed registration arrived after the client had reopened the session on a new
      // connection and before the client registered.
      const bool known = f.text.find("the graph has a node of that name") != f.text.npos;
      EXPECT_TRUE(k < 10 && (f.code == TW_UNAVAILABLE || f.code == TW_ABORTED || known)) << f.text;
      if (k >= 10) return {tw::Tensor(-1.f)};
      std::this_thread::sleep_for(50ms);
    }
  }

  // Repeats each step until it succeeds, and returns the number of attempts. An attempt may only
  // fail because a link was lost. before: the number of earlier attempts that may have had their
  // effect.
  int Run(tw::Session& session, const std::vector<std::vector<float>>& expected, double bound, int before = 0) {
    int tries = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      Failure f;
      for (int k = 0; k < 10; ++k) {
        ++tries;
        std::vector<float> found;
        f = FailureOf([&] { found = Step(session, int(i)); });
        EXPECT_LT(f.seconds, bound) << f.text;
        if (f.code == TW_OK) {
          EXPECT_EQ(found, expected[i]) << "step " << i;
          break;
        }
        EXPECT_TRUE(f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << f.text;
        EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:"));
        std::this_thread::sleep_for(50ms);  // a peer that hung up is not called again at once
      }
      EXPECT_EQ(f.code, uint32_t{TW_OK}) << f.text;
    }
    const float count = session.run({}, {count_})[0].values<float>()[0];
    EXPECT_GE(count, float(expected.size()));
    EXPECT_LE(count, float(before + tries));
    return tries;
  }

  tw::Runtime client_ = NewRuntime();
  tw::Graph graph_;
  std::vector<std::string> own_, reached_;
  std::vector<std::unique_ptr<Relay>> links_;
  std::vector<std::unique_ptr<tw::Server>> servers_;
  std::string target_;
  tw_output x_, y_, count_;
  const tw_operation *add_ = nullptr, *begin_ = nullptr;
};

TEST_F(HarmTest, SlowLinksChangeNothing) {
  const auto expected = Clean(Steps(4));
  const struct {
    const char* what;
    Harm harm;
  } cases[] = {{"late", {.delay_ms = 15, .more_ms = 30}},
               {"stands still now and then", {.more_ms = 5, .stalls = 10}},
               {"narrow", {.bytes_per_second = 1'250'000}},
               {"all of it", {.delay_ms = 5, .more_ms = 20, .stalls = 5, .bytes_per_second = 2'500'000}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    Be({});
    tw::Session session = NewSession();
    session.run({}, {}, {begin_});
    Be(c.harm);
    EXPECT_EQ(Run(session, expected, 15), int(expected.size()));  // nothing was lost, so nothing fails
    // A client that connects now is served, too.
    tw::Session late = NewSession();
    Step(late, 0);
  }
}

TEST_F(HarmTest, LinksThatBreakHalfWayThroughAMessageFailInTimeAndWorkWhenTheyAreMended) {
  const auto expected = Clean(Steps(3));
  tw::Session session = NewSession("target_timeout_ms=3000");
  session.run({}, {}, {begin_});
  for (const int64_t after : {1, 40, 200, 1000, 3000, 10'000, 50'000, 100'000}) {
    SCOPED_TRACE(after);
    Be({.end_after = after});
    Cut();
    const Failure f = FailureOf([&] { Step(session, 0); });
    EXPECT_TRUE(f.code == TW_OK || f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << f.text;
    EXPECT_LT(f.seconds, 10) << f.text;  // the client retries for target_timeout_ms
    Be({});
    Cut();
    Run(session, expected, 10, 1);
    session.run({}, {}, {begin_});
  }
}

TEST_F(HarmTest, LinksThatBreakAgainAndAgainLoseNothing) {
  const auto expected = Clean(Steps(10));
  tw::Session session = NewSession();
  session.run({}, {}, {begin_});
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};  // consecutive failures; on a busy machine, no step fits between two breaks that come too soon
  std::thread breaks([&] {
    const int pause = OverGrpc() ? 500 : 60;  // gRPC waits for up to a second before it connects again
    for (int i = 0; !stop; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds((pause + 7 * (i % 20)) * (1 + failed / 10)));
      links_[size_t(i % 2)]->Cut();
    }
  });
  int tries = 0;
  const auto began = std::chrono::steady_clock::now();
  for (size_t i = 0; i < expected.size() || std::chrono::steady_clock::now() - began < 3s; ++i) {
    bool good = false;
    const auto first = std::chrono::steady_clock::now();
    for (failed = 0; !good && std::chrono::steady_clock::now() - first < 60s; ++tries) {
      const Failure f = FailureOf([&] { EXPECT_EQ(Step(session, int(i % expected.size())), expected[i % expected.size()]); });
      EXPECT_TRUE(f.code == TW_OK || f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << f.text;
      EXPECT_LT(f.seconds, 5);
      good = f.code == TW_OK;
      failed += !good;
      if (!good) std::this_thread::sleep_for(10ms);  // a peer that hangs up is not called again at once
    }
    EXPECT_TRUE(good);
  }
  stop = true;
  breaks.join();
  Run(session, expected, 5, tries);
}

// The values use several connections at once, and one of them breaks.
TEST_F(HarmTest, ManyLargeValuesAreWholeOrTheStepFailsWhereOneOfTheirConnectionsBreaks) {
  constexpr int kValues = 12;
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  std::vector<tw_output> sums;
  for (int i = 0; i < kValues; ++i) {
    s.on(Servers::task(1).c_str());
    const tw_output there = s.op("Mul", {x, s.scalar(TW_FLOAT, i + 1)});
    s.on(Servers::task(2).c_str());
    const tw_output back = s.op("AddV2", {there, s.scalar(TW_FLOAT, i)});
    s.on(Servers::task(1).c_str());
    sums.push_back(s.op("Sub", {back, x}));
  }
  s.finish();
  const size_t n = 100'000;
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = float(i % 1009);
  tw::Session session(graph, {target_.c_str(), "target_timeout_ms=20000"});
  int good = 0, lost = 0;
  for (int round = 0; round < 400 && (good < 10 || lost < 5); ++round) {
    std::thread breaks;
    if (round % 2 == 1) {
      breaks = std::thread([&, round] {
        std::this_thread::sleep_for(std::chrono::milliseconds(round % 20));
        links_[size_t(round / 2 % 2)]->CutLast();
      });
    }
    const Failure f = FailureOf([&] {
      const auto found = session.run({{x, tw::Tensor({int64_t(n)}, values)}}, sums);
      for (int k = 0; k < kValues; ++k) {
        const auto of = found[size_t(k)].values<float>();
        ASSERT_EQ(of.size(), n);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(of[i], values[i] * float(k + 1) + float(k) - values[i]) << k << " at " << i;
      }
    });
    if (breaks.joinable()) breaks.join();
    EXPECT_TRUE(f.code == TW_OK || f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << f.text;
    EXPECT_LT(f.seconds, 15) << f.text;
    ++(f.code == TW_OK ? good : lost);
    if (f.code != TW_OK) std::this_thread::sleep_for(50ms);  // a peer that hung up is not called again at once
  }
  EXPECT_GE(good, 10);
  EXPECT_GE(lost, 5);
}

// One end is closed, and the other end is not told.
TEST_F(HarmTest, LinksThatAreHalfOpenAreNoticedAndWorkWhenTheyAreMended) {
  if (!OverGrpc()) GTEST_SKIP() << "the kernel tells both ends of a socket of one machine";
  const auto expected = Clean(2);
  tw::Session session = NewSession();
  session.run({}, {}, {begin_});
  Be({.end_after = 20'000, .half_open = true});
  const Failure f = FailureOf([&] {
    for (int i = 0; i < 20; ++i) Step(session, i);
  });
  EXPECT_TRUE(f.code == TW_UNAVAILABLE || f.code == TW_ABORTED) << f.text;
  EXPECT_LT(f.seconds, 30);
  Be({});
  Run(session, expected, 15, 20);
}

// The client's session goes on while its messages are replayed on other connections. Over gRPC, a
// peer that replays the beginning of a connection joins that connection and closes it when the peer
// hangs up; a step in progress then fails.
TEST_F(HarmTest, WhatIsSaidAgainHasNoEffect) {
  tw::Session session = NewSession();
  session.run({}, {}, {begin_});
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 3; ++i) expected.push_back(Step(session, i));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < links_.size(); ++i) {
      for (const auto& said : links_[i]->Heard()) {
        const int fd = ConnectAsOwnUser(own_[i + 1]);
        ASSERT_GE(fd, 0);
        for (const std::string& packet : said) {
          if (send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) break;
        }
        std::this_thread::sleep_for(100ms);
        close(fd);
      }
    }
    EXPECT_THAT(Again(session, {count_})[0].values<float>(), ElementsAre(float(expected.size())));
  }
  Again(session, {}, {begin_});
  Run(session, expected, 5);
}

}  // namespace
}  // namespace thalweg::testing
