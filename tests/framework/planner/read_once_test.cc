// The feeds that a step copies: each feed read by a kernel that is not known to leave it unchanged.
// Over the standard ops and the CPU plugin.
#include "framework/planner/passes/read_once.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::TestGraph;
using testing_support::TestStates;

class ReadOnceTest : public testing_support::StandardRuntimeTest {
 protected:
  Edge Fed(uint32_t dtype, const Shape& shape) {
    feeds_.push_back(g_.Op("Placeholder", {}, {.attrs = {{"dtype", AttrValue::Type(dtype)}, {"shape", AttrValue::OfShape(shape)}}}));
    shapes_.push_back(shape);
    return feeds_.back();
  }
  Edge Vector(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  Edge Zero() { return g_.Const(*ScalarTensor(TW_INT32, 0)); }
  // Returns the copied feeds, numbered in the order of their creation.
  std::vector<int32_t> Copied(const std::vector<Edge>& fetches, const std::vector<const Node*>& targets = {}, PlanOptions options = {}) {
    auto plan = CompilePlan(g_.graph(), {feeds_, fetches, targets}, shapes_, options, &states_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? (*plan)->copied_feeds : std::vector<int32_t>{-1};
  }
  TestGraph g_{Shared()};
  TestStates states_{&g_.runtime()};
  std::vector<Edge> feeds_;
  std::vector<Shape> shapes_;
};

TEST_F(ReadOnceTest, IndicesAreCopiedAndWhatTheyPickFromIsNot) {
  const Edge params = Fed(TW_FLOAT, Shape({5, 3})), indices = Fed(TW_INT32, Shape({4})),
             axis = Fed(TW_INT32, Shape(std::vector<int64_t>{}));
  EXPECT_THAT(Copied({g_.Op("GatherV2", {params, indices, axis})}), ElementsAre(1, 2));
}

TEST_F(ReadOnceTest, WhatNothingReadsIsNotCopied) {
  Fed(TW_INT32, Shape({4}));
  EXPECT_THAT(Copied({Zero()}), IsEmpty());
  EXPECT_THAT(Copied({feeds_[0]}), IsEmpty()) << "a feed that is only fetched";
}

TEST_F(ReadOnceTest, SameMemoryUnderAnotherNameIsFollowed) {
  const Edge x = Fed(TW_INT32, Shape({2, 2})), data = g_.Const({1, 2, 3, 4, 5, 6, 7, 8});
  Edge e = g_.Op("Reshape", {g_.Op("Identity", {x}), Vector({4})});
  EXPECT_THAT(Copied({g_.Op("AddV2", {e, e})}), IsEmpty());
  for (const bool optimized : {true, false}) {
    PlanOptions options;
    options.optimize = optimized;
    EXPECT_THAT(Copied({g_.Op("GatherV2", {data, e, Zero()})}, {}, options), ElementsAre(0)) << optimized;
    // A slice may be a view of its input.
    const Edge cut = g_.Op("Slice", {e, Vector({1}), Vector({2})});
    EXPECT_THAT(Copied({g_.Op("GatherV2", {data, cut, Zero()}), cut}, {}, options), ElementsAre(0)) << optimized;
    // A sum is a new value.
    EXPECT_THAT(Copied({g_.Op("GatherV2", {data, g_.Op("AddV2", {e, e}), Zero()})}, {}, options), IsEmpty()) << optimized;
  }
}

TEST_F(ReadOnceTest, RealNumbersThatDecideAreCopied) {
  const Edge x = Fed(TW_FLOAT, Shape({8}));
  EXPECT_THAT(Copied({g_.Op("Sqrt", {x}), g_.Op("RealDiv", {x, x}), g_.Op("Sum", {x, Zero()})}), IsEmpty());
  EXPECT_THAT(Copied({g_.Op("Where", {x})}), ElementsAre(0));
  EXPECT_THAT(Copied({g_.Op("TopKV2", {x, g_.Const(*ScalarTensor(TW_INT32, 2))})}), ElementsAre(0));
}

TEST_F(ReadOnceTest, WholeNumbersThatMayHaveNoQuotientAreCopied) {
  const Edge x = Fed(TW_INT32, Shape({8})), y = Fed(TW_INT32, Shape({8}));
  EXPECT_THAT(Copied({g_.Op("Mul", {x, y})}), IsEmpty());
  EXPECT_THAT(Copied({g_.Op("FloorDiv", {x, y})}), ElementsAre(0, 1));
}

TEST_F(ReadOnceTest, WhatIsKeptIsCopiedWhereItMayDecideLater) {
  std::vector<const Node*> assigns;
  for (const uint32_t dtype : {TW_FLOAT, TW_INT64}) {
    const Edge value = Fed(dtype, Shape({2}));
    const Edge v = g_.Op("VarHandleOp", {}, {.attrs = {{"dtype", AttrValue::Type(dtype)}, {"shape", AttrValue::OfShape(Shape({2}))}}});
    assigns.push_back(g_.Op("AssignVariableOp", {v, value}).node);
  }
  EXPECT_THAT(Copied({}, assigns), ElementsAre(1));
}

// In a node that stands for several nodes, each node is checked.
TEST_F(ReadOnceTest, PartsOfCompilersAreLookedInto) {
  const Edge x = Fed(TW_FLOAT, Shape({64, 256}));
  Edge e = x;
  for (const char* op : {"Sqrt", "Exp", "Neg"}) e = g_.Op(op, {e});
  auto plan = CompilePlan(g_.graph(), {feeds_, {e}, {}}, shapes_, {}, &states_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ((*plan)->nodes.size(), 1u);
  ASSERT_NE((*plan)->nodes[0].part, nullptr);
  EXPECT_THAT((*plan)->copied_feeds, IsEmpty());
}

// Checks ops whose kernels use elements as indices, as far as their schemas leave that open.
TEST_F(ReadOnceTest, IndexArgumentsOfStandardOpsAreNoData) {
  for (const auto& [op, argument] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Gather", "indices"},
                                                                  {"GatherNd", "indices"},
                                                                  {"ScatterNd", "shape"},
                                                                  {"Reshape", "shape"},
                                                                  {"Slice", "begin"},
                                                                  {"StridedSlice", "end"},
                                                                  {"Transpose", "perm"},
                                                                  {"Split", "split_dim"},
                                                                  {"SplitV", "size_splits"},
                                                                  {"Fill", "dims"},
                                                                  {"Range", "limit"},
                                                                  {"Pad", "paddings"},
                                                                  {"Tile", "multiples"},
                                                                  {"OneHot", "indices"},
                                                                  {"UnsortedSegmentSum", "segment_ids"},
                                                                  {"Bincount", "arr"},
                                                                  {"DynamicPartition", "partitions"},
                                                                  {"InvertPermutation", "x"},
                                                                  {"Unique", "x"},
                                                                  {"SparseToDense", "sparse_indices"},
                                                                  {"ReverseSequence", "seq_lengths"},
                                                                  {"SparseSoftmaxCrossEntropyWithLogits", "labels"}}) {
    const OpSchema* schema = g_.runtime().registry().FindOp(op);
    ASSERT_NE(schema, nullptr) << op;
    ASSERT_GE(schema->FindInput(argument), 0) << op << " " << argument;
    EXPECT_FALSE(IsData(*schema, size_t(schema->FindInput(argument)), TW_INT32)) << op << " " << argument;
  }
}

}  // namespace
}  // namespace thalweg
