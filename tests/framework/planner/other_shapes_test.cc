// One plan serves feeds of many shapes: its results are those of a session for each shape, and
// another plan is made only if necessary.
#include <ctime>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/autodiff/autodiff.h"
#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::FloatsOf;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::TestRuntime;
using testing_support::TestStates;
using testing_support::Text;
using testing_support::Values;

using Options = std::map<std::string, std::string>;

// ---- Over the ops of test_ops.h ----

class OtherShapesTest : public testing::Test {
 protected:
  OtherShapesTest() : OtherShapesTest(TestRuntime(2)) {}
  explicit OtherShapesTest(std::shared_ptr<Runtime> runtime) : g_(std::move(runtime)) {}
  // Runs a step of each shape in one shared session and in a new session; returns the number of
  // plans of the shared session.
  uint64_t PlansFor(const CallableSpec& spec, const std::vector<std::vector<Shape>>& shapes, const Options& options = {}) {
    auto session = g_.NewSession(options);
    for (int round = 0; round < 2; ++round) {
      for (const std::vector<Shape>& s : shapes) {
        std::vector<Tensor> feeds;
        for (const Shape& shape : s) feeds.push_back(FloatsOf(shape, float(feeds.size()) - 2));
        auto alone = g_.NewSession(options);
        auto out = Step(*session, spec, feeds), expected = Step(*alone, spec, feeds);
        EXPECT_TRUE(out.ok()) << out.status();
        EXPECT_TRUE(expected.ok()) << expected.status();
        for (size_t k = 0; out.ok() && expected.ok() && k < out->size(); ++k) {
          EXPECT_EQ((*out)[k].shape(), (*expected)[k].shape());
          EXPECT_EQ(Values((*out)[k]), Values((*expected)[k])) << "fetch " << k << " of " << s[0].text();
        }
      }
    }
    report_ = session->Report();
    return report_.plans.misses;
  }
  TestGraph g_;
  Edge x_ = g_.Input(Shape({-1}), "x");
  SessionReport report_;
};

TEST_F(OtherShapesTest, AKernelThatDeclinesNewShapesNeedsANewPlan) {
  const Edge one = g_.Const(FloatsOf(Shape(std::vector<int64_t>()), 1));
  const CallableSpec spec = {{x_}, {g_.Op("Fussy", {x_, one}, {.device = "FAKE:0"})}, {}};
  EXPECT_EQ(PlansFor(spec, {{Shape({2})}, {Shape({3})}}), 1u);
  EXPECT_EQ(PlansFor(spec, {{Shape({2})}, {Shape({5})}, {Shape({3})}}), 2u);
}

TEST_F(OtherShapesTest, ANewSizeNeedsNoNewPlan) {
  Edge a = g_.Op("Next", {x_}), b = g_.Op("Mirror", {g_.Op("Neg", {a})}), two = g_.Op("Two", {g_.Op("Flat", {b})});
  Edge sum = g_.Op("Sum", {a, two, {two.node, 1}}), clip = g_.Op("Clip", {sum}), end = g_.Op("Mul", {g_.Op("Flat", {x_}), clip});
  for (const char* engine : {"fixed", "counted"}) {
    EXPECT_EQ(
        PlansFor({{x_}, {end, clip}, {}}, {{Shape({5})}, {Shape({1})}, {Shape({1000})}, {Shape({0})}, {Shape({7})}}, {{"engine", engine}}),
        1u);
    EXPECT_EQ(report_.plans.plans, 1u);
    EXPECT_EQ(report_.plans.shapes, 5u);
    EXPECT_EQ(report_.plans.shape_hits, 4u);
    EXPECT_EQ(report_.plans.hits, 5u);
    EXPECT_EQ(report_.steps, 10u);
    EXPECT_GE(report_.block_bytes, 4000u);
    EXPECT_GE(report_.peak_bytes, report_.block_bytes);
  }
}

TEST_F(OtherShapesTest, ValuesOnDevicesMoveWithTheirSizes) {
  Edge c = g_.Const({3}), here = g_.Op("OnCpu", {g_.Op("OnFake", {g_.Op("Next", {x_})})});
  Edge there = g_.Op("Neg", {g_.Op("Add", {here, here}, {.device = "FAKE:1"})}, {.device = "FAKE:1"});
  EXPECT_EQ(PlansFor({{x_}, {g_.Op("Next", {there}), c}, {}}, {{Shape({3})}, {Shape({300})}, {Shape({2})}}), 1u);
}

TEST_F(OtherShapesTest, ValuesOfUnknownSizesStayUnknown) {
  Edge some = g_.Op("Positive", {x_}), end = g_.Op("Add", {g_.Op("Neg", {some}), g_.Op("Next", {some})});
  EXPECT_EQ(PlansFor({{x_}, {end, g_.Op("Neg", {x_})}, {}}, {{Shape({6})}, {Shape({9})}, {Shape({1})}}), 1u);
}

TEST_F(OtherShapesTest, EveryFeedMayHaveItsOwnSize) {
  Edge y = g_.Input(Shape({-1}), "y");
  EXPECT_EQ(PlansFor({{x_, y}, {g_.Op("Next", {x_}), g_.Op("Neg", {y})}, {}},
                     {{Shape({2}), Shape({2})}, {Shape({2}), Shape({3})}, {Shape({9}), Shape({1})}}),
            1u);
}

TEST_F(OtherShapesTest, SizesThatSuitAnotherEngineGetAPlanOfTheirOwn) {
  Edge wide = g_.Op("Sum", {g_.Op("Next", {x_}), g_.Op("Neg", {x_}), g_.Op("Two", {x_})});
  EXPECT_EQ(PlansFor({{x_}, {wide}, {}}, {{Shape({10})}, {Shape({100000})}, {Shape({20})}, {Shape({200000})}}), 2u);
  EXPECT_EQ(PlansFor({{x_}, {wide}, {}}, {{Shape({10})}, {Shape({100000})}}, {{"threads", "1"}}), 1u);
}

TEST_F(OtherShapesTest, ShapesThatCannotBeFailAsTheyWouldAlone) {
  Edge y = g_.Input(Shape({-1}), "y"), sum = g_.Op("Add", {x_, y}, {.name = "sum"});
  auto session = g_.NewSession(), alone = g_.NewSession();
  auto run = [&](Session& s, int64_t n, int64_t m) {
    return Step(s, {{x_, y}, {sum}, {}}, {FloatsOf(Shape({n})), FloatsOf(Shape({m}))}).status();
  };
  ASSERT_TRUE(run(*session, 2, 2).ok());
  Status s = run(*session, 2, 3);
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(s), Text(run(*alone, 2, 3)));
  EXPECT_TRUE(run(*session, 4, 4).ok());
  EXPECT_EQ(session->Report().plans.misses, 1u);
}

TEST_F(OtherShapesTest, OnlySoManyShapesAreKept) {
  Edge y = g_.Op("Next", {g_.Op("Neg", {x_})});
  auto session = g_.NewSession({{"max_shapes", "3"}});
  auto run = [&](int64_t n) { ASSERT_TRUE(Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({n}))}).ok()); };
  for (int64_t n = 1; n <= 10; ++n) run(n);
  PlanCounts c = session->Report().plans;
  EXPECT_EQ(c.plans, 1u);
  EXPECT_EQ(c.shapes, 3u);
  EXPECT_EQ(c.evictions, 7u);
  for (int64_t n : {8, 9, 10}) run(n);  // the latest sizes
  c = session->Report().plans;
  EXPECT_EQ(c.hits, 3u);
  run(1);
  EXPECT_EQ(session->Report().plans.shape_hits, c.shape_hits + 1);
}

TEST_F(OtherShapesTest, AStateServesLargerSizesToo) {
  Edge y = g_.Op("Next", {g_.Op("Next", {g_.Op("Next", {x_})})});
  auto session = g_.NewSession();
  for (int64_t n : {16, 1600, 16}) ASSERT_TRUE(Step(*session, {{x_}, {y}, {}}, {FloatsOf(Shape({n}))}).ok());
  EXPECT_EQ(session->Report().block_bytes, 2u * 6400);  // one kernel state, not one per size
  EXPECT_EQ(session->Report().peak_bytes, 2u * 6400);
}

TEST_F(OtherShapesTest, ANewSizeCostsAFractionOfAPlan) {
  Edge y = x_;
  for (int i = 0; i < 1000; ++i) y = g_.Op(i % 2 ? "Next" : "Add", i % 2 ? std::vector{y} : std::vector{y, x_});
  TestStates states(&g_.runtime());
  auto seconds = [](auto&& work) {
    const std::clock_t start = std::clock();
    work();
    return double(std::clock() - start) / CLOCKS_PER_SEC;
  };
  double plan_time = 1e9, shape_time = 1e9;
  std::unique_ptr<Plan> plan;
  for (int i = 0; i < 5; ++i) {
    plan_time = std::min(plan_time, seconds([&] { plan = *CompilePlan(g_.graph(), {{x_}, {y}, {}}, {Shape({4})}, {}, &states); }));
    ASSERT_NE(OtherShapes(*plan, {Shape({5})}), nullptr);
  }
  for (int64_t n = 6; n < 16; ++n) shape_time = std::min(shape_time, seconds([&] { OtherShapes(*plan, {Shape({n})}); }));
  EXPECT_LT(shape_time, 0.3 * plan_time) << plan_time << " s for a plan";
}

// ---- Over the standard ops: constants that follow from shapes ----

class StandardShapesTest : public OtherShapesTest {
 protected:
  static std::shared_ptr<Runtime>& Shared() {
    static std::shared_ptr<Runtime> runtime;
    return runtime;
  }
  static void SetUpTestSuite() { Shared() = testing_support::StandardRuntime(1); }
  static void TearDownTestSuite() { Shared() = nullptr; }
  StandardShapesTest() : OtherShapesTest(Shared()) {}
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  Edge m_ = g_.Input(Shape({-1, 3}), "m");
};

TEST_F(StandardShapesTest, ConstantsThatFollowFromShapesAreMadeAnew) {
  Edge shape = g_.Op("Shape", {m_}), zeros = g_.Op("Fill", {shape, g_.Const(*ScalarTensor(TW_FLOAT, 7))});
  Edge turned = g_.Op("Reshape", {g_.Op("Exp", {m_}), g_.Op("ConcatV2", {Ints({1}), shape, g_.Const(*ScalarTensor(TW_INT32, 0))})});
  EXPECT_EQ(
      PlansFor({{m_}, {g_.Op("AddV2", {g_.Op("Neg", {m_}), zeros}), turned}, {}}, {{Shape({2, 3})}, {Shape({50, 3})}, {Shape({1, 3})}}),
      1u);
}

TEST_F(StandardShapesTest, AViewOfAConstantShowsWhatTheConstantHoldsNow) {
  Edge rows = g_.Op("Tile", {g_.Op("Cast", {g_.Op("Shape", {m_})}, {.attrs = {{"DstT", AttrValue::Type(TW_FLOAT)}}}), Ints({1000})});
  Edge dims = g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {40, 50}), {.controls = {g_.Op("NoOp", {}).node}});
  Edge sums = g_.Op("Sum", {g_.Op("Reshape", {rows, dims}), Ints({1})});
  EXPECT_EQ(PlansFor({{m_}, {sums}, {}}, {{Shape({2, 3})}, {Shape({5, 3})}, {Shape({1, 3})}}), 1u);
}

TEST_F(StandardShapesTest, ConstantsThatAreEqualByChanceAreNotMerged) {
  Edge n = g_.Input(Shape({-1, 3}), "n");
  auto filled = [&](Edge x) { return g_.Op("Fill", {g_.Op("Shape", {x}), g_.Const(*ScalarTensor(TW_FLOAT, 1))}); };
  EXPECT_EQ(PlansFor({{m_, n}, {g_.Op("AddV2", {g_.Op("Neg", {m_}), filled(m_)}), g_.Op("AddV2", {g_.Op("Neg", {n}), filled(n)})}, {}},
                     {{Shape({4, 3}), Shape({4, 3})}, {Shape({4, 3}), Shape({5, 3})}}),
            1u);
}

TEST_F(StandardShapesTest, WhatOnlySomeShapesLeaveOutIsLookedAtAgain) {
  Edge ones = g_.Const(*FloatsOf(Shape({6}), 1).Reshape(std::vector<int64_t>{2, 3}.data(), 2));
  Edge same = g_.Op("RealDiv", {ones, ones});  // a constant: all ones
  EXPECT_EQ(PlansFor({{m_}, {g_.Op("Neg", {g_.Op("Mul", {m_, same})})}, {}}, {{Shape({2, 3})}, {Shape({1, 3})}}), 2u);
  Edge back = g_.Op("Reshape", {g_.Op("Exp", {m_}), Ints({-1, 6})});
  EXPECT_EQ(PlansFor({{m_}, {g_.Op("Neg", {g_.Op("Reshape", {back, Ints({4, 3})})})}, {}}, {{Shape({4, 3})}}), 1u);
}

TEST_F(StandardShapesTest, ATrainingStepServesEveryBatchSize) {
  Edge w = g_.Input(Shape({3, 5}), "w"), b = g_.Input(Shape({5}), "b");
  Edge logits = g_.Op("AddV2", {g_.Op("MatMul", {m_, w}), b}), y = g_.Op("Tanh", {logits});
  Edge loss = g_.Op("Mean", {g_.Op("Square", {y}), Ints({0, 1})});
  std::vector<Gradient> gradients;
  ASSERT_TRUE(AddGradients(&g_.graph(), {loss}, {}, {w, b, m_}, &gradients, {}).ok());
  CallableSpec spec{{m_, w, b}, {loss}, {}};
  for (const Gradient& g : gradients) spec.fetches.push_back(g.values);
  std::vector<std::vector<Shape>> shapes;
  for (int64_t n : {4, 1, 64, 17}) shapes.push_back({Shape({n, 3}), Shape({3, 5}), Shape({5})});
  EXPECT_EQ(PlansFor(spec, shapes), 1u);
}

}  // namespace
}  // namespace thalweg
