// Placement by cost and by learning, on simulated devices of known speed.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/registry/profiler_role.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::Dense;
using testing_support::FakeDevice;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::Settings;
using testing_support::Statistic;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

// Twelve independent branches of three kernels of twenty elements, and their sum on the CPU.
class Branches {
 public:
  static constexpr int kBranches = 12;
  // devices: branch i gets devices[i % n]; "": the session chooses.
  Branches(const Settings& settings, std::vector<std::string> devices) : g_(FakeRuntime(settings)) {
    x_ = g_.Input(Shape({20}), "x");
    std::vector<Edge> ends;
    for (int i = 0; i < kBranches; ++i) {
      Edge e = x_;
      for (int k = 0; k < 3; ++k) {
        e = g_.Op("Neg", {e}, {.name = StrCat("b", i, "_", k), .device = devices[size_t(i) % devices.size()]});
      }
      ends.push_back(e);
    }
    y_ = ends[0];
    for (int i = 1; i < kBranches; ++i) y_ = g_.Op("AddV2", {y_, ends[size_t(i)]}, {.device = "CPU:0"});
  }
  void Open(std::map<std::string, std::string> options) {
    options["optimize"] = "false";
    session_ = g_.NewSession({options.begin(), options.end()});
    auto made = session_->MakeCallable({{x_}, {y_}, {}});
    ASSERT_TRUE(made.ok()) << made.status();
    callable_ = *std::move(made);
  }
  void Run(StepStats* stats = nullptr) {
    RunOptions options;
    options.stats = stats;
    const Tensor feed = Floats(std::vector<float>(20, 1));
    Tensor out;
    Status s = callable_->Run(&feed, options, &out);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_THAT(Values(out), Each(FloatEq(-kBranches)));
  }
  void Close() {
    callable_.reset();
    session_.reset();
  }
  // Returns the simulated nanoseconds of all devices in all runs.
  int64_t AllSimulatedNs() {
    int64_t all = 0;
    for (int d = 0; d < 2; ++d) all += Statistic(*FakeDevice(g_.runtime(), d), "simulated_ns");
    return all;
  }
  // Registers a profiler that receives steps and keeps nothing.
  void AddProfiler(const char* name) {
    tw_profiler_def d = {TW_SIZED(tw_profiler_def), name, std::string_view(name).size()};
    d.start = [](const tw_host*, void*, const char*, uint64_t, void**) -> tw_status* { return nullptr; };
    d.step = [](const tw_host*, void*, const tw_profiled_step*) -> tw_status* { return nullptr; };
    d.span = [](const tw_host*, void*, const tw_profiled_span*) -> tw_status* { return nullptr; };
    d.stop = [](const tw_host*, void*) -> tw_status* { return nullptr; };
    auto role = SealRole(&d);
    ASSERT_TRUE(role.ok()) << role.status();
    Registration r;
    r.roles.push_back(*std::move(role));
    ASSERT_TRUE(g_.runtime().registry().Commit(std::move(r)).ok());
  }
  // Returns the simulated nanoseconds of the busiest device in one run.
  int64_t SimulatedNs() {
    int64_t most = 0;
    std::vector<int64_t> before;
    for (int d = 0; d < 2; ++d) before.push_back(Statistic(*FakeDevice(g_.runtime(), d), "simulated_ns"));
    Run();
    for (int d = 0; d < 2; ++d) most = std::max(most, Statistic(*FakeDevice(g_.runtime(), d), "simulated_ns") - before[size_t(d)]);
    return most;
  }
  std::string Plan() {
    auto text = callable_->PlanText(nullptr);
    return text.ok() ? Dense(*text) : Text(text.status());
  }
  SessionReport Report() { return session_->Report(); }

 private:
  TestGraph g_;
  Edge x_, y_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Callable> callable_;
};

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : file_(std::filesystem::path(testing::TempDir()) / ("placements." + std::to_string(getpid()))) { Clear(); }
  ~PlacementTest() override { Clear(); }
  void Clear() { std::filesystem::remove(file_); }
  std::map<std::string, std::string> Options(const std::string& placement) {
    return {{"placement", placement}, {"placement_file", file_.string()}, {"placement_steps", "3"}};
  }
  const std::filesystem::path file_;
};

TEST_F(PlacementTest, UnevenDevicesShareTheWorkByTheirMeasuredSpeed) {
  const Settings uneven = {{"simulate_ns", "10000000"}, {"speed", "100,25"}};
  int64_t equal_ns = 0;
  {
    Branches equal(uneven, {"FAKE:0", "FAKE:1"});
    equal.Open(Options("cost"));
    StepStats stats;
    for (int i = 0; i < 3; ++i) equal.Run(&stats);
    equal_ns = equal.SimulatedNs();
    equal.Close();  // closing keeps the measurements
  }
  Branches by_cost(uneven, {""});
  auto options = Options("cost");
  options["device"] = "FAKE";
  by_cost.Open(options);
  const int64_t cost_ns = by_cost.SimulatedNs();
  std::printf("slowest device, simulated: equal split %.2f ms, by cost %.2f ms: %.2fx\n", double(equal_ns) * 1e-6, double(cost_ns) * 1e-6,
              double(equal_ns) / double(cost_ns));
  RecordProperty("speedup", std::to_string(double(equal_ns) / double(cost_ns)));
  EXPECT_GE(double(equal_ns), 1.3 * double(cost_ns));
  const std::string plan = by_cost.Plan();
  EXPECT_THAT(plan, HasSubstr("\"why\":\"cost\",\"cost_ns\":"));
  EXPECT_THAT(plan, AllOf(HasSubstr("FAKE:0\",\"why\":\"cost\""), HasSubstr("FAKE:1\",\"why\":\"cost\"")));
}

TEST_F(PlacementTest, WhatIsLearnedIsFasterAndKept) {
  const Settings even = {{"simulate_ns", "50000000"}};  // a millisecond per kernel: the machine's other load is small beside it
  auto options = Options("learned");
  options["device"] = "FAKE";
  {
    Branches learning(even, {""});
    learning.Open(options);
    const int64_t first_ns = learning.SimulatedNs();  // all on the first device
    for (int i = 0; i < 20; ++i) learning.Run();
    EXPECT_LE(double(learning.SimulatedNs()), 0.7 * double(first_ns));
    EXPECT_THAT(learning.Plan(), AllOf(HasSubstr("FAKE:0\",\"why\":\"cost\""), HasSubstr("FAKE:1\",\"why\":\"cost\"")));
  }
  Branches later(even, {""});
  later.Open(options);
  later.Run();
  EXPECT_THAT(later.Plan(), AllOf(HasSubstr("FAKE:0\",\"why\":\"learned\""), HasSubstr("FAKE:1\",\"why\":\"learned\"")));
  for (int i = 0; i < 10; ++i) later.Run();
  EXPECT_EQ(later.Report().plans.misses, 1u);
  // The learned placement was for other devices, so it is ignored.
  Branches elsewhere({{"simulate_ns", "10000000"}, {"devices", "1"}}, {""});
  elsewhere.Open(options);
  elsewhere.Run();
  EXPECT_THAT(elsewhere.Plan(), Not(HasSubstr("learned")));
}

TEST_F(PlacementTest, WhatIsSlowerIsNotKept) {
  // The CPU takes microseconds where the devices take milliseconds.
  Branches b({{"simulate_ns", "20000000"}}, {""});
  b.Open(Options("learned"));
  for (int i = 0; i < 25; ++i) b.Run();
  EXPECT_EQ(b.SimulatedNs(), 0);
}

TEST_F(PlacementTest, ASessionWithAProfilerLearnsAsWell) {
  Branches b({{"simulate_ns", "20000000"}}, {""});
  b.AddProfiler("quiet");
  auto options = Options("learned");
  options["profiler"] = "quiet";
  b.Open(options);
  for (int i = 0; i < 25; ++i) b.Run();
  EXPECT_GT(b.AllSimulatedNs(), 0);  // the devices were tried
  EXPECT_EQ(b.SimulatedNs(), 0);     // the CPU is faster
}

TEST_F(PlacementTest, AFileThatIsTornCountsForNothing) {
  for (const char* text : {"", "thalweg-placements 1\n", "thalweg-placements 1\nplace\tx", "something else\nend\t0\n",
                           "thalweg-placements 1\nend\t5\n", "thalweg-placements 1\nkernel\tNeg\t%\t%4\tmany\t1\nend\t1\n"}) {
    std::ofstream(file_) << text;
    Branches b({}, {""});
    b.Open(Options("cost"));
    b.Run();
  }
}

TEST_F(PlacementTest, PlansSayWhyEveryNodeIsWhereItIs) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({4}), "x");
  Edge asked = g.Op("Neg", {x}, {.name = "asked", .device = "FAKE:1"});
  Edge shared = g.Op("Neg", {asked}, {.name = "shared", .colocate_with = {"asked"}});
  Edge first = g.Op("Neg", {shared}, {.name = "first"});
  Edge only = g.Op("Sinh", {first}, {.name = "only"});
  Edge elsewhere = g.Op("Sinh", {only}, {.name = "elsewhere", .device = "FAKE:0"});
  auto session = g.NewSession({{"fallback", "allow"}, {"optimize", "false"}});
  auto callable = session->MakeCallable({{x}, {elsewhere}, {}});
  ASSERT_TRUE(callable.ok());
  const std::vector<Shape> shapes = {Shape({4})};
  const std::string plan = Dense(*(*callable)->PlanText(&shapes));
  const std::string host = "/job:localhost/replica:0/task:0/device:";
  EXPECT_THAT(plan, HasSubstr("{\"node\":\"asked\",\"op\":\"Neg\",\"device\":\"" + host + "FAKE:1\",\"why\":\"asked\"}"));
  EXPECT_THAT(plan,
              HasSubstr("{\"node\":\"shared\",\"op\":\"Neg\",\"device\":\"" + host + "FAKE:1\",\"why\":\"shared\",\"with\":\"asked\"}"));
  EXPECT_THAT(plan, HasSubstr("{\"node\":\"first\",\"op\":\"Neg\",\"device\":\"" + host + "CPU:0\",\"why\":\"first\"}"));
  EXPECT_THAT(plan, HasSubstr("{\"node\":\"only\",\"op\":\"Sinh\",\"device\":\"" + host + "CPU:0\",\"why\":\"only_there\"}"));
  EXPECT_THAT(plan, HasSubstr("{\"node\":\"elsewhere\",\"op\":\"Sinh\",\"device\":\"" + host + "CPU:0\",\"why\":\"fallback\"}"));
}

}  // namespace
}  // namespace thalweg
