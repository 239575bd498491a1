#include "framework/base/checked.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/base/dtype.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::Text;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

StatusOr<int64_t> Elements(std::vector<int64_t> dims) { return CountElements(dims.data(), int32_t(dims.size())); }
StatusOr<int64_t> Bytes(std::vector<int64_t> dims, uint32_t dtype) { return CountBytes(dims.data(), int32_t(dims.size()), dtype); }

TEST(CheckedTest, TellsOverflowFromResult) {
  int64_t out = 0;
  EXPECT_TRUE(CheckedMul(kMax, 1, &out));
  EXPECT_EQ(out, kMax);
  EXPECT_FALSE(CheckedMul(kMax / 2, 3, &out));
  EXPECT_FALSE(CheckedMul(std::numeric_limits<int64_t>::min(), -1, &out));
  EXPECT_TRUE(CheckedAdd(kMax, 0, &out));
  EXPECT_FALSE(CheckedAdd(kMax, 1, &out));
}

TEST(CheckedTest, CountsElements) {
  EXPECT_EQ(*Elements({}), 1);
  EXPECT_EQ(*Elements({2, 3, 4}), 24);
  EXPECT_EQ(*Elements({5, 0, 7}), 0);
  EXPECT_EQ(*Elements({kMax}), kMax);
}

TEST(CheckedTest, RefusesWhatCannotBeCounted) {
  EXPECT_EQ(Text(Elements({2, -1}).status()), "size -1 of axis 1 is negative");
  EXPECT_EQ(Text(Elements({kMax, 2}).status()), StrCat("shape [", kMax, ", 2] has more than 2^63-1 elements"));
  EXPECT_FALSE(Elements({int64_t{1} << 40, int64_t{1} << 40, 0}).ok());  // no elements, but larger than any shape we allow
  EXPECT_FALSE(Elements({0, kMax, kMax}).ok());
  EXPECT_EQ(Text(CountElements(nullptr, -1).status()), "the rank is unknown");
}

TEST(CheckedTest, CountsBytes) {
  EXPECT_EQ(*Bytes({3}, TW_DOUBLE), 24);
  EXPECT_EQ(*Bytes({3}, TW_FLOAT + TW_REF), 12);
  EXPECT_EQ(*Bytes({0}, TW_COMPLEX128), 0);
  EXPECT_THAT(Text(Bytes({kMax / 2}, TW_FLOAT).status()), HasSubstr("of float has more than 2^63-1 bytes"));
  EXPECT_THAT(Text(Bytes({1}, 0).status()), HasSubstr("element type 0 is unknown"));
  EXPECT_FALSE(Bytes({1}, 99).ok());
  EXPECT_FALSE(Bytes({1}, TW_REF).ok());
}

TEST(DTypeTest, NamesAndNumbersAgree) {
  for (uint32_t t = 1; t <= TW_UINT2; ++t) {
    ASSERT_NE(FindDType(t), nullptr) << t;
    EXPECT_EQ(FindDType(t)->dtype, t);
    EXPECT_EQ(DTypeByName(DTypeName(t)), t);
    EXPECT_EQ(DTypeByName(DTypeName(t + TW_REF)), t + TW_REF);
    EXPECT_EQ(DTypeName(t + TW_REF), StrCat(DTypeName(t), "_ref"));
    EXPECT_EQ(BaseType(t + TW_REF), t);
    EXPECT_GT(DTypeBytes(t), 0u);
  }
  EXPECT_EQ(DTypeByName("float64"), uint32_t{TW_INVALID_TYPE});
  EXPECT_EQ(FindDType(0), nullptr);
  EXPECT_EQ(FindDType(TW_UINT2 + 1), nullptr);
  EXPECT_EQ(DTypeBytes(77), 0u);
}

}  // namespace
}  // namespace thalweg
