// Updates of variables wait for the reads that nothing with effects comes before, and for no others.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/planner/planning.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using testing_support::Floats;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Values;

class ReadsPassTest : public testing::Test {
 protected:
  Edge Box(const std::string& key) {
    return g_.Op("Box", {}, {.device = "CPU:0", .attrs = {{"key", AttrValue::String(key)}, {"shape", AttrValue::OfShape(Shape({1}))}}});
  }
  const Node* Put(Edge box, Edge x, std::vector<const Node*> controls = {}, const std::string& name = "") {
    return g_.Op("Put", {box, x}, {.name = name, .controls = std::move(controls)}).node;
  }
  Edge Get(Edge box, std::vector<const Node*> controls = {}) { return g_.Op("Get", {box}, {.controls = std::move(controls)}); }
  // The update waits for the read, which comes before it; and every node comes behind what it needs.
  static bool Waits(const Planning& p, const Node* update, Edge read) {
    const auto& nodes = p.w.nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const WorkEdge& e : nodes[i].in) EXPECT_LT(e.node, int32_t(i));
      for (const int32_t c : nodes[i].controls) EXPECT_LT(c, int32_t(i));
    }
    const auto& controls = p.Find(update)->controls;
    return std::count(controls.begin(), controls.end(), int32_t(p.Find(read) - nodes.data())) == 1;
  }
  TestGraph g_{4};
  Edge x_ = g_.Input(Shape({1}));
  Edge v_ = Box("v"), u_ = Box("u");
};

TEST_F(ReadsPassTest, AnUpdateWaitsForReadsWhereverTheyStand) {
  Edge before = Get(v_);
  const Node* put = Put(v_, x_);
  Edge after = g_.Op("Next", {Get(v_)}), other = Get(u_);
  Planning p(g_.graph(), {{x_}, {after, other, before}, {put}});
  p.Through("reads");
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_TRUE(Waits(p, put, before) && Waits(p, put, after.node->inputs()[0]));
  EXPECT_TRUE(Waits(p, put, after));  // which holds the variable's memory until it is done
  EXPECT_FALSE(Waits(p, put, other));
  EXPECT_EQ(p.w.nodes[size_t(p.w.fetches[0].node)].node, after.node);
  EXPECT_EQ(p.w.nodes[size_t(p.w.fetches[2].node)].node, before.node);
  EXPECT_EQ(p.w.nodes[size_t(p.w.targets[0])].node, put);
  EXPECT_EQ(p.w.nodes[size_t(p.w.feeds[0])].feed, 0);
}

TEST_F(ReadsPassTest, StepsReadWhatWasThereBeforeThem) {
  const Node* put = Put(v_, x_);
  Edge read = Get(v_), later = g_.Op("Next", {Get(v_, {put})});
  for (const char* threads : {"1", "4"}) {
    auto session = g_.NewSession({{"threads", threads}});
    ASSERT_TRUE(Step(*session, {{x_}, {}, {put}}, {Floats({0})}).ok());
    for (int i = 1; i < 20; ++i) {
      auto out = Step(*session, {{x_}, {read, later}, {put}}, {Floats({float(i)})});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_THAT(Values((*out)[0]), ElementsAre(float(i - 1)));
      EXPECT_THAT(Values((*out)[1]), ElementsAre(float(i + 1)));
    }
  }
}

TEST_F(ReadsPassTest, AnOrderThatIsThereIsNotWrittenTwice) {
  Edge read = Get(v_), use = g_.Op("Next", {read});
  const Node* by_data = Put(v_, use);
  const Node* by_control = Put(v_, x_, {read.node});
  Planning p(g_.graph(), {{x_}, {}, {by_data, by_control}});
  p.Through("reads");
  EXPECT_TRUE(p.Find(by_data)->controls.empty());
  EXPECT_TRUE(Waits(p, by_control, read) && Waits(p, by_control, use));
  EXPECT_EQ(p.Find(by_control)->controls.size(), 2u);
}

TEST_F(ReadsPassTest, WhatComesAfterEffectsOrMayWaitIsLeftAlone) {
  const Node* put = Put(u_, x_);
  Edge ordered = Get(v_, {put}), late = Get(v_, {g_.Op("Later", {x_}).node});
  const Node* update = Put(v_, g_.Op("Next", {x_}));
  Planning p(g_.graph(), {{x_}, {ordered, late}, {update}});
  p.Through("reads");
  EXPECT_TRUE(p.Find(update)->controls.empty());
}

// Each reads what the other updates.
TEST_F(ReadsPassTest, ExchangesEndInNoCircle) {
  Edge v = Get(v_), u = Get(u_);
  const Node *into_u = Put(u_, v), *into_v = Put(v_, u);
  auto session = g_.NewSession({{"threads", "4"}});
  ASSERT_TRUE(Step(*session, {{x_}, {}, {Put(v_, x_)}}, {Floats({1})}).ok());
  ASSERT_TRUE(Step(*session, {{x_}, {}, {Put(u_, x_)}}, {Floats({2})}).ok());
  for (int i = 0; i < 10; ++i) {
    auto out = Step(*session, {{}, {v, u}, {into_u, into_v}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT(Values((*out)[0]), ElementsAre(i % 2 ? 2 : 1));
    EXPECT_THAT(Values((*out)[1]), ElementsAre(i % 2 ? 1 : 2));
  }
}

TEST_F(ReadsPassTest, AStepThatGivesAVariableItsFirstValueReadsThat) {
  const Node* first = Put(v_, x_, {}, StrCat(v_.node->name(), "/Assign"));
  Edge read = Get(v_);
  Planning p(g_.graph(), {{x_}, {read}, {first}});
  p.Through("reads");
  EXPECT_TRUE(p.Find(first)->controls.empty());
}

}  // namespace
}  // namespace thalweg
