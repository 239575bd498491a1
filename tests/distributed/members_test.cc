// Clusters whose tasks are members of a service that tells who is alive: the example that keeps its store in a folder.
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/distributed/servers.h"

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
  // What the example does when a lease has ended: a record that removes the key.
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
  // It was alive after all, and takes part again.
  EXPECT_THAT(session.run({}, {plain})[0].values<float>(), ElementsAre(-2));
}

// The service has lost the task's lease, though the task is alive: it joins again.
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

}  // namespace
}  // namespace thalweg::testing
