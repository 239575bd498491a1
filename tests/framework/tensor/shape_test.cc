#include "framework/tensor/shape.h"

#include "gtest/gtest.h"

#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using testing_support::Text;

const Shape kScalar{std::initializer_list<int64_t>{}};

TEST(ShapeTest, KnowsWhatIsKnown) {
  EXPECT_EQ(Shape().rank(), -1);
  EXPECT_FALSE(Shape().has_rank());
  EXPECT_FALSE(Shape().known());
  EXPECT_TRUE(kScalar.known());
  EXPECT_EQ(kScalar.rank(), 0);
  EXPECT_FALSE(Shape({2, -1}).known());
  EXPECT_TRUE(Shape({2, 0}).known());
}

TEST(ShapeTest, SpeaksForMessages) {
  EXPECT_EQ(Shape().text(), "unknown");
  EXPECT_EQ(kScalar.text(), "[]");
  EXPECT_EQ(Shape({2, -1, -7}).text(), "[2, ?, ?]");
}

TEST(ShapeTest, SurvivesTheTripThroughC) {
  for (const Shape& s : {Shape(), kScalar, Shape({1, -1, 3})}) EXPECT_TRUE(Shape(s.c()) == s) << s.text();
  EXPECT_EQ(Shape().c().rank, -1);
}

TEST(ShapeTest, IsAValueWithFewAxesAndWithMany) {
  const std::vector<int64_t> all = {1, 2, -1, 4, 5, 6, 7};
  for (int32_t rank = 0; rank <= int32_t(all.size()); ++rank) {
    const Shape s(all.data(), rank);
    Shape copy = s, assigned({9, 9, 9, 9, 9, 9});
    EXPECT_EQ(copy, s);
    assigned = copy;
    EXPECT_EQ(assigned, s);
    const Shape moved = std::move(copy);
    EXPECT_EQ(moved, s);
    copy = Shape({3});
    EXPECT_EQ(copy, Shape({3}));
    assigned = std::move(copy);
    EXPECT_EQ(assigned, Shape({3}));
    EXPECT_EQ(std::vector<int64_t>(s.dims().begin(), s.dims().end()), std::vector<int64_t>(all.begin(), all.begin() + rank));
    EXPECT_EQ(s.known(), rank < 3);
    EXPECT_TRUE(Shape(s.c()) == s);
    EXPECT_EQ(*MergeShapes(s, Shape(std::vector<int64_t>(size_t(rank), -1))), s);
  }
}

TEST(ShapeTest, EqualsOnlyItself) {
  EXPECT_FALSE(Shape() == kScalar);
  EXPECT_FALSE(Shape({1}) == Shape({-1}));
  EXPECT_TRUE(Shape({1, 2}) == Shape({1, 2}));
}

TEST(ShapeTest, AdmitsWhatItCouldTurnOutToBe) {
  EXPECT_TRUE(Shape().Admits(Shape({1})));
  EXPECT_TRUE(Shape({1}).Admits(Shape()));
  EXPECT_TRUE(Shape({-1, 3}).Admits(Shape({2, -1})));
  EXPECT_FALSE(Shape({2, 3}).Admits(Shape({2, 4})));
  EXPECT_FALSE(Shape({2}).Admits(Shape({2, 1})));
}

TEST(ShapeTest, MergesWhatBothSay) {
  EXPECT_TRUE(*MergeShapes(Shape({-1, 3}), Shape({2, -1})) == Shape({2, 3}));
  EXPECT_TRUE(*MergeShapes(Shape(), Shape({2})) == Shape({2}));
  EXPECT_TRUE(*MergeShapes(Shape({2}), Shape()) == Shape({2}));
  EXPECT_FALSE(MergeShapes(Shape(), Shape())->has_rank());
  EXPECT_EQ(Text(MergeShapes(Shape({2, -1}), Shape({3, 1})).status()), "shapes [2, ?] and [3, 1] contradict each other");
}

}  // namespace
}  // namespace thalweg
