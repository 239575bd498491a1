// The inference and folding of constants and shapes: passes infer and fold.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::ClearJournal;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

class InferPassTest : public testing::Test {
 protected:
  Edge Tag(Edge x, int64_t tag) { return g_.Op("Traced", {x}, {.attrs = {{"tag", AttrValue::Int(tag)}}}); }
  // A constant larger than the graph evaluates by itself.
  Edge Large(float first = 1) { return g_.Const(Values(FloatsOf(Shape({2000}), first))); }
  TestGraph g_;
};

TEST_F(InferPassTest, TellsTheShapesOfWhatIsFed) {
  Edge x = g_.Input(Shape({-1, 3})), y = g_.Op("Flat", {g_.Op("Neg", {x})}), z = g_.Op("Positive", {y});
  EXPECT_EQ(y.node->shape(0), Shape({-1}));
  Planning p(g_.graph(), {{x}, {z}, {}}, {Shape({2, 3})});
  p.Through("infer");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_EQ(p.Find(y)->shapes[0], Shape({6}));
  EXPECT_EQ(p.Find(z)->shapes[0], Shape({-1}));  // its shape is known only at run time
}

TEST_F(InferPassTest, RefusesShapesThatCannotBe) {
  Edge x = g_.Input(Shape({-1})), y = g_.Input(Shape({-1})), z = g_.Op("Add", {x, y}, {.name = "sum"});
  Planning p(g_.graph(), {{x, y}, {z}, {}}, {Shape({2}), Shape({3})});
  p.Through("infer");
  EXPECT_EQ(p.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(p.status), HasSubstr("Add 'sum':"));
  Planning q(g_.graph(), {{x, y}, {z}, {}}, {Shape({2, 2}), Shape({3})});
  EXPECT_THAT(Text(q.status), HasSubstr("the feed of 'Placeholder' has shape [2, 2] but [?] is declared"));
}

TEST_F(InferPassTest, RunsNothingAsynchronousForAConstant) {
  for (Edge c : {g_.Const({1}), Large()}) {
    ClearJournal();
    Edge y = g_.Op("LaterTraced", {c}, {.attrs = {{"tag", AttrValue::Int(1)}}}), z = g_.Op("Neg", {y});
    Planning p(g_.graph(), {{}, {z}, {}});
    p.Through("place");
    ASSERT_TRUE(p.status.ok()) << p.status;
    EXPECT_THAT(Journal(), IsEmpty());
    EXPECT_TRUE(p.Runs(y));
    EXPECT_EQ(Values((*Step(*g_.NewSession(), {{}, {z}, {}}))[0])[0], -2);
    EXPECT_THAT(Journal(), ElementsAre(1));
  }
}

TEST_F(InferPassTest, FoldsAConstantSubgraph) {
  Edge c = g_.Op("Mul", {Large(), Large()}), y = g_.Op("Neg", {c}), x = g_.Input(Shape({2000})), z = g_.Op("Add", {x, y});
  Planning p(g_.graph(), {{x}, {z}, {}}, {Shape({2000})});
  p.Through("place");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_TRUE(p.Find(y)->constant);
  EXPECT_EQ(p.Find(y)->values[0].as<float>()[2], -9);
  EXPECT_FALSE(p.Runs(c));
  EXPECT_TRUE(p.Runs(z));
}

TEST_F(InferPassTest, FoldsNothingWithoutOptimization) {
  Edge y = g_.Op("Neg", {g_.Const({1})}), z = g_.Op("Neg", {Large()});
  PlanOptions off;
  off.optimize = false;
  Planning p(g_.graph(), {{}, {y, z}, {}}, {}, off);
  p.Through("place");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_TRUE(p.Runs(y));
  EXPECT_TRUE(p.Runs(z));
}

TEST_F(InferPassTest, FoldsNoStatefulOp) {
  Edge small = g_.Op("Noise", {g_.Const({1})}), large = g_.Op("Noise", {Large()}), y = g_.Op("Neg", {small});
  Planning p(g_.graph(), {{}, {y, large}, {}});
  p.Through("place");
  EXPECT_TRUE(p.Runs(small));
  EXPECT_TRUE(p.Runs(large));
  EXPECT_TRUE(p.Runs(y));
}

TEST_F(InferPassTest, FoldsNothingWhoseKernelAnswersDifferently) {
  ClearJournal();
  Edge small = g_.Op("Dice", {g_.Const({1})}), large = g_.Op("Dice", {Large()});
  Planning p(g_.graph(), {{}, {small, large}, {}});
  p.Through("place");
  EXPECT_TRUE(p.Runs(small));
  EXPECT_TRUE(p.Runs(large));
  EXPECT_THAT(Journal(), IsEmpty());
}

TEST_F(InferPassTest, FoldsOnceAPlanAndRunsNothingInSteps) {
  Edge y = Tag(Large(), 5);
  auto session = g_.NewSession();
  ClearJournal();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Step(*session, {{}, {y}, {}}).ok());
  EXPECT_THAT(Journal(), ElementsAre(5));
}

TEST_F(InferPassTest, FoldsNoLargeValueOfASmallRecipe) {
  Edge one = g_.Const(FloatsOf(Shape(std::vector<int64_t>{})));
  auto grow = [&](const Shape& shape) { return g_.Op("Grow", {one}, {.attrs = {{"shape", AttrValue::OfShape(shape)}}}); };
  Edge kept = grow(Shape({100, 100})), dropped = grow(Shape({300, 300})), never = grow(Shape({3000, 3000}));
  ClearJournal();
  Planning p(g_.graph(), {{}, {kept, dropped, never}, {}});
  p.Through("place");
  EXPECT_FALSE(p.Runs(kept));
  EXPECT_TRUE(p.Runs(dropped));
  EXPECT_TRUE(p.Runs(never));
  EXPECT_THAT(Journal(), ElementsAre(100 * 100, 300 * 300));  // the last one was not even computed
}

TEST_F(InferPassTest, RefusesWhatHasTooManyElements) {
  Edge one = g_.Const(FloatsOf(Shape(std::vector<int64_t>{})));
  Edge y = g_.Op("Grow", {one}, {.name = "huge", .attrs = {{"shape", AttrValue::OfShape(Shape(std::vector<int64_t>(4, 1 << 20)))}}});
  auto session = g_.NewSession();
  Status s = Step(*session, {{}, {y}, {}}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(Text(s), HasSubstr("Grow 'huge'"));
}

TEST_F(InferPassTest, AFailureWhilePlanningIsLeftToTheStep) {
  Edge small = g_.Op("Picky", {g_.Const({-1})}, {.name = "small"}), large = g_.Op("Picky", {Large(-1)}, {.name = "large"});
  Edge x = g_.Input(Shape({1})), reads = g_.Op("Neg", {small});
  auto session = g_.NewSession();
  auto s = Step(*session, {{}, {reads}, {}}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Text(s), "Picky 'small' on CPU:0: it is negative (inputs: float[1])");
  EXPECT_THAT(Text(Step(*session, {{}, {large}, {}}).status()), HasSubstr("Picky 'large' on CPU:0: it is negative"));
  EXPECT_TRUE(Step(*session, {{x}, {x}, {}}, {Floats({1})}).ok());
}

TEST_F(InferPassTest, AFedConstantIsNone) {
  Edge c = g_.Const({1, 2}), y = g_.Op("Neg", {c}), z = g_.Op("Neg", {y});
  Planning p(g_.graph(), {{c}, {z}, {}}, {Shape({2})});
  p.Through("place");
  EXPECT_TRUE(p.Runs(y));
  EXPECT_TRUE(p.Runs(z));
  auto session = g_.NewSession();
  EXPECT_THAT(Values((*Step(*session, {{c}, {z}, {}}, {Floats({5, 6})}))[0]), ElementsAre(5, 6));
  EXPECT_THAT(Values((*Step(*session, {{}, {z}, {}}))[0]), ElementsAre(1, 2));
}

}  // namespace
}  // namespace thalweg
