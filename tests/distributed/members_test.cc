// Clusters whose tasks register with a membership service: the example that keeps its store in a
// folder, and etcd.
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/by_hand.h"
#include "tests/distributed/relay.h"
#include "tests/distributed/servers.h"
#ifdef ETCD_MEMBERSHIP
#include "tests/plugins/etcd_store.h"
#endif

namespace thalweg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

tw::Runtime RuntimeWithMembership() {
  tw::Runtime runtime = NewRuntime();
  runtime.load_plugin(FOLDER_MEMBERSHIP);
  return runtime;
}

class Membership : public ::testing::Test {
 protected:
  Membership() : id_("m" + std::to_string(getpid())), folder_(::testing::TempDir() + id_) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    for (int i = 0; i < 2; ++i) at_.push_back(NewAddress(id_ + "-" + std::to_string(i)));
    cluster_ = R"({"cluster": {"worker": [")" + at_[0] + R"(", ")" + at_[1] + R"("]}, "membership": "file:)" + folder_ + R"(/team"})";
    for (uint32_t i = 0; i < 2; ++i) Start(i);
  }
  ~Membership() override {
    for (auto& s : servers_) s.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start(uint32_t i) { servers_[i] = std::make_unique<tw::Server>(RuntimeWithMembership(), cluster_, "worker", i); }
  std::string Log() const {
    std::string all;
    for (const auto& f : std::filesystem::directory_iterator(folder_)) {
      std::ifstream in(f.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    }
    return all;
  }
  // Does what the example does when a lease has ended: appends a record that removes the key.
  void RemoveKey(const std::string& key) const {
    for (const auto& f : std::filesystem::directory_iterator(folder_)) {
      if (f.path().filename().string().find(".lease.") != std::string::npos) continue;
      const uint64_t record[] = {0, 1, key.size(), 0};
      std::string bytes(reinterpret_cast<const char*>(record), sizeof record);
      std::ofstream(f.path(), std::ios::binary | std::ios::app) << bytes + key;
    }
  }
  const std::string id_, folder_;
  std::vector<std::string> at_;
  std::string cluster_;
  std::unique_ptr<tw::Server> servers_[2];
  tw::Runtime client_ = RuntimeWithMembership();
};

TEST_F(Membership, MakesNoTaskOfAnAddressThatTheClusterDoesNotName) {
  if (std::getenv("THALWEG_TEST_TRANSPORT")) GTEST_SKIP() << "the packets are those of the socket transport";
  ClientByHand client(at_[0]);
  const std::string task = client.Ask(Request(kHello, 0)).substr(16, 8), session = Number(uint64_t{5});
  ASSERT_EQ(client.Ask(Request(kOpen, NumberAt(task, 0), session + Number(uint32_t{0}))).substr(0, 2), Good());
  const auto registered = [&](const std::string& address) {
    const std::string nothing = Number(uint32_t{0});
    std::string piece = Text("");
    for (int i = 0; i < 6; ++i) piece += nothing;  // nodes, loops, extended; feeds, fetches, targets
    piece += Number(uint32_t{1}) + Text("edge") + Text(address) + Text("task /job:worker/task:1") + Number(uint64_t{0});
    return client.Ask(Request(kRegister, NumberAt(task, 0), session), piece);
  };
  const std::string refused = registered("elsewhere");
  EXPECT_EQ(refused[0], char(TW_PERMISSION_DENIED));
  EXPECT_THAT(refused, HasSubstr("address 'elsewhere' is no task's of the cluster; its tasks: /job:worker/task:0 at " + at_[0]));
  EXPECT_EQ(registered(at_[1].substr(at_[1].find(':') + 1)).substr(0, 2), Good());
}

TEST_F(Membership, TellsAClientAtOnceThatATaskIsGone) {
  EXPECT_THAT(Log(), HasSubstr("task/worker/0"));
  EXPECT_THAT(Log(), HasSubstr("task/worker/1"));
  tw::Graph graph(client_);
  tw::Scope s(graph);
  s.on(Servers::task(1).c_str());
  const uint32_t type = TW_FLOAT;
  const tw_output queue = s.op("FIFOQueueV2", {}, [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); });
  const tw_output element = s.op("QueueDequeueV2", {queue}, [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); });
  const tw_output plain = s.op("Neg", {s.scalar(TW_FLOAT, 2)});
  s.finish();
  const std::string target = "target=" + at_[0];
  tw::Session session(graph, {target.c_str()});
  EXPECT_THAT(session.run({}, {plain})[0].values<float>(), ElementsAre(-2));
  std::thread stop([&] {
    std::this_thread::sleep_for(100ms);
    RemoveKey("task/worker/1");
  });
  const Failure f = FailureOf([&] { session.run({}, {element}); });
  stop.join();
  EXPECT_EQ(f.code, uint32_t{TW_UNAVAILABLE});
  EXPECT_THAT(f.text, HasSubstr("task /job:worker/task:1 at " + at_[1] + ": is gone, says file:" + folder_ + "/team"));
  EXPECT_LT(f.seconds, 2);
  // The task was alive after all, and takes part again.
  EXPECT_THAT(session.run({}, {plain})[0].values<float>(), ElementsAre(-2));
}

// The service has lost the lease of a task that is alive; the task rejoins.
TEST_F(Membership, ATaskWhoseLeaseIsLostJoinsAgain) {
  const size_t before = Log().size();
  for (const auto& f : std::filesystem::directory_iterator(folder_)) {
    if (f.path().filename().string().find(".lease.") != std::string::npos) std::filesystem::remove(f.path());
  }
  size_t leases = 0;
  for (int i = 0; i < 1500 && leases < 2; ++i) {
    std::this_thread::sleep_for(20ms);
    leases = 0;
    for (const auto& f : std::filesystem::directory_iterator(folder_))
      leases += f.path().filename().string().find(".lease.") != std::string::npos;
  }
  EXPECT_EQ(leases, 2u);
  for (int i = 0; i < 1500 && Log().size() <= before; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_GT(Log().size(), before);
}

TEST_F(Membership, ThatIsNotThereIsTold) {
  const auto failure = [&](const std::string& where) {
    const std::string cluster = R"({"cluster": {"worker": [")" + NewAddress(id_ + "-9") + R"("]}, "membership": ")" + where + "\"}";
    return FailureOf([&] { tw::Server(RuntimeWithMembership(), cluster, "worker", 0); }).text;
  };
  EXPECT_THAT(failure("nobody:x/team"), HasSubstr("no membership service of scheme 'nobody'"));
  EXPECT_THAT(failure("nonsense"), HasSubstr("write `scheme:address/cluster`"));
  EXPECT_THAT(failure("file:/no/such/folder/team"), HasSubstr("membership 'file:/no/such/folder/team'"));
}

// ---- In place of signs of life ----

// Two tasks. The second is reached through a relay that records its requests; when an element is
// enqueued, a value goes from the second to the first.
class Asked {
 public:
  // membership: the cluster's setting; empty: none.
  explicit Asked(const std::string& membership, const char* plugin) {
    static int count = 0;
    const std::string id = "a" + std::to_string(getpid()) + "-" + std::to_string(++count);
    const std::string first = NewAddress(id + "-0"), second = NewAddress(id + "-1"), link = NewAddress(id + "-r");
    relay_ = std::make_unique<Relay>(link, second);
    const auto cluster = [&](const std::string& at) {
      const std::string tasks = R"({"worker": [")" + first + R"(", ")" + at + R"("]})";
      return membership.empty() ? tasks : R"({"cluster": )" + tasks + R"(, "membership": ")" + membership + "\"}";
    };
    const auto runtime = [&] {
      tw::Runtime r = NewRuntime();
      if (!membership.empty()) r.load_plugin(plugin);
      return r;
    };
    first_ = std::make_unique<tw::Server>(runtime(), cluster(link), "worker", 0);
    second_ = std::make_unique<tw::Server>(runtime(), cluster(second), "worker", 1);
    client_ = runtime();
    graph_ = std::make_unique<tw::Graph>(client_);
    tw::Scope s(*graph_);
    s.on(Servers::task(1).c_str());
    const uint32_t type = TW_FLOAT;
    const tw_output queue = s.op("FIFOQueueV2", {}, [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); });
    const tw_output element = s.op("QueueDequeueV2", {queue}, [&](tw_op* op) { tw_op_set_types(op, "component_types", &type, 1); });
    tw_op* op = tw_scope_begin(s.c(), "QueueEnqueueV2", nullptr);
    const tw_output in[] = {queue, s.scalar(TW_FLOAT, 7)};
    tw_op_add_inputs(op, in, 2);
    put_ = tw_scope_end_operation(s.c(), op);
    s.on(Servers::task(0).c_str());
    waits_ = s.op("Neg", {element});
    s.finish();
    target_ = "target=" + first;
  }
  tw::Session session(std::vector<const char*> options = {}) const {
    options.push_back(target_.c_str());
    return tw::Session(*graph_, options);
  }
  // Returns how many requests of this method (distributed/messages.h) the second task got.
  int asked(char method) const {
    constexpr size_t kFrame = 32;  // size of the transport's header, which begins with 0 for a request; version and method follow it
    int n = 0;
    for (const auto& connection : relay_->Heard()) {
      for (const std::string& p : connection) n += p.size() > kFrame + 1 && p[0] == 0 && p[kFrame] == 1 && p[kFrame + 1] == method;
    }
    return n;
  }
  // Returns how many requests of the method the second task got while a step waited for that time;
  // then lets the step end.
  int asked_while(tw::Session& session, char method, std::chrono::milliseconds time) const {
    Failure failed;
    std::thread waits([&] { failed = FailureOf([&] { EXPECT_THAT(session.run({}, {waits_})[0].values<float>(), ElementsAre(-7)); }); });
    std::this_thread::sleep_for(500ms);  // the messages that begin the step do not count
    const int before = asked(method);
    std::this_thread::sleep_for(time);
    const int during = asked(method) - before;
    const Failure not_put = FailureOf([&] { session.run({}, {}, {put_}); });
    if (!not_put.text.empty()) session.close();  // nothing else would end the step
    waits.join();
    EXPECT_EQ(not_put.text, "");
    EXPECT_EQ(failed.text, "");
    return during;
  }

 private:
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<tw::Server> first_, second_;
  tw::Runtime client_ = NewRuntime();
  std::unique_ptr<tw::Graph> graph_;
  std::string target_;
  tw_output waits_;
  const tw_operation* put_ = nullptr;
};

constexpr char kHello = 1, kStatus = 9;

class Signs : public ::testing::Test {
 protected:
  Signs() : folder_(::testing::TempDir() + "signs" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~Signs() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (!OverSockets()) GTEST_SKIP() << "this test counts packets of the socket transport";
  }
  const std::string folder_;
};

TEST_F(Signs, OfLifeAreAskedForWhereNobodyTellsWhoIsAlive) {
  const Asked asked("", "");
  tw::Session session = asked.session();
  asked.asked_while(session, kHello, 0ms);  // registers the graph on the tasks
  // Each second the client asks, and so does the first task, which waits for the second.
  EXPECT_GE(asked.asked_while(session, kHello, 4500ms), 4);
}

TEST_F(Signs, OfLifeAreNotAskedForWhereAServiceTellsWhoIsAlive) {
  const Asked asked("file:" + folder_ + "/team", FOLDER_MEMBERSHIP);
  {
    tw::Session session = asked.session();
    asked.asked_while(session, kHello, 0ms);
    EXPECT_EQ(asked.asked_while(session, kHello, 4500ms), 0);
    EXPECT_EQ(asked.asked_while(session, kStatus, 1500ms), 0);
  }
  // Progress of steps is asked for separately.
  tw::Session session = asked.session({"progress_timeout_ms=10000"});
  asked.asked_while(session, kHello, 0ms);
  EXPECT_GE(asked.asked_while(session, kStatus, 2500ms), 1);
  EXPECT_EQ(asked.asked_while(session, kHello, 2500ms), 0);
}

#ifdef ETCD_MEMBERSHIP
TEST_F(Signs, OfLifeAreAskedForWhileEtcdIsAwayAndNoLonger) {
  if (!Etcd::Installed()) GTEST_SKIP() << "there is no etcd";
  Etcd store;
  const std::string where = "etcd:" + store.address() + "/team";
  std::unique_ptr<Asked> asked;
  for (int i = 0; i < 300 && !asked; ++i) {  // the service takes some time to start
    try {
      asked = std::make_unique<Asked>(where, ETCD_MEMBERSHIP);
    } catch (const tw::StatusError& e) {
      ASSERT_EQ(e.code(), uint32_t{TW_UNAVAILABLE}) << e.what();
      std::this_thread::sleep_for(100ms);
    }
  }
  ASSERT_TRUE(asked);
  tw::Session session = asked->session();
  asked->asked_while(session, kHello, 0ms);
  EXPECT_EQ(asked->asked_while(session, kHello, 4500ms), 0);
  store.Stop();
  int signs = 0;
  for (int i = 0; i < 30 && signs == 0; ++i) signs = asked->asked_while(session, kHello, 2000ms);
  EXPECT_GT(signs, 0);
  // The service returns with its data: no member is lost, and no step fails.
  store.Start();
  for (int i = 0; i < 30 && signs > 0; ++i) signs = asked->asked_while(session, kHello, 2000ms);
  EXPECT_EQ(signs, 0);
}
#endif

}  // namespace
}  // namespace thalweg::testing
