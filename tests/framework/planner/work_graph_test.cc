// The part of a graph that a signature needs: cutting at feeds, pruning, and the order that control
// inputs require.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using testing_support::ClearJournal;
using testing_support::Floats;
using testing_support::FloatsOf;
using testing_support::Journal;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;
using testing_support::Text;
using testing_support::Values;

class WorkGraphTest : public testing::Test {
 protected:
  Edge Tag(Edge x, int64_t tag, std::vector<const Node*> controls = {}) {
    return g_.Op("Traced", {x}, {.controls = std::move(controls), .attrs = {{"tag", AttrValue::Int(tag)}}});
  }
  // Checks the journal of one step, with either engine and with optimization on or off.
  void Writes(const CallableSpec& spec, const std::vector<Tensor>& feeds, const std::vector<int64_t>& tags) {
    for (const char* optimize : {"true", "false"}) {
      for (const char* engine : {"fixed", "counted"}) {
        auto session = g_.NewSession({{"engine", engine}, {"optimize", optimize}});
        ASSERT_TRUE(Step(*session, spec, feeds).ok());  // nodes that run during planning run here
        ClearJournal();
        ASSERT_TRUE(Step(*session, spec, feeds).ok());
        EXPECT_EQ(Journal(), tags) << engine << ", optimize " << optimize;
      }
    }
  }
  TestGraph g_;
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(WorkGraphTest, NeedsOnlyWhatFetchesAndTargetsReach) {
  Edge y = Tag(x_, 1), z = Tag(y, 2), unused = Tag(y, 3);
  const Node* mark = g_.Mark(4, {y.node});
  Writes({{x_}, {z}, {}}, {Floats({1})}, {1, 2});
  Writes({{x_}, {}, {mark}}, {Floats({1})}, {1, 4});
  Planning p(g_.graph(), {{x_}, {z}, {}}, {Shape({1})});
  EXPECT_EQ(p.Find(unused), nullptr);
  EXPECT_EQ(p.Find(mark), nullptr);
}

TEST_F(WorkGraphTest, CutsAboveAFedEdge) {
  const Node* mark = g_.Mark(9);
  Edge above = Tag(x_, 1, {mark}), inner = Tag(above, 2), below = Tag(inner, 3);
  Writes({{inner}, {below}, {}}, {Floats({5})}, {3});  // x is not needed
  auto session = g_.NewSession();
  EXPECT_THAT(Values((*Step(*session, {{inner}, {below, inner}, {}}, {Floats({5})}))[0]), ElementsAre(5));
}

TEST_F(WorkGraphTest, RunsANodeWithOneOutputFed) {
  Edge two = g_.Op("Two", {x_}), other{two.node, 1}, sum = g_.Op("Add", {two, other});
  auto session = g_.NewSession();
  auto out = Step(*session, {{x_, two}, {sum}, {}}, {Floats({1}), Floats({100})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Values((*out)[0]), ElementsAre(102));
}

TEST_F(WorkGraphTest, NamesThePlaceholderThatIsNotFed) {
  Edge y = g_.Op("Neg", {x_});
  Planning p(g_.graph(), {{}, {y}, {}});
  EXPECT_EQ(p.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(p.status), HasSubstr("Placeholder 'x': no value is fed; feed 'x' (float, shape [?])"));
  Planning twice(g_.graph(), {{x_, x_}, {y}, {}});
  EXPECT_THAT(Text(twice.status), HasSubstr("'x' is fed twice"));
}

TEST_F(WorkGraphTest, ControlEdgesGiveTheOrder) {
  const Node *a = g_.Mark(1), *b = g_.Mark(2, {a}), *c = g_.Mark(3, {b, a});
  Edge y = Tag(x_, 4, {c});
  Writes({{x_}, {y}, {}}, {Floats({1})}, {1, 2, 3, 4});
  Writes({{}, {}, {c}}, {}, {1, 2, 3});
}

TEST_F(WorkGraphTest, WhatAConstantWasOrderedAfterStillRuns) {
  Edge c = g_.Const({1}, {.controls = {g_.Mark(1)}});
  Writes({{}, {c}, {}}, {}, {1});
  Writes({{x_}, {Tag(g_.Op("Add", {x_, c}), 2)}, {}}, {Floats({1})}, {1, 2});
}

TEST_F(WorkGraphTest, WhatAFoldedNodesInputsWereOrderedAfterStillRuns) {
  Edge c = g_.Const({1}, {.controls = {g_.Mark(1)}}), y = g_.Op("Neg", {c}), z = g_.Op("Neg", {y});
  Writes({{}, {z}, {}}, {}, {1});
  Writes({{x_}, {Tag(g_.Op("Add", {x_, z}), 2)}, {}}, {Floats({1})}, {1, 2});
  Writes({{}, {}, {g_.Mark(3, {z.node})}}, {}, {1, 3});
}

TEST_F(WorkGraphTest, MergedConstantsKeepTheirOrder) {
  Edge plain = g_.Op("Neg", {g_.Const({1})}), ordered = g_.Op("Neg", {g_.Const({1}, {.controls = {g_.Mark(1)}})});
  Writes({{}, {plain, ordered}, {}}, {}, {1});
}

TEST_F(WorkGraphTest, ViewsOfConstantsKeepTheirOrder) {
  Edge c = g_.Const(Values(FloatsOf(Shape({3}))), {.controls = {g_.Mark(1)}}), view = g_.Op("Flat", {c});
  Edge slow = Tag(view, 2);
  Writes({{}, {slow}, {}}, {}, {1, 2});
  Writes({{}, {}, {g_.Mark(3, {view.node})}}, {}, {1, 3});
}

TEST_F(WorkGraphTest, DiamondsOfConstantsAreWalkedOnce) {
  Edge c = g_.Const({0}, {.controls = {g_.Mark(1)}});
  for (Edge start : {c, g_.Const({0})}) {
    Edge v = start;
    for (int i = 0; i < 50; ++i) v = g_.Op("Add", {v, v});  // 2^50 paths
    Writes({{x_}, {Tag(g_.Op("Add", {x_, v}), 2)}, {}}, {Floats({1})}, start == c ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{2});
  }
}

TEST_F(WorkGraphTest, AFedPlaceholderNeedsNoWaiting) {
  const Node* mark = g_.Mark(1, {x_.node});
  Writes({{x_}, {}, {mark}}, {Floats({1})}, {1});
  Writes({{x_}, {}, {mark, x_.node}}, {Floats({1})}, {1});
  Planning p(g_.graph(), {{}, {}, {mark}});
  EXPECT_THAT(Text(p.status), HasSubstr("Placeholder 'x': no value is fed"));
}

TEST_F(WorkGraphTest, TargetsRunForWhatTheyDo) {
  const Node *a = g_.Mark(1), *b = g_.Mark(2);
  auto session = g_.NewSession();
  ClearJournal();
  ASSERT_TRUE(Step(*session, {{}, {}, {a, b}}).ok());
  EXPECT_THAT(Journal(), UnorderedElementsAre(1, 2));
}

}  // namespace
}  // namespace thalweg
