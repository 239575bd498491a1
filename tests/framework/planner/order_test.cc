// The order of nodes: priorities, small peaks, memory budgets. Every order keeps control edges and
// the results.
#include "framework/planner/emit/order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/runtime/runtime_of.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::ClearJournal;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

constexpr int64_t kSize = 1024;  // elements of the values that dominate memory
constexpr uint64_t kBytes = 4 * kSize;

class OrderTest : public testing::Test {
 protected:
  Edge Tag(Edge x, int64_t tag, int64_t priority = 0, std::vector<const Node*> controls = {}) {
    NodeSpec spec;
    spec.op = "Traced";
    spec.inputs = {x};
    spec.attrs["tag"] = AttrValue::Int(tag);
    spec.controls = std::move(controls);
    if (priority) spec.extra_attrs["_priority"] = *SerializeAttr(AttrValue::Int(priority));
    auto node = g_.graph().AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }
  std::vector<int64_t> Written(const std::vector<Edge>& fetches, const std::map<std::string, std::string>& options) {
    auto session = g_.NewSession(options);
    ClearJournal();
    auto out = Step(*session, {{x_}, fetches, {}}, {FloatsOf(Shape({kSize}))});
    EXPECT_TRUE(out.ok()) << out.status();
    return Journal();
  }
  // Eight values whose sum needs all of them; no edge keeps the sum from starting earlier.
  Edge EightAddedUp() {
    std::vector<Edge> all;
    for (int64_t i = 0; i < 8; ++i) all.push_back(Tag(x_, i));
    Edge sum = all[0];
    for (size_t i = 1; i < 8; ++i) sum = g_.Op("Add", {sum, all[i]});
    return g_.Op("Next", {sum});
  }
  StatusOr<PlanReport> Report(Edge y, const std::map<std::string, std::string>& options) {
    auto session = g_.NewSession(options);
    return (*session->MakeCallable({{x_}, {y}, {}}))->Report({Shape({kSize})});
  }
  TestGraph g_;
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(OrderTest, HigherPrioritiesRunFirst) {
  const std::vector<Edge> all = {Tag(x_, 1), Tag(x_, 2, -3), Tag(x_, 3, 7), Tag(x_, 4)};
  for (const char* engine : {"fixed", "counted"}) {
    EXPECT_THAT(Written(all, {{"engine", engine}}), ElementsAre(3, 1, 4, 2)) << engine;
  }
}

TEST_F(OrderTest, PrioritiesWaitForInputsAndControls) {
  Edge low = Tag(x_, 1, -5), other = Tag(x_, 2), high = Tag(low, 3, 9), last = Tag(x_, 4, 9, {other.node});
  for (const char* engine : {"fixed", "counted"}) {
    EXPECT_THAT(Written({high, last}, {{"engine", engine}}), ElementsAre(2, 4, 1, 3)) << engine;
  }
}

TEST_F(OrderTest, APriorityThatIsNoNumberIsNone) {
  NodeSpec spec;
  spec.op = "Traced";
  spec.inputs = {x_};
  spec.attrs["tag"] = AttrValue::Int(2);
  spec.extra_attrs["_priority"] = *SerializeAttr(AttrValue::String("high"));
  Edge odd = {*g_.graph().AddNode(std::move(spec)), 0};
  EXPECT_THAT(Written({Tag(x_, 1), odd}, {{"engine", "fixed"}}), ElementsAre(2, 1));  // in the order of creation
}

TEST_F(OrderTest, WithoutPrioritiesTheOrderIsTheGivenOne) {
  EXPECT_THAT(Written({EightAddedUp()}, {{"engine", "fixed"}}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(OrderTest, TheSmallestPeakHoldsFewValuesAtOnce) {
  Edge y = EightAddedUp();
  auto given = Report(y, {{"engine", "fixed"}}), small = Report(y, {{"order", "smallest_peak"}});
  ASSERT_TRUE(given.ok() && small.ok()) << given.status() << small.status();
  EXPECT_EQ(given->block_bytes, 8 * kBytes);
  EXPECT_EQ(given->peak_bytes, 8 * kBytes);
  EXPECT_EQ(small->block_bytes, 2 * kBytes);
  EXPECT_EQ(small->peak_bytes, 2 * kBytes);
  auto session = g_.NewSession({{"order", "smallest_peak"}}), other = g_.NewSession();
  const Tensor feed = FloatsOf(Shape({kSize}));
  EXPECT_EQ(Values((*Step(*session, {{x_}, {y}, {}}, {feed}))[0]), Values((*Step(*other, {{x_}, {y}, {}}, {feed}))[0]));
}

TEST_F(OrderTest, ABudgetChangesTheOrderOnlyWhereItHasTo) {
  Edge y = EightAddedUp();
  EXPECT_EQ(Report(y, {{"memory_budget", std::to_string(8 * kBytes)}})->block_bytes, 8 * kBytes);
  EXPECT_EQ(Report(y, {{"memory_budget", std::to_string(8 * kBytes - 1)}})->block_bytes, 2 * kBytes);
  EXPECT_EQ(Report(y, {{"memory_budget", std::to_string(2 * kBytes)}})->block_bytes, 2 * kBytes);
}

// Values that may share memory in sequential execution may not in parallel execution.
TEST_F(OrderTest, ABudgetGivesUpRunningSideBySide) {
  std::vector<Edge> ends;
  for (int64_t i = 0; i < 4; ++i) ends.push_back(Tag(Tag(x_, i), i + 10));
  Edge y = g_.Op("Next", {g_.Op("Sum", ends)});
  auto free = Report(y, {{"engine", "auto"}, {"memory_budget", "0"}});
  auto bound = Report(y, {{"memory_budget", std::to_string(5 * kBytes)}});
  ASSERT_TRUE(free.ok() && bound.ok());
  EXPECT_LE(bound->block_bytes, 5 * kBytes);
  auto later = Report(g_.Op("Next", {g_.Op("Later", {y})}), {{"engine", "counted"}, {"memory_budget", std::to_string(5 * kBytes)}});
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_TRUE(later->counted);
  EXPECT_LE(later->block_bytes, 5 * kBytes);
}

TEST_F(OrderTest, WhatNoOrderFitsIsRefused) {
  Edge y = EightAddedUp();
  auto r = Report(y, {{"memory_budget", std::to_string(2 * kBytes - 1)}, {"disable_pass", "recompute"}});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(r.status()),
              HasSubstr(StrCat("need ", 2 * kBytes, " bytes, but the session option 'memory_budget' allows ", 2 * kBytes - 1)));
  EXPECT_THAT(Text(r.status()), HasSubstr("(float[1024], 4096 bytes)"));
  r = Report(y, {{"memory_budget", std::to_string(2 * kBytes)}, {"order", "given"}, {"disable_pass", "recompute"}});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(r.status()), HasSubstr(StrCat("need ", 8 * kBytes, " bytes")));
}

// A budget that is enough for one batch size and not for another.
TEST_F(OrderTest, ABudgetHoldsForEveryShape) {
  Edge y = EightAddedUp();
  auto session = g_.NewSession({{"memory_budget", std::to_string(4 * kBytes)}, {"engine", "fixed"}});
  auto callable = *session->MakeCallable({{x_}, {y}, {}});
  EXPECT_EQ(callable->Report({Shape({kSize / 8})})->block_bytes, kBytes);
  EXPECT_EQ(callable->Report({Shape({kSize})})->block_bytes, 2 * kBytes);
  EXPECT_EQ(callable->Report({Shape({4 * kSize})}).status().code(), absl::StatusCode::kResourceExhausted);
  auto out = Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({kSize / 8}))});
  EXPECT_TRUE(out.ok()) << out.status();
}

TEST_F(OrderTest, EveryOrderKeepsDependenciesAndResults) {
  uint64_t given = 0, small = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    TestGraph g(SharedRuntimeOf(g_.graph()));
    RandomGraph random(&g, seed, {.nodes = 60, .elsewhere = seed % 3 == 0});
    const auto expected = random.Expected();
    std::vector<Shape> shapes;
    for (const Tensor& t : random.Feeds()) shapes.push_back(t.shape());
    for (const char* order : {"given", "smallest_peak"}) {
      PlanOptions o;
      o.engine = "fixed";
      o.order = order;
      TestStates states(&g.runtime());
      auto plan = CompilePlan(g.graph(), {random.spec().feeds, random.spec().fetches, {}}, shapes, o, &states);
      ASSERT_TRUE(plan.ok()) << plan.status();
      for (size_t i = 0; i < (*plan)->nodes.size(); ++i) {
        for (int32_t k : (*plan)->nodes[i].next) EXPECT_GT(k, int32_t(i));
      }
      (o.order == "given" ? given : small) += (*plan)->shapes->total_bytes();
      EXPECT_LE((*plan)->shapes->peak_bytes, (*plan)->shapes->total_bytes());
      for (const char* engine : {"fixed", "counted"}) {
        auto session = g.NewSession({{"order", order}, {"engine", engine}});
        auto out = Step(*session, random.spec(), random.Feeds());
        ASSERT_TRUE(out.ok()) << out.status();
        for (size_t k = 0; k < expected.size(); ++k) ASSERT_EQ(Values((*out)[k]), expected[k]) << order << ", " << engine;
      }
    }
  }
  EXPECT_LT(small, given);
}

}  // namespace
}  // namespace thalweg
