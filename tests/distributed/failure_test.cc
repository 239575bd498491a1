// Clusters with faults: links that delay everything, tasks that hang or were restarted, floods of
// cancellations, messages that are too large. Each error names the task and comes in time, and the
// other tasks stay usable.
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/resource.h>

#include "tests/distributed/relay.h"
#include "tests/distributed/servers.h"

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

int Times(const char* name, int fewest) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fewest;
}

tw_output Placed(tw::Scope& s, int task, const char* type, const std::vector<tw_output>& in) {
  s.on(Servers::task(task).c_str());
  const tw_output out = s.op(type, in);
  s.on("");
  return out;
}

// A queue on a task; the dequeue blocks until an element is enqueued.
struct Queue {
  Queue(tw::Scope& s, int task, const char* name) {
    s.on(Servers::task(task).c_str());
    const uint32_t type = TW_FLOAT;
    handle = s.op("FIFOQueueV2", {}, [&](tw_op* op) {
      tw_op_set_types(op, "component_types", &type, 1);
      tw_op_set_string(op, "shared_name", name, std::strlen(name));
    });
    element = s.op("QueueDequeueV2", {handle}, [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); });
    tw_op* op = tw_scope_begin(s.c(), "QueueEnqueueV2", nullptr);
    const tw_output in[] = {handle, s.scalar(TW_FLOAT, 7)};
    tw_op_add_inputs(op, in, 2);
    put = tw_scope_end_operation(s.c(), op);
    s.on("");
  }
  tw_output handle, element;
  const tw_operation* put;
};

// Two tasks. The second is reached through a relay, whose address the others take for the task's.
class Links : public ::testing::Test {
 protected:
  Links() {
    static int count = 0;
    id_ = "l" + std::to_string(getpid()) + "-" + std::to_string(++count);
    first_at_ = NewAddress(id_ + "-w0");
    second_at_ = NewAddress(id_ + "-w1");
    link_at_ = NewAddress(id_ + "-r1");
    link_ = std::make_unique<Relay>(link_at_, second_at_);
    first_ = std::make_unique<tw::Server>(NewRuntime(), Cluster(link_at_), "worker", 0);
    second_ = std::make_unique<tw::Server>(NewRuntime(), Cluster(second_at_), "worker", 1);
  }
  std::string Cluster(const std::string& second) const { return R"({"worker": [")" + first_at_ + R"(", ")" + second + R"("]})"; }
  tw::Session NewSession(const tw::Graph& graph, std::vector<const char*> options = {}) const {
    const std::string target = "target=" + first_at_;
    options.push_back(target.c_str());
    return tw::Session(graph, options);
  }
  std::string id_, first_at_, second_at_, link_at_;
  std::unique_ptr<Relay> link_;
  std::unique_ptr<tw::Server> first_, second_;
  tw::Runtime client_ = NewRuntime();
};

TEST_F(Links, ThatHoldUpEverythingAreNoticedWithinFifteenSecondsAndWorkAgainLater) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, 1, id_.c_str());
  const tw_output waits = Placed(s, 0, "Neg", {q.element});
  s.finish();
  tw::Session session = NewSession(graph);
  session.run({}, {}, {q.put});
  EXPECT_THAT(session.run({}, {waits})[0].values<float>(), ElementsAre(-7));
  const bool both = Times("THALWEG_BLACKHOLES", 1) > 1;
  for (int way = 0; way < (both ? 3 : 1); ++way) {
    std::thread hold([&] {
      std::this_thread::sleep_for(100ms);
      link_->Hold(way != 1, way != 2);
    });
    const Failure f = FailureOf([&] { session.run({}, {waits}); });
    hold.join();
    EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
    EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:1 at " + link_at_));
    EXPECT_LT(f.seconds, 15);
    link_->Hold(false, false);
    // The delayed messages arrive now; their step is over.
    Failure again;
    for (int i = 0; i < 150; ++i) {
      again = FailureOf([&] { session.run({}, {}, {q.put}); });
      if (again.text.empty()) break;
      std::this_thread::sleep_for(100ms);
    }
    EXPECT_EQ(again.text, "");
    EXPECT_THAT(session.run({}, {waits})[0].values<float>(), ElementsAre(-7));
  }
}

// The client hears from both tasks all the time; one of them must notice that the other has gone
// silent for it.
TEST_F(Links, BetweenTasksThatHoldUpEverythingAreNoticedToo) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});  // too large to be pushed
  const tw_output there = Placed(s, 1, "Neg", {x}), y = Placed(s, 0, "Neg", {there});
  s.finish();
  tw::Session session = NewSession(graph);
  const std::vector<float> value(50'000, 3.f), negative(50'000, -3.f);
  const tw::Tensor feed({50'000}, value);
  EXPECT_EQ(session.run({{x, feed}}, {there})[0].values<float>(), negative);
  const int of_the_client = link_->connections();
  EXPECT_EQ(session.run({{x, feed}}, {y})[0].values<float>(), value);
  link_->Hold(true, true, of_the_client);
  const Failure f = FailureOf([&] { session.run({{x, feed}}, {y}); });
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:1 at " + link_at_));
  EXPECT_LT(f.seconds, 15);
  link_->Hold(false, false);
  EXPECT_EQ(session.run({{x, feed}}, {y})[0].values<float>(), value);
}

TEST_F(Links, ThatResetAreConnectedAgain) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output y = Placed(s, 1, "Neg", {Placed(s, 0, "Neg", {s.scalar(TW_FLOAT, 3)})});
  s.finish();
  tw::Session session = NewSession(graph);
  for (int round = 0; round < 5; ++round) {
    EXPECT_THAT(session.run({}, {y})[0].values<float>(), ElementsAre(3));
    link_.reset();  // closes all its connections, too
    link_ = std::make_unique<Relay>(link_at_, second_at_);
    Failure f;
    for (int i = 0; i < 3; ++i) {
      f = FailureOf([&] { EXPECT_THAT(session.run({}, {y})[0].values<float>(), ElementsAre(3)); });
      if (f.text.empty()) break;
      EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE}) << f.text;
    }
    EXPECT_EQ(f.text, "");
  }
}

// Sends everything that a session once sent to the task that took the old one's place; the task
// must do nothing.
TEST_F(Links, ReplaysOfWhatAnEarlierIncarnationWasToldChangeNothing) {
  if (!OverSockets()) GTEST_SKIP() << "this test repeats packets of the socket transport";
  tw::Graph graph(client_);
  tw::Scope s(graph);
  s.on(Servers::task(1).c_str());
  const tw_output v = s.variable("v", s.scalar(TW_FLOAT, 0));
  const tw_output read = s.read(v);
  tw_op* op = tw_scope_begin(s.c(), "AssignAddVariableOp", nullptr);
  const tw_output in[] = {v, s.scalar(TW_FLOAT, 1)};
  tw_op_add_inputs(op, in, 2);
  const tw_operation* add = tw_scope_end_operation(s.c(), op);
  const tw_operation* start = s.initializer();
  s.finish();
  const tw::Runtime runtime = NewRuntime();  // keeps the variables when the server ends
  const std::string cluster = Cluster(second_at_);
  second_.reset();
  second_ = std::make_unique<tw::Server>(runtime, cluster, "worker", 1);
  {
    tw::Session session = NewSession(graph);
    session.run({}, {}, {start});
    session.run({}, {}, {add});
    EXPECT_THAT(session.run({}, {read})[0].values<float>(), ElementsAre(1));
  }
  std::vector<std::string> said;
  for (const auto& connection : link_->Heard()) said.insert(said.end(), connection.begin(), connection.end());
  ASSERT_GT(said.size(), 5u);
  const int restarts = Times("THALWEG_RESTARTS", 1000);
  for (int i = 0; i < restarts; ++i) {
    second_.reset();
    second_ = std::make_unique<tw::Server>(runtime, cluster, "worker", 1);
    const int fd = ConnectAsOwnUser(second_at_);
    ASSERT_GE(fd, 0);
    for (const std::string& packet : said) EXPECT_EQ(send(fd, packet.data(), packet.size(), MSG_NOSIGNAL), ssize_t(packet.size()));
    // When a later request is answered, all of it has been read.
    char answer[1 << 16];
    size_t refused = 0;
    timeval patience = {10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (ssize_t n; (n = recv(fd, answer, sizeof answer, 0)) > 0;) {
      refused += std::string(answer, size_t(n)).find("was restarted") != std::string::npos;
      if (refused > 4) break;
    }
    EXPECT_GT(refused, 4u) << "restart " << i;
    close(fd);
  }
  tw::Session session = NewSession(graph);
  EXPECT_THAT(session.run({}, {read})[0].values<float>(), ElementsAre(1));
  session.run({}, {}, {add});
  EXPECT_THAT(session.run({}, {read})[0].values<float>(), ElementsAre(2));
}

// A peer of another version, whose messages begin with another number.
TEST_F(Links, ThatCarryAnotherProtocolAreToldBothVersions) {
  if (!OverSockets()) GTEST_SKIP() << "this test reads packets of the socket transport";
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output y = Placed(s, 1, "Neg", {s.scalar(TW_FLOAT, 3)});
  s.finish();
  tw::Session session = NewSession(graph);
  session.run({}, {y});
  std::string packet = link_->Heard().at(0).at(0);
  constexpr size_t kFrame = 32;  // size of the transport's header before the request's head
  ASSERT_GT(packet.size(), kFrame);
  ASSERT_EQ(packet[kFrame], 1);
  for (const char version : {char(0), char(2)}) {
    packet[kFrame] = version;
    const int fd = ConnectAsOwnUser(second_at_);
    ASSERT_EQ(send(fd, packet.data(), packet.size(), MSG_NOSIGNAL), ssize_t(packet.size()));
    timeval patience = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char answer[4096];
    const ssize_t n = recv(fd, answer, sizeof answer, 0);
    close(fd);
    ASSERT_GT(n, 0);
    EXPECT_THAT(std::string(answer, size_t(n)),
                HasSubstr("a request of protocol version " + std::to_string(version) + ", but this runtime speaks 1"));
  }
  EXPECT_THAT(session.run({}, {y})[0].values<float>(), ElementsAre(-3));
}

using Failures = OneCluster;

TEST_F(Failures, ATaskThatIsAliveButStuckIsNamedWithinTheProgressBound) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, 1, "stuck");
  const tw_output on = Placed(s, 2, "Neg", {Placed(s, 0, "Neg", {q.element})});
  s.finish();
  tw::Session session = servers_.session(graph, {"progress_timeout_ms=400"});
  for (int round = 0; round < 2; ++round) {
    const Failure f = FailureOf([&] { session.run({}, {on}); });
    EXPECT_EQ(f.code, uint32_t{TW_DEADLINE_EXCEEDED});
    EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:1 at " + servers_.address(1) + " is alive, but stuck in its operations"));
    EXPECT_THAT(f.text, HasSubstr("progress_timeout_ms"));
    EXPECT_GT(f.seconds, .35);
    EXPECT_LT(f.seconds, 1.9);
  }
  session.run({}, {}, {q.put});
  EXPECT_THAT(session.run({}, {on})[0].values<float>(), ElementsAre(7));
}

TEST_F(Failures, AStepThatTakesLongerThanTheProgressBoundAndMovesIsNotEnded) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const tw_output n = s.placeholder("n", TW_FLOAT, {});
  const auto last = s.while_loop([&](tw::Scope& in, const tw::Values& v) { return in.op("Less", {v[0], n}); },
                                 [&](tw::Scope& in, const tw::Values& v) {
                                   in.on(Servers::task(1).c_str());
                                   const tw_output a = in.op("AddV2", {v[0], in.scalar(TW_FLOAT, 1)});
                                   in.on(Servers::task(2).c_str());
                                   return tw::Values{in.op("Neg", {in.op("Neg", {a})})};
                                 },
                                 {s.scalar(TW_FLOAT, 0)});
  s.finish();
  // The progress timeout exceeds a busy machine's pauses; the rounds double until a step takes
  // longer than the timeout.
  tw::Session session = servers_.session(graph, {"progress_timeout_ms=500"});
  double seconds = 0;
  for (float rounds = 3000; seconds < .8; rounds *= 2) {
    const Failure f =
        FailureOf([&] { EXPECT_THAT(session.run({{n, tw::Tensor(rounds)}}, {last[0]})[0].values<float>(), ElementsAre(rounds)); });
    ASSERT_EQ(f.text, "");
    seconds = f.seconds;
  }
}

// However and whenever a step ends: it ends in time and leaves nothing behind.
TEST_F(Failures, AStormOfCancelsAndDeadlinesLeavesNothingBehind) {
  tw::Graph graph(client_);
  tw::Scope s(graph);
  const Queue q(s, 1, "storm");
  const tw_output x = s.placeholder("x", TW_FLOAT, {});
  const tw_output quick = Placed(s, 2, "Neg", {Placed(s, 1, "Neg", {Placed(s, 0, "Neg", {x})})});
  const tw_output waits = Placed(s, 2, "AddV2", {quick, q.element});
  s.finish();
  tw::Session session = servers_.session(graph);
  const int steps = Times("THALWEG_STORM", 300);
  std::mt19937 random(7);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, ended{0}, late{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, seed = random()] {
      std::mt19937 mine(seed);
      for (int i = 0; i < steps / 3; ++i) {
        const bool blocks = mine() % 2;
        tw_run_options options = Within(mine() % 20 + 1);
        tw_cancel_token* token = nullptr;
        tw::raise(tw_cancel_token_create(&token));
        options.cancel = token;
        std::thread cancel([&, after = mine() % 25] {
          std::this_thread::sleep_for(std::chrono::milliseconds(after));
          tw_cancel_token_cancel(token);
        });
        const Failure f = FailureOf([&] {
          const auto out = session.run({{x, tw::Tensor(2.f)}}, {blocks ? waits : quick}, {}, &options);
          wrong += out[0].values<float>()[0] != (blocks ? 5.f : -2.f);
        });
        cancel.join();
        tw_cancel_token_destroy(token);
        wrong += f.seconds > 15;
        late += f.seconds > 1.1;
        wrong += f.code != TW_OK && f.code != TW_CANCELLED && f.code != TW_DEADLINE_EXCEEDED;
        ended += f.code != TW_OK;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(late, steps / 10);  // allows for a busy machine
  EXPECT_GT(ended, steps / 4);
  // No part of the steps runs or waits anywhere, and the queue is unchanged.
  const std::string target = "target=" + servers_.address(0);
  std::string status;
  for (int i = 0; i < 1500; ++i) {
    status = tw::cluster_status(client_, {target.c_str()});
    if (status.find("\"idle_s\"") == status.npos) break;
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(status, ::testing::Not(HasSubstr("\"idle_s\""))) << status;
  session.run({}, {}, {q.put});
  EXPECT_THAT(session.run({{x, tw::Tensor(2.f)}}, {waits})[0].values<float>(), ElementsAre(5));
}

TEST(Messages, ThatAreTooLargeAreRefusedAndTheClusterGoesOn) {
  Servers servers(2, {"max_message_bytes=100000"});
  tw::Runtime client = NewRuntime();
  tw::Graph graph(client);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_output far = Placed(s, 1, "Neg", {x});
  const tw_output tiled = Placed(s, 0, "Sum", {Placed(s, 1, "Tile", {x, s.ints({100})}), s.ints({0})});
  s.finish();
  tw::Session session = servers.session(graph);
  for (int round = 0; round < 2; ++round) {
    const Failure feed = FailureOf([&] { session.run({{x, tw::Tensor({100000}, std::vector<float>(100000))}}, {far}); });
    EXPECT_EQ(feed.code, uint32_t{TW_RESOURCE_EXHAUSTED}) << feed.text;
    EXPECT_THAT(feed.text, HasSubstr("task /job:worker/task:1"));
    const Failure value = FailureOf([&] { session.run({{x, tw::Tensor({1000}, std::vector<float>(1000))}}, {tiled}); });
    EXPECT_EQ(value.code, uint32_t{TW_RESOURCE_EXHAUSTED}) << value.text;
    EXPECT_LT(value.seconds, 5);
    EXPECT_THAT(session.run({{x, tw::Tensor({1}, std::vector<float>{2})}}, {far})[0].values<float>(), ElementsAre(-2));
  }
}

// The peer hangs up at once: the intervals between attempts grow, and waiting uses no processor
// time.
TEST(Reconnecting, TakesItsTimeAndKeepsTheLimit) {
  const double limit = Times("THALWEG_RECONNECT_MS", 2500) / 1000.;
  tw::Runtime client = NewRuntime();
  const std::string address = NewAddress("n" + std::to_string(getpid()));
  const int listener = ListenForOwnUser(address);
  ASSERT_GE(listener, 0);
  std::atomic<int> calls{0};
  std::atomic<bool> stop{false};
  std::thread hangs_up([&] {
    pollfd p = {listener, POLLIN, 0};
    while (!stop) {
      if (poll(&p, 1, 20) <= 0) continue;
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++calls;
      close(fd);
    }
  });
  tw::Graph graph(client);
  const std::string target = "target=" + address, patience = "target_timeout_ms=" + std::to_string(int(limit * 1000));
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const Failure f = FailureOf([&] { tw::Session session(graph, {target.c_str(), patience.c_str()}); });
  getrusage(RUSAGE_SELF, &after);
  stop = true;
  hangs_up.join();
  close(listener);
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE}) << f.text;
  EXPECT_THAT(f.text, HasSubstr("target " + address));
  EXPECT_GT(f.seconds, limit - 1.1);
  EXPECT_LT(f.seconds, limit + 1.5);
  // Some attempts come at once, then one per half second, or one per second if the transport waits,
  // too.
  EXPECT_GE(calls, 4 + limit / 2);
  EXPECT_LE(calls, 25 + 2 * limit);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  EXPECT_LT(seconds(after.ru_utime) - seconds(before.ru_utime), .5 + limit / 100);
  RecordProperty("calls", calls);
}

// The peer says nothing; this is not a step's deadline.
TEST(Reconnecting, EndsWithATargetOutOfReachWhereNobodyAnswers) {
  tw::Runtime client = NewRuntime();
  const std::string address = NewAddress("q" + std::to_string(getpid()));
  const int listener = ListenForOwnUser(address);
  ASSERT_GE(listener, 0);
  tw::Graph graph(client);
  const std::string target = "target=" + address;
  const Failure f = FailureOf([&] { tw::Session session(graph, {target.c_str(), "target_timeout_ms=300"}); });
  close(listener);
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE}) << f.text;
  EXPECT_THAT(f.text, HasSubstr("target " + address + " cannot be reached: has not answered in time"));
}

TEST(Status, TellsOfTasksValuesAndWhoWaitsForWhom) {
  Servers servers(3);
  tw::Runtime client = NewRuntime();
  tw::Graph graph(client);
  tw::Scope s(graph);
  const Queue q(s, 1, "status");
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_output moved = Placed(s, 2, "Neg", {Placed(s, 0, "Neg", {x})}), on = Placed(s, 2, "Neg", {q.element});
  s.finish();
  tw::Session session = servers.session(graph);
  session.run({{x, tw::Tensor({1000}, std::vector<float>(1000))}}, {moved});
  std::thread waits([&] { session.run({}, {on}); });
  const std::string target = "target=" + servers.address(1);
  std::string status;
  for (int i = 0; i < 1500 && status.find("waits_for\": [{") == status.npos && status.find("\"waits_for\":[{") == status.npos; ++i) {
    std::this_thread::sleep_for(10ms);
    status = tw::cluster_status(client, {target.c_str()});
  }
  session.run({}, {}, {q.put});
  waits.join();
  EXPECT_THAT(status, HasSubstr("task /job:worker/task:1 at " + servers.address(1)));
  EXPECT_THAT(status, HasSubstr("4000"));  // the bytes that the third task got from the first
  servers.stop(2);
  EXPECT_THAT(tw::cluster_status(client, {target.c_str()}), HasSubstr("cannot be reached"));
  EXPECT_EQ(FailureOf([&] { tw::cluster_status(client, {}); }).code, uint32_t{TW_INVALID_ARGUMENT});
  const std::string nobody = "target=" + NewAddress("nobody-is-here");
  EXPECT_EQ(FailureOf([&] { tw::cluster_status(client, {nobody.c_str()}, 200'000'000); }).code, uint32_t{TW_UNAVAILABLE});
}

// The statistics of all tasks, on one clock.
TEST(Statistics, OfAStepOverTasksAreThoseOfAllOfThem) {
  Servers servers(3);
  tw::Runtime client = NewRuntime();
  tw::Graph graph(client);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", TW_FLOAT, {-1});
  const tw_output y = Placed(s, 2, "Exp", {Placed(s, 1, "Square", {Placed(s, 0, "Neg", {x})})});
  s.finish();
  tw::Session session = servers.session(graph);
  tw_step_stats* stats = nullptr;
  tw::raise(tw_step_stats_create(&stats));
  tw_run_options options = Within(0);
  options.stats = stats;
  // The midpoint of a round trip estimates when a task began, if both ways took equally long; on a
  // busy machine this fails sometimes.
  constexpr int64_t kSkew = 2'000'000;
  bool one_clock = false;
  for (uint32_t round = 1; round <= 3 || (round <= 200 && !one_clock); ++round) {
    session.run({{x, tw::Tensor({1000}, std::vector<float>(1000))}}, {y}, {}, &options);
    const tw_step_total& total = *tw_step_stats_total(stats);
    EXPECT_EQ(total.step, round);
    std::map<std::string, const tw_step_node*> ops;
    for (uint32_t i = 0; i < tw_step_stats_node_count(stats); ++i) {
      const tw_step_node* n = tw_step_stats_node(stats, i);
      ops[n->op] = n;
      EXPECT_GE(n->start_ns, 0);
      EXPECT_LE(n->start_ns, n->end_ns);
      EXPECT_LE(n->end_ns, total.total_ns);
      EXPECT_LT(n->id, tw_step_stats_node_count(stats));
    }
    ASSERT_TRUE(ops["Neg"] && ops["Square"] && ops["Exp"] && ops["_Send"] && ops["_Recv"]);
    EXPECT_THAT(ops["Neg"]->device, HasSubstr("/job:worker/replica:0/task:0/device:CPU"));
    EXPECT_THAT(ops["Exp"]->device, HasSubstr("/job:worker/replica:0/task:2/device:CPU"));
    one_clock = ops["Neg"]->end_ns < ops["Square"]->start_ns + kSkew && ops["Square"]->end_ns < ops["Exp"]->start_ns + kSkew;
  }
  EXPECT_TRUE(one_clock);
  tw_buffer* json = nullptr;
  tw::raise(tw_step_stats_json(stats, &json));
  const std::string trace = tw::take_text(json);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(trace, HasSubstr("/job:worker/replica:0/task:" + std::to_string(i) + "\""));
  tw_step_stats_destroy(stats);
}

}  // namespace
}  // namespace thalweg::testing
