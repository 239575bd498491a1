// Limits of sizes that only running tells, over the standard ops: what plans derive, and that results
// keep to it.
#include "framework/planner/compilers/value_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/builder.h"
#include "tests/framework/planner/planning.h"
#include "tests/framework/support/standard_runtime.h"

namespace thalweg {
namespace {

using testing_support::Floats;
using testing_support::Planning;
using testing_support::Step;
using testing_support::TestGraph;

class ValueLimitsTest : public testing_support::StandardRuntimeTest {
 protected:
  Edge Int(int32_t v) { return g_.Const(*ScalarTensor(TW_INT32, v)); }
  Edge Ints(const std::vector<int32_t>& v) { return g_.Const(*Tensor::Vector<int32_t>(TW_INT32, v)); }
  // Returns the limits of a value for 6 numbers as x.
  std::string Limits(Edge e) {
    Planning p(g_.graph(), {{x_}, {e}, {}}, {Shape({6})});
    p.Through("infer");
    EXPECT_TRUE(p.status.ok()) << p.status;
    const WorkNode* n = p.Find(e);
    if (!n) return "not there";
    const WorkEdge at{int32_t(n - p.w.nodes.data()), e.port};
    ValueLimits limits(p.w);
    const Shape limit = limits.of(at);
    EXPECT_TRUE(n->shapes[size_t(e.port)].Admits(limit));
    EXPECT_EQ(limits.of(at), limit);  // also when it is known already
    return limit.text();
  }
  // Runs the value for several feeds of 6 numbers, and checks that none of its sizes passes the limit.
  // Returns the largest number of elements.
  uint64_t Most(Edge e) {
    Planning p(g_.graph(), {{x_}, {e}, {}}, {Shape({6})});
    const WorkNode* n = p.Through("infer").Find(e);
    const Shape limit = ValueLimits(p.w).of({int32_t(n - p.w.nodes.data()), e.port});
    auto session = g_.NewSession();
    uint64_t most = 0;
    for (const auto& feed : std::vector<std::vector<float>>{{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}, {0, 7, 7, 0, 0, 1}}) {
      auto out = Step(*session, {{x_}, {e}, {}}, {Floats(feed)});
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) continue;
      const Tensor& t = (*out)[0];
      EXPECT_EQ(t.rank(), limit.rank());
      for (int32_t k = 0; k < t.rank() && k < limit.rank(); ++k) EXPECT_TRUE(limit.dim(k) < 0 || t.dim(k) <= limit.dim(k)) << e.text();
      most = std::max(most, t.count());
    }
    return most;
  }
  Edge Rows() { return g_.Op("Where", {g_.Op("Greater", {x_, g_.Const(*ScalarTensor(TW_FLOAT, 0))})}); }

  TestGraph g_{Shared()};
  Edge x_ = g_.Input(Shape({-1}), "x");
};

TEST_F(ValueLimitsTest, AChoiceHasAsManyRowsAsThereAreElements) {
  const Edge rows = Rows();
  EXPECT_EQ(Limits(rows), "[6, 1]");
  EXPECT_EQ(Most(rows), 6u);
  const Edge flat = g_.Op("Reshape", {rows, Ints({-1})}),
             squeezed = g_.Op("Squeeze", {rows}, {.attrs = {{"squeeze_dims", AttrValue::Ints({1})}}});
  EXPECT_EQ(Limits(flat), "[6]");
  EXPECT_EQ(Limits(squeezed), "[6]");
  const Edge some = g_.Op("GatherV2", {x_, flat, Int(0)});
  EXPECT_EQ(Limits(some), "[6]");
  EXPECT_EQ(Most(some), 6u);
  EXPECT_EQ(Limits(g_.Op("Gather", {x_, rows})), "[6, 1]");
  const Edge y = g_.Op("Mul", {g_.Op("Exp", {some}), some});
  EXPECT_EQ(Limits(y), "[6]");
  const Edge both = g_.Op("ConcatV2", {y, x_, some, Int(0)});
  EXPECT_EQ(Limits(both), "[18]");
  EXPECT_EQ(Most(both), 18u);
}

TEST_F(ValueLimitsTest, DistinctElementsAreNotMoreThanElements) {
  const Edge plain = g_.Op("Unique", {x_});
  EXPECT_EQ(Limits(plain), "[6]");
  EXPECT_EQ(Most(plain), 6u);
  const Edge columns = g_.Op("Reshape", {x_, Ints({-1, 2})});
  const Edge rows = g_.Op("UniqueV2", {columns, Ints({0})}),
             all = g_.Op("UniqueV2", {x_, g_.Const(*Tensor::Vector<int32_t>(TW_INT32, {}))});
  EXPECT_EQ(Limits(rows), "[3, 2]");
  EXPECT_EQ(Most(rows), 6u);
  EXPECT_EQ(Limits(all), "[6]");
}

TEST_F(ValueLimitsTest, AConstantLimitsTheChosenBoxes) {
  const Edge boxes = g_.Op("Reshape", {g_.Op("ConcatV2", {x_, x_, x_, x_, Int(0)}), Ints({-1, 4})});
  const Edge chosen = g_.Op("NonMaxSuppression", {boxes, x_, Int(4)});
  EXPECT_EQ(Limits(chosen), "[4]");
  EXPECT_LE(Most(chosen), 4u);
  EXPECT_EQ(Limits(g_.Op("GatherV2", {boxes, chosen, Int(0)})), "[4, 4]");
  EXPECT_EQ(Limits(g_.Op("NonMaxSuppression", {boxes, x_, Int(100)})), "[6]");  // of two limits the smaller holds
}

TEST_F(ValueLimitsTest, WithoutAHintThereIsNoLimit) {
  const Edge rows = Rows(), flat = g_.Op("Reshape", {rows, Ints({-1})});
  // The results have as many rows as the values of the input say, and that is no size of an input.
  EXPECT_EQ(
      Limits(g_.Op("Range", {Int(0), g_.Op("Cast", {g_.Op("Size", {flat})}, {.attrs = {{"DstT", AttrValue::Type(TW_INT32)}}}), Int(1)})),
      "[?]");
  // The rule refuses 6 elements in rows of 4, so it says nothing about fewer.
  EXPECT_EQ(Limits(g_.Op("Reshape", {rows, Ints({-1, 4})})), "[?, 4]");
}

}  // namespace
}  // namespace thalweg
