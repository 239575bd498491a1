// Values that are computed again or wait in host memory: fewer bytes at once, the same bits, and what
// the plan says of it.
#include "framework/planner/memory/shrink.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/graph/node_marks.h"
#include "framework/planner/memory/budget.h"
#include "framework/runtime/runtime_of.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/random_graph.h"

namespace thalweg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::FloatsOf;
using testing_support::RandomGraph;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

constexpr int64_t kSize = 1024;
constexpr uint64_t kBytes = 4 * kSize;

class ShrinkTest : public testing::Test {
 protected:
  Edge Add(const std::string& op, std::vector<Edge> in, bool marked = false, const std::string& device = "") {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(in);
    spec.device = device;
    if (marked) spec.extra_attrs[std::string(kReadsLateAttr)] = *SerializeAttr(AttrValue::Bool(true));
    auto node = g_.graph().AddNode(std::move(spec));
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }
  // A chain of layers, each of which multiplies by a value that no layer may overwrite, and then a
  // product with all their results in reverse order, as gradients read them.
  Edge Net(int layers, bool marked = false, const std::string& layer = "Next", const std::string& device = "") {
    std::vector<Edge> kept;
    Edge h = x_;
    for (int i = 0; i < layers; ++i) kept.push_back(h = Add(layer, {h}, false, device));
    Edge d = Add(device.empty() ? "Next" : "Neg", {h}, marked, device);
    for (int i = layers; i-- > 0;) d = Add("Mul", {d, kept[size_t(i)]}, marked, device);
    return d;
  }
  std::unique_ptr<Plan> PlanFor(Edge y, const PlanOptions& options) {
    auto plan = CompilePlan(g_.graph(), {{x_}, {y}, {}}, {Shape({kSize})}, options, &states_);
    status_ = plan.status();
    return plan.ok() ? *std::move(plan) : nullptr;
  }
  static PlanOptions Budget(uint64_t bytes) {
    PlanOptions o;
    o.engine = "fixed";
    o.memory_budget = bytes;
    return o;
  }
  std::vector<float> Result(Edge y, const std::map<std::string, std::string>& options) {
    auto session = g_.NewSession(options);
    auto out = Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({kSize}), 0.5f)});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? Values((*out)[0]) : std::vector<float>();
  }
  TestGraph g_;
  TestStates states_{&g_.runtime()};
  Edge x_ = g_.Input(Shape({-1}), "x");
  Status status_;
};

TEST_F(ShrinkTest, ABudgetIsMetByComputingValuesAgain) {
  const Edge y = Net(16);
  const auto free = PlanFor(y, Budget(0));
  ASSERT_TRUE(free) << status_;
  EXPECT_GE(free->shapes->total_bytes(), 15 * kBytes);
  EXPECT_FALSE(free->memory.any());
  for (uint64_t values : {12, 10, 8}) {
    const auto plan = PlanFor(y, Budget(values * kBytes));
    ASSERT_TRUE(plan) << status_;
    EXPECT_LE(plan->shapes->total_bytes(), values * kBytes);
    const MemoryNote& m = plan->memory;
    EXPECT_EQ(m.after, plan->shapes->total_bytes());
    EXPECT_EQ(m.before, free->shapes->total_bytes());
    EXPECT_EQ(m.recomputed.size(), plan->nodes.size() - free->nodes.size());
    EXPECT_GT(m.recompute_ns, 0);
    EXPECT_LT(m.recompute_ns, m.step_ns);
  }
}

TEST_F(ShrinkTest, ResultsKeepTheirBits) {
  const Edge y = Net(16);
  const std::vector<float> wanted = Result(y, {});
  for (const char* engine : {"fixed", "counted"}) {
    EXPECT_EQ(Result(y, {{"memory_budget", std::to_string(9 * kBytes)}, {"engine", engine}}), wanted) << engine;
  }
}

TEST_F(ShrinkTest, MarkedReadersComputeAgainWithoutABudget) {
  const Edge plain = Net(24), marked = Net(24, true);
  const uint64_t before = PlanFor(plain, Budget(0))->shapes->total_bytes();
  const auto plan = PlanFor(marked, Budget(0));
  ASSERT_TRUE(plan) << status_;
  EXPECT_LE(plan->shapes->total_bytes() * 10, before * 6);
  EXPECT_FALSE(plan->memory.recomputed.empty());
  PlanOptions off = Budget(0);
  off.disabled_passes = {"recompute"};
  EXPECT_EQ(PlanFor(marked, off)->shapes->total_bytes(), before);
  EXPECT_EQ(Result(marked, {}), Result(plain, {}));
  EXPECT_EQ(Result(marked, {{"engine", "counted"}}), Result(plain, {}));
}

// Equal nodes are merged before values are computed again, so merging cannot undo it.
TEST_F(ShrinkTest, NodesThatRunAgainWaitForTheirReaders) {
  const Edge y = Net(12, true);
  const auto plan = PlanFor(y, Budget(0));
  ASSERT_TRUE(plan) << status_;
  std::map<const Node*, int> first;
  int again = 0;
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    const PlanNode& n = plan->nodes[i];
    if (!first.emplace(n.run.node, int(i)).second) {
      ++again;
      EXPECT_THAT(n.title, HasSubstr("computed again: Next"));
      EXPECT_GE(n.pending, 1) << n.title;  // a node behind the peak, besides its input
    }
  }
  EXPECT_EQ(again, int(plan->memory.recomputed.size()));
  EXPECT_GT(again, 0);
}

TEST_F(ShrinkTest, EffectsAndRandomNumbersHappenOnce) {
  const Edge y = Net(16, false, "Noise");
  const auto plan = PlanFor(y, Budget(10 * kBytes));
  EXPECT_FALSE(plan);
  EXPECT_THAT(Text(status_), HasSubstr("'memory_budget' allows 40960"));
}

TEST_F(ShrinkTest, ABudgetThatCannotBeMetSaysHowMuchWouldDo) {
  const Edge y = Net(16);
  EXPECT_FALSE(PlanFor(y, Budget(kBytes)));
  const std::string text = Text(status_);
  EXPECT_THAT(text, AllOf(HasSubstr("the values of a step need "), HasSubstr("'memory_budget' allows 4096"),
                          HasSubstr("nodes that run twice"), HasSubstr("most is in use by '"), HasSubstr("(float[1024], 4096 bytes)")));
  const size_t at = text.find("set memory_budget=");
  ASSERT_NE(at, text.npos) << text;
  const uint64_t enough = std::stoull(text.substr(at + 18));
  EXPECT_LT(enough, 12 * kBytes);
  const auto plan = PlanFor(y, Budget(enough));
  ASSERT_TRUE(plan) << status_;
  EXPECT_LE(plan->shapes->total_bytes(), enough);
}

TEST_F(ShrinkTest, TheChartOfAPlanEndsAtItsPeakAndStaysAboveTheBound) {
  const Edge y = Net(10);
  const auto plan = PlanFor(y, Budget(0));
  const std::vector<uint64_t> live = LiveBytes(*plan, *plan->shapes);
  ASSERT_EQ(live.size(), plan->nodes.size());
  EXPECT_EQ(*std::max_element(live.begin(), live.end()), plan->shapes->peak_bytes);
  const uint64_t bound = LowerBoundBytes(*plan, *plan->shapes);
  EXPECT_EQ(bound, 2 * kBytes);  // Next reads one value and makes another
}

TEST_F(ShrinkTest, RandomGraphsKeepTheirResultsWithinAnyBudget) {
  int met = 0, shrunk = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    TestGraph g(SharedRuntimeOf(g_.graph()));
    RandomGraph random(&g, seed, {.nodes = 80, .elsewhere = seed % 3 == 0});
    const auto expected = random.Expected();
    std::vector<Shape> shapes;
    for (const Tensor& t : random.Feeds()) shapes.push_back(t.shape());
    TestStates states(&g.runtime());
    PlanOptions o;
    auto plan = CompilePlan(g.graph(), {random.spec().feeds, random.spec().fetches, {}}, shapes, o, &states);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (uint64_t percent : {90, 70, 50}) {
      const uint64_t budget = std::max<uint64_t>((*plan)->shapes->total_bytes() * percent / 100, 1);
      auto session = g.NewSession({{"memory_budget", std::to_string(budget)}});
      auto out = Step(*session, random.spec(), random.Feeds());
      if (!out.ok()) {
        EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
        continue;
      }
      ++met;
      for (size_t k = 0; k < expected.size(); ++k) ASSERT_EQ(Values((*out)[k]), expected[k]) << percent;
      PlanOptions within;
      within.memory_budget = budget;
      auto other = CompilePlan(g.graph(), {random.spec().feeds, random.spec().fetches, {}}, shapes, within, &states);
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_LE((*other)->shapes->total_bytes(), budget);
      shrunk += !(*other)->memory.recomputed.empty();
    }
  }
  EXPECT_GT(met, 40);
  EXPECT_GT(shrunk, 0);
}

}  // namespace
}  // namespace thalweg
