// Step statistics of asynchronous devices, functions, loops and waits.
#include <algorithm>
#include <map>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/runtime/trace/step_stats.h"
#include "tests/framework/support/test_ops.h"
#include "tests/plugins/fake_runtime.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeRuntime;
using testing_support::Floats;
using testing_support::Settings;
using testing_support::Step;
using testing_support::TestGraph;

class TraceTest : public testing::Test {
 protected:
  // Runs two chains on a device, and their sum; every kernel takes a simulated 400 microseconds.
  void Run(Settings settings, const std::map<std::string, std::string>& options = {}) {
    settings.try_emplace("simulate_ns", "100000000");
    g_ = std::make_unique<TestGraph>(FakeRuntime(settings));
    Edge x = g_->Input(Shape({4}), "x");
    auto on = [&](const char* op, std::vector<Edge> in, const char* name) {
      return g_->Op(op, std::move(in), {.name = name, .device = "FAKE:0"});
    };
    Edge a = on("Relu", {on("Neg", {x}, "a1")}, "a2"), b = on("Neg", {on("Square", {x}, "b1")}, "b2");
    Edge y = on("AddV2", {a, b}, "y");
    std::vector<std::pair<std::string, std::string>> all(options.begin(), options.end());
    all.emplace_back("optimize", "false");
    auto session = g_->NewSession({all.begin(), all.end()});
    RunOptions watched;
    watched.stats = &stats_;
    for (int i = 0; i < 2; ++i) {
      auto out = Step(*session, {{x}, {y}, {}}, {Floats({0, 1, 2, 3})}, watched);
      ASSERT_TRUE(out.ok()) << out.status();
    }
    for (const tw_step_node& n : stats_.nodes()) by_name_[std::string(n.op) + " " + n.name] = n;
  }
  const tw_step_node& Node(const std::string& name) { return by_name_.at(name); }
  std::unique_ptr<TestGraph> g_;
  StepStats stats_;
  std::map<std::string, tw_step_node> by_name_;
};

TEST_F(TraceTest, KernelsOfADeviceHaveItsTimes) {
  const char* const names[] = {"Neg a1", "Relu a2", "Square b1", "Neg b2", "AddV2 y"};
  for (const char* engine : {"fixed", "counted"}) {
    std::map<std::string, int64_t> took;  // the minimum per node, since a busy machine adds to some
    for (int round = 0; round < 10; ++round) {
      Run({}, {{"engine", engine}});
      for (const char* name : names) {
        const tw_step_node& n = Node(name);
        EXPECT_TRUE(n.flags & TW_STEP_NODE_QUEUED) << name;
        EXPECT_STREQ(n.queue, "compute") << name;
        EXPECT_GE(n.device_end_ns - n.device_start_ns, 400'000) << name;
        EXPECT_GE(n.device_start_ns, n.start_ns) << name;
        EXPECT_LE(n.device_end_ns, n.end_ns) << name;
        EXPECT_LE(n.end_ns, stats_.total().total_ns) << name;
        const auto [least, first] = took.emplace(name, n.device_end_ns - n.device_start_ns);
        least->second = std::min(least->second, n.device_end_ns - n.device_start_ns);
      }
      // The device runs one kernel after the other, and each node has its own times.
      EXPECT_LE(Node("Neg a1").device_end_ns, Node("Relu a2").device_start_ns);
      EXPECT_LE(Node("Square b1").device_end_ns, Node("Neg b2").device_start_ns);
      EXPECT_LE(Node("Relu a2").device_end_ns, Node("AddV2 y").device_start_ns);
      EXPECT_LE(Node("Neg b2").device_end_ns, Node("AddV2 y").device_start_ns);
    }
    for (const auto& [name, ns] : took) EXPECT_LT(ns, 40'000'000) << name;
  }
}

TEST_F(TraceTest, CopiesSayHowMuchAndWhereTo) {
  Run({});
  const tw_step_node &in = Node("CopyToDevice feed"), &out = Node("CopyToHost y");
  EXPECT_EQ(in.output_bytes, 16u);
  EXPECT_THAT(in.to, HasSubstr("FAKE:0"));
  EXPECT_THAT(in.queue, HasSubstr("copy in"));
  EXPECT_THAT(out.to, HasSubstr("CPU:0"));
  EXPECT_THAT(out.queue, HasSubstr("copy out"));
  EXPECT_GE(out.device_start_ns, Node("AddV2 y").device_end_ns);
}

TEST_F(TraceTest, WithoutTimesOfTheDeviceNodesEndWhenTheHostHearsOfIt) {
  Run({{"without", "profile"}});
  const tw_step_node& n = Node("Relu a2");
  EXPECT_TRUE(n.flags & TW_STEP_NODE_QUEUED);
  EXPECT_STREQ(n.queue, "");
  EXPECT_EQ(n.device_end_ns, 0);
  EXPECT_GE(n.end_ns - n.start_ns, 400'000);
}

TEST_F(TraceTest, NodesTellTheirShapesAndWhatTheyWaitedFor) {
  Run({});
  EXPECT_STREQ(Node("AddV2 y").shapes, "float [4], float [4] -> float [4]");
  const tw_step_node& y = Node("AddV2 y");
  ASSERT_EQ(y.n_after, 2u);
  for (uint32_t k = 0; k < 2; ++k) EXPECT_TRUE(y.after[k] == Node("Relu a2").id || y.after[k] == Node("Neg b2").id);
  EXPECT_EQ(stats_.total().step, 2u);
}

TEST_F(TraceTest, TheHostsWaitForADeviceIsTold) {
  Run({});
  int64_t waited = 0;
  for (const tw_step_wait& w : stats_.waits()) {
    EXPECT_LT(w.start_ns, w.end_ns);
    EXPECT_EQ(w.thread == UINT32_MAX, w.why == TW_STEP_WAIT_THREAD || w.why == TW_STEP_WAIT_RESOURCE);
    if (w.why == TW_STEP_WAIT_DEVICE) waited += w.end_ns - w.start_ns;
  }
  EXPECT_GE(waited, 400'000);
}

// Four threads enqueue on one queue; each kernel's size determines its duration.
TEST(TraceOfManyThreadsTest, TimesAreOfTheNodeThatEnqueued) {
  TestGraph g(FakeRuntime({{"simulate_ns", "100000000"}, {"delay_us", "50"}}, 4));
  CallableSpec spec;
  std::vector<Tensor> feeds;
  for (int i = 0; i < 12; ++i) {
    spec.feeds.push_back(g.Input(Shape({1 + i}), "x" + std::to_string(i)));
    spec.fetches.push_back(g.Op("Neg", {spec.feeds.back()}, {.name = "n" + std::to_string(i), .device = "FAKE:0"}));
    feeds.push_back(Floats(std::vector<float>(size_t(1 + i), 1)));
  }
  auto session = g.NewSession({{"engine", "counted"}, {"optimize", "false"}});
  StepStats stats;
  RunOptions watched;
  watched.stats = &stats;
  std::map<std::string, int64_t> excess;  // the minimum per node, since a busy machine adds to some
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(Step(*session, spec, feeds, watched).ok());
    for (const tw_step_node& n : stats.nodes()) {
      if (n.flags & TW_STEP_NODE_COPY) continue;
      const int64_t simulated = (1 + atoi(n.name + 1)) * 100'000, took = n.device_end_ns - n.device_start_ns;
      EXPECT_GE(took, simulated) << n.name;
      const auto [least, first] = excess.emplace(n.name, took - simulated);
      least->second = std::min(least->second, took - simulated);
    }
  }
  EXPECT_EQ(excess.size(), 12u);
  for (const auto& [name, ns] : excess) EXPECT_LT(ns, 20'000'000) << name;
}

TEST(TraceLimitTest, WhatIsBeyondItIsCountedAndLeftOut) {
  TestGraph g(FakeRuntime());
  Edge x = g.Input(Shape({4}), "x"), y = x;
  for (int i = 0; i < 10; ++i) y = g.Op("Neg", {y});
  auto session = g.NewSession({{"optimize", "false"}});
  StepStats stats;
  stats.set_limit(3);
  RunOptions watched;
  watched.stats = &stats;
  ASSERT_TRUE(Step(*session, {{x}, {y}, {}}, {Floats({0, 1, 2, 3})}, watched).ok());
  EXPECT_EQ(stats.nodes().size(), 3u);
  EXPECT_EQ(stats.total().left_out, 7u);
  EXPECT_TRUE(stats.total().flags & TW_STEP_CUT);
  EXPECT_THAT(TraceJson(std::vector<const StepStats*>{&stats}), HasSubstr("7 records left out"));
}

}  // namespace
}  // namespace thalweg
