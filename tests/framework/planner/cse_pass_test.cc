// Equal nodes are merged, and no others.
#include <algorithm>
#include <ctime>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/planner/planning.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using testing_support::Floats;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

class CsePassTest : public testing::Test {
 protected:
  // Returns the number of nodes that still run to make the fetches.
  size_t Left(const std::vector<Edge>& fetches, const PlanOptions& options = {}) {
    Planning p(g_.graph(), {{x_}, fetches, {}}, {Shape({2})}, options);
    p.Through("prune");
    EXPECT_TRUE(p.status.ok()) << p.status;
    size_t n = 0;
    for (Edge e : fetches) n += p.Runs(e);
    return n;
  }
  TestGraph g_;
  Edge x_ = g_.Input(Shape({-1}));
};

TEST_F(CsePassTest, MergesEqualNodes) {
  Edge a = g_.Op("Neg", {x_}), b = g_.Op("Neg", {x_});
  EXPECT_EQ(Left({a, b}), 1u);
  auto session = g_.NewSession();
  auto out = Step(*session, {{x_}, {a, b}, {}}, {Floats({1, 2})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(-1, -2));
  EXPECT_THAT(Values((*out)[1]), ElementsAre(-1, -2));
}

TEST_F(CsePassTest, MergesWhatReadsMergedNodes) {
  Edge a = g_.Op("Next", {g_.Op("Neg", {x_})}), b = g_.Op("Next", {g_.Op("Neg", {x_})});
  EXPECT_EQ(Left({a, b}), 1u);
}

TEST_F(CsePassTest, MergesWhatHasSwappedInputsWhereTheOpAllowsIt) {
  Edge y = g_.Op("Neg", {x_});
  EXPECT_EQ(Left({g_.Op("Add", {x_, y}), g_.Op("Add", {y, x_})}), 1u);
  EXPECT_EQ(Left({g_.Op("Sum", {x_, y}), g_.Op("Sum", {y, x_})}), 2u);
}

TEST_F(CsePassTest, MergesReadersOfEqualConstants) {
  Edge a = g_.Op("Add", {x_, g_.Const({1, 2})}), b = g_.Op("Add", {x_, g_.Const({1, 2})}), c = g_.Op("Add", {x_, g_.Const({1, 3})});
  EXPECT_EQ(Left({a, b, c}), 2u);
}

// Small integers as doubles: their first bytes are all zero.
TEST_F(CsePassTest, ManyDifferentConstantsTakeNoTime) {
  std::vector<Edge> all;
  for (int i = 0; i < 60000; ++i) all.push_back(g_.Const(*Tensor::Vector<double>(TW_DOUBLE, {double(i % 59999)})));
  Planning p(g_.graph(), {{}, all, {}});
  p.Through("fold");
  const std::clock_t start = std::clock();
  ASSERT_TRUE(CsePass(&p.w).ok());
  EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 2);
  EXPECT_EQ(p.w.fetches.back().node, p.w.fetches.front().node);
  EXPECT_NE(p.w.fetches[1].node, p.w.fetches.front().node);
}

// The nodes differ only in an attribute, which must be part of the hash.
TEST_F(CsePassTest, ManyDifferentAttributesTakeNoTime) {
  std::vector<Edge> all;
  for (int i = 0; i < 20000; ++i) all.push_back(g_.Op("Traced", {x_}, {.attrs = {{"tag", AttrValue::Int(i % 19999)}}}));
  Planning p(g_.graph(), {{x_}, all, {}}, {Shape({2})});
  p.Through("fold");
  const std::clock_t start = std::clock();
  ASSERT_TRUE(CsePass(&p.w).ok());
  EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 1);
  EXPECT_EQ(p.w.fetches.back().node, p.w.fetches.front().node);
}

TEST_F(CsePassTest, KeepsTargetsThatWereMerged) {
  Edge a = g_.Op("Neg", {x_}), b = g_.Op("Neg", {x_});
  Planning p(g_.graph(), {{x_}, {a}, {b.node}}, {Shape({2})});
  p.Through("prune");
  ASSERT_THAT(p.w.targets, SizeIs(1));
  EXPECT_EQ(p.w.targets[0], p.w.fetches[0].node);
}

TEST_F(CsePassTest, KeepsStatefulNodesApart) { EXPECT_EQ(Left({g_.Op("Noise", {x_}), g_.Op("Noise", {x_})}), 2u); }

TEST_F(CsePassTest, KeepsDevicesApart) {
  EXPECT_EQ(Left({g_.Op("Neg", {x_}, {.device = "CPU:0"}), g_.Op("Neg", {x_}, {.device = "FAKE:0"})}), 2u);
}

TEST_F(CsePassTest, KeepsAttributesApart) {
  auto traced = [&](int64_t tag) { return g_.Op("Traced", {x_}, {.attrs = {{"tag", AttrValue::Int(tag)}}}); };
  EXPECT_EQ(Left({traced(1), traced(2), traced(1)}), 2u);
}

TEST_F(CsePassTest, KeepsInputsApart) {
  Edge two = g_.Op("Two", {x_});
  EXPECT_EQ(Left({g_.Op("Neg", {two}), g_.Op("Neg", {Edge{two.node, 1}})}), 2u);
}

TEST_F(CsePassTest, KeepsControlInputsApart) {
  const Node *first = g_.Mark(1), *second = g_.Mark(2);
  EXPECT_EQ(Left({g_.Op("Neg", {x_}, {.controls = {first}}), g_.Op("Neg", {x_}, {.controls = {second}}), g_.Op("Neg", {x_})}), 3u);
}

// There are more nodes than the pass compares one by one; only their hashes find twins quickly.
TEST_F(CsePassTest, FindsTwinsAmongManyOfOtherShapes) {
  constexpr int kShapes = 200;
  Edge scalar = g_.Input(Shape({}));
  std::vector<Edge> grown;
  for (int k = 0; k < 2 * kShapes; ++k) {
    grown.push_back(g_.Op("Grow", {scalar}, {.attrs = {{"shape", AttrValue::OfShape(Shape({1 + k % kShapes}))}}}));
  }
  Planning p(g_.graph(), {{scalar}, grown, {}}, {Shape({})});
  p.Through("prune");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_EQ(std::count_if(grown.begin(), grown.end(), [&](Edge e) { return p.Runs(e); }), kShapes);
}

TEST_F(CsePassTest, CanBeSwitchedOff) {
  Edge a = g_.Op("Neg", {x_}), b = g_.Op("Neg", {x_});
  PlanOptions off;
  off.optimize = false;
  EXPECT_EQ(Left({a, b}, off), 2u);
  auto on = g_.NewSession(), without = g_.NewSession({{"disable_pass", "cse"}});
  auto nodes = [&](Session& s) { return (*s.MakeCallable({{x_}, {a, b}, {}}))->Report({Shape({2})})->nodes; };
  EXPECT_EQ(nodes(*on), 1u);
  EXPECT_EQ(nodes(*without), 2u);
}

TEST_F(CsePassTest, KeepsNodesThatOthersAreColocatedWith) {
  Edge a = g_.Op("Neg", {x_}, {.name = "a"}), b = g_.Op("Neg", {x_}, {.name = "b"}), c = g_.Op("OnFake", {x_}, {.colocate_with = {"b"}});
  Planning p(g_.graph(), {{x_}, {a, b, c}, {}}, {Shape({2})});
  p.Through("place");
  ASSERT_TRUE(p.status.ok()) << p.status;
  ASSERT_TRUE(p.Runs(a) && p.Runs(b));
  EXPECT_EQ(p.Find(a)->device->kind(), "CPU");
  EXPECT_EQ(p.Find(b)->device, p.Find(c)->device);
}

TEST_F(CsePassTest, KeepsTheColocationOfEqualNodes) {
  Edge a = g_.Op("Neg", {x_}, {.name = "a", .device = "FAKE:1"}), b = g_.Op("Neg", {x_}, {.name = "b", .device = "FAKE:1"});
  Edge c = g_.Op("Add", {a, b}, {.colocate_with = {"b"}});
  Planning p(g_.graph(), {{x_}, {c}, {}}, {Shape({2})});
  p.Through("place");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_EQ(p.Find(c)->device->kind(), "FAKE");
  EXPECT_EQ(p.Find(c)->device->index(), 1);
}

}  // namespace
}  // namespace thalweg
