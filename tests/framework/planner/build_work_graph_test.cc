// References in the work graph: the nodes that replace nodes with references, and the time at which
// values are read. Over the standard ops.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/dtype.h"
#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/fakes.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing_support::Planning;
using testing_support::TestGraph;
using testing_support::Text;

class ReferencesTest : public testing_support::StandardRuntimeTest {
 protected:
  static void SetUpTestSuite() { Shared() = testing_support::StandardRuntime(1); }

  Edge Variable(const std::string& name) {
    return g_.Op(
        "VariableV2", {},
        {.name = name, .attrs = {{"dtype", AttrValue::Type(TW_FLOAT)}, {"shape", AttrValue::OfShape(Shape(std::vector<int64_t>{}))}}});
  }
  Edge Scalar(double v) { return g_.Const(*ScalarTensor(TW_FLOAT, v)); }
  Edge Op(const std::string& op, std::vector<Edge> in, std::vector<const Node*> controls = {}) {
    return g_.Op(op, std::move(in), {.controls = std::move(controls)});
  }
  static std::vector<const WorkNode*> Reads(const Planning& p) {
    std::vector<const WorkNode*> found;
    for (const WorkNode& n : p.w.nodes) {
      if (n.node && n.node->op().name == "ReadVariableOp") found.push_back(&n);
    }
    return found;
  }
  static std::vector<const Node*> Awaited(const Planning& p, const WorkNode& n) {
    std::vector<const Node*> found;
    for (int32_t c : n.controls) found.push_back(&p.w.nodes[size_t(c)].node->origin());
    return found;
  }

  TestGraph g_{Shared()};
  Edge v_ = Variable("v");
  Edge set_ = Op("Assign", {v_, Scalar(1)});
};

TEST_F(ReferencesTest, NoNodeOfAPlanHasThem) {
  Edge y = Op("Mul", {set_, Op("AssignAdd", {v_, v_})});
  Planning p(g_.graph(), {{}, {y, v_}, {}});
  ASSERT_TRUE(p.Through("infer").status.ok()) << p.status;
  for (const WorkNode& n : p.w.nodes) {
    ASSERT_TRUE(n.node);
    EXPECT_THAT(n.node->op().runs_as, IsEmpty());
    EXPECT_TRUE(std::none_of(n.node->types().begin(), n.node->types().end(), IsRef)) << n.node->title();
  }
  EXPECT_EQ(p.Find(v_.node->runs_as())->node->op().name, "VarHandleOp");
  EXPECT_EQ(p.Find(set_.node->runs_as())->node->title(), set_.node->title());
}

TEST_F(ReferencesTest, AReadWaitsForWhatItsReaderWaitsFor) {
  Planning after(g_.graph(), {{}, {Op("Neg", {v_}, {set_.node})}, {}});
  ASSERT_THAT(Reads(after), SizeIs(1));
  EXPECT_EQ(Awaited(after, *Reads(after)[0]), std::vector<const Node*>{set_.node});
  Planning given(g_.graph(), {{}, {Op("Neg", {set_})}, {}});
  EXPECT_EQ(Awaited(given, *Reads(given)[0]), std::vector<const Node*>{set_.node});
  Planning fetched(g_.graph(), {{}, {set_}, {}});
  EXPECT_EQ(Awaited(fetched, *Reads(fetched)[0]), std::vector<const Node*>{set_.node});
  // The other input depends on the change.
  Edge follows = Op("Neg", {Op("Neg", {set_})});
  Planning beside(g_.graph(), {{}, {Op("Add", {v_, follows})}, {}});
  ASSERT_THAT(Reads(beside), SizeIs(2));
  EXPECT_EQ(Awaited(beside, *Reads(beside)[1]), std::vector<const Node*>{follows.node});
  // A read does not wait for a node that changes nothing.
  Planning idle(g_.graph(), {{}, {Op("Add", {v_, Op("Neg", {v_}, {Scalar(3).node})})}, {}});
  for (const WorkNode* read : Reads(idle)) EXPECT_THAT(read->controls, IsEmpty());
}

TEST_F(ReferencesTest, ReadsBelongToOneReader) {
  Edge a = Op("Mul", {v_, v_}), b = Op("Mul", {v_, v_});
  Planning p(g_.graph(), {{}, {a, b}, {}});
  ASSERT_TRUE(p.Through("prune").status.ok()) << p.status;
  EXPECT_THAT(Reads(p), SizeIs(2));
  for (Edge y : {a, b}) EXPECT_EQ(p.Find(y)->in[0], p.Find(y)->in[1]);
  EXPECT_FALSE(p.Find(a)->in[0] == p.Find(b)->in[0]);
}

TEST_F(ReferencesTest, OfSeveralReadsOneWaitsForAllAndTheOthersForThatOne) {
  std::vector<Edge> all;
  for (int k = 0; k < 50; ++k) all.push_back(Op("Assign", {Variable(StrCat("many", k)), Scalar(k)}));
  Planning p(g_.graph(), {{}, {Op("AddN", all)}, {}});
  const std::vector<const WorkNode*> reads = Reads(p);
  ASSERT_THAT(reads, SizeIs(50));
  EXPECT_THAT(reads[0]->controls, SizeIs(50));
  for (size_t k = 1; k < reads.size(); ++k) EXPECT_EQ(reads[k]->controls, std::vector<int32_t>{int32_t(reads[0] - p.w.nodes.data())});
}

TEST_F(ReferencesTest, WhatWasPassedOnIsReadAgainBehindAChange) {
  Edge kept = Op("Identity", {v_}, {Scalar(3).node}), further = Op("StopGradient", {kept});
  for (Edge passed : {kept, further}) {
    Edge y = Op("Neg", {passed}, {set_.node});
    Planning behind(g_.graph(), {{}, {y}, {}});
    const WorkNode& read = behind.w.nodes[size_t(behind.Find(y)->in[0].node)];
    ASSERT_EQ(read.node, v_.node->read(0));
    EXPECT_THAT(Awaited(behind, read), ElementsAre(set_.node, kept.node));  // also the wait of its predecessor
    Edge z = Op("Neg", {passed});
    Planning alone(g_.graph(), {{}, {z}, {}});
    EXPECT_EQ(alone.w.nodes[size_t(alone.Find(z)->in[0].node)].node, passed.node);
  }
}

TEST_F(ReferencesTest, AFedOneIsAValueAndNoVariable) {
  Edge y = Op("Neg", {v_});
  Planning read(g_.graph(), {{v_}, {y, v_}, {}});
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(Reads(read), IsEmpty());
  EXPECT_EQ(read.w.nodes[size_t(read.w.feeds[0])].out_types, std::vector<uint32_t>{TW_FLOAT});
  Planning changed(g_.graph(), {{v_}, {set_}, {}});
  EXPECT_THAT(Text(changed.status), HasSubstr(StrCat(set_.node->title(), ": 'v' is fed")));
}

}  // namespace
}  // namespace thalweg
