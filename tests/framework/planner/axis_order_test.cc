#include "framework/planner/axes/axis_order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::FloatsOf;
using testing_support::Values;

template <class T>
std::vector<T> All(const Tensor& t) {
  return std::vector<T>(t.as<T>(), t.as<T>() + t.count());
}

const AxisOrder kLast = {0, 2, 3, 1};

TEST(AxisOrderTest, IsReadFromTexts) {
  EXPECT_EQ(OrderBetween("NCHW", "NHWC"), kLast);
  EXPECT_THAT(OrderBetween("NHWC", "NCHW"), ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(OrderBetween("NCDHW", "NDHWC"), ElementsAre(0, 2, 3, 4, 1));
  EXPECT_TRUE(IsInOrder(OrderBetween("NHWC", "NHWC")));
  EXPECT_THAT(OrderBetween("NCHW", "NDHWC"), IsEmpty());
  EXPECT_THAT(OrderBetween("NCHW", "NHWD"), IsEmpty());
  EXPECT_THAT(OrderBetween("NCHW", "NHWW"), IsEmpty());
  EXPECT_THAT(OrderBetween("NHHW", "NHWH"), IsEmpty());
}

TEST(AxisOrderTest, IsReadFromPermutations) {
  const auto order = [](const std::vector<int32_t>& perm) { return OrderOf(*Tensor::Vector<int32_t>(TW_INT32, perm)); };
  EXPECT_EQ(order({0, 2, 3, 1}), kLast);
  EXPECT_EQ(order({0, -2, -1, 1}), kLast);
  EXPECT_THAT(order({0, 2, 2, 1}), IsEmpty());
  EXPECT_THAT(order({0, 4, 2, 1}), IsEmpty());
  EXPECT_THAT(OrderOf(FloatsOf(Shape({4}))), IsEmpty());
}

TEST(AxisOrderTest, AnInverseUndoesIt) {
  EXPECT_THAT(Inverse(kLast), ElementsAre(0, 3, 1, 2));
  EXPECT_TRUE(IsInOrder(Composed(kLast, Inverse(kLast))));
  EXPECT_EQ(Turned(Turned(Shape({2, 3, 4, 5}), kLast), Inverse(kLast)), Shape({2, 3, 4, 5}));
}

TEST(AxisOrderTest, TurnsValues) {
  const Tensor x = FloatsOf(Shape({2, 3, 1, 2}), 0);  // element [n, c, 0, w] is 6 n + 2 c + w
  const Tensor turned = *Turned(x, kLast);
  EXPECT_EQ(turned.shape(), Shape({2, 1, 2, 3}));
  EXPECT_THAT(Values(turned), ElementsAre(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
  EXPECT_EQ(Values(*Turned(turned, Inverse(kLast))), Values(x));
  EXPECT_EQ(Turned(FloatsOf(Shape({2, 0, 3, 4})), kLast)->shape(), Shape({2, 3, 4, 0}));
}

TEST(AxisOrderTest, TurnsWhatGoesByAxes) {
  EXPECT_THAT(TurnedList({1, 2, 3, 4}, kLast), ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(TurnedList({0, 0, 1, 2, 3, 4, 5, 6}, kLast), ElementsAre(0, 0, 3, 4, 5, 6, 1, 2));
  EXPECT_THAT(TurnedList({7, 8}, kLast), ElementsAre(7, 8));
  const Tensor rows = *Tensor::Vector<int32_t>(TW_INT32, {1, 2, 3, 4, 5, 6, 7, 8})->Reshape(std::vector<int64_t>{4, 2}.data(), 2);
  EXPECT_THAT(All<int32_t>(*TurnedRows(rows, kLast)), ElementsAre(1, 2, 5, 6, 7, 8, 3, 4));
  EXPECT_THAT(All<int64_t>(*TurnedNumbers(*Tensor::Vector<int64_t>(TW_INT64, {0, 1, 2, 3, -1, -3}), kLast)), ElementsAre(0, 3, 1, 2, 2, 3));
  EXPECT_FALSE(TurnedNumbers(*Tensor::Vector<int32_t>(TW_INT32, {4}), kLast).ok());
  EXPECT_FALSE(TurnedNumbers(*Tensor::Vector<int32_t>(TW_INT32, {-5}), kLast).ok());
}

TEST(AxisOrderTest, KnowsWhatLiesTheSame) {
  EXPECT_TRUE(LiesTheSame(Shape({1, 7, 1, 1})));
  EXPECT_TRUE(LiesTheSame(Shape({1, 1, 1})));
  EXPECT_FALSE(LiesTheSame(Shape({2, 7, 1, 1})));
}

}  // namespace
}  // namespace thalweg
