#include "framework/tensor/value_check.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "framework/base/dtype.h"

namespace thalweg {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

template <class T>
tw_view ViewOf(const std::vector<T>& elements, uint32_t dtype, const std::vector<int64_t>& dims) {
  tw_view v = {};
  v.size = sizeof v;
  v.data = const_cast<T*>(elements.data());
  v.dims = dims.data();
  v.rank = int32_t(dims.size());
  v.dtype = dtype;
  v.bytes = elements.size() * sizeof(T);
  v.count = v.bytes / DTypeBytes(dtype);
  return v;
}

TEST(ValueCheck, FindsOneElementAnywhereAmongMany) {
  for (const float bad : {kNan, -kNan, kInf, -kInf}) {
    for (int64_t n : {1, 63, 64, 65, 200}) {
      for (int64_t at = 0; at < n; ++at) {
        std::vector<float> x(size_t(n), std::numeric_limits<float>::max());
        const std::vector<int64_t> dims = {n};
        const tw_view v = ViewOf(x, TW_FLOAT, dims);
        EXPECT_FALSE(IsRefused(v, ValueCheck::kFinite));
        x[size_t(at)] = bad;
        EXPECT_TRUE(IsRefused(v, ValueCheck::kFinite)) << bad << " at " << at << " of " << n;
        EXPECT_EQ(IsRefused(v, ValueCheck::kNan), std::isnan(bad));
        EXPECT_FALSE(IsRefused(v, ValueCheck::kOff));
      }
    }
  }
}

// Every code of the types of 8 and 16 bits, compared with the decimal text that its range has.
TEST(ValueCheck, ReadsEveryCodeOfTheSmallTypes) {
  const auto agrees = [](const tw_view& v) {
    const std::string text = RangeText(v);
    const bool nan = text == " with 1 NaN", infinite = text == " with 1 infinite";
    EXPECT_TRUE(nan || infinite || text.rfind(" of ", 0) == 0) << text;
    EXPECT_EQ(IsRefused(v, ValueCheck::kNan), nan) << text << " of " << DTypeName(v.dtype);
    EXPECT_EQ(IsRefused(v, ValueCheck::kFinite), nan || infinite) << text << " of " << DTypeName(v.dtype);
  };
  for (uint32_t dtype : {TW_HALF, TW_BFLOAT16}) {
    for (uint32_t code = 0; code < 1 << 16; ++code) agrees(ViewOf(std::vector<uint16_t>{uint16_t(code)}, dtype, {}));
  }
  for (uint32_t dtype : {TW_FLOAT8_E5M2, TW_FLOAT8_E4M3FN, TW_FLOAT8_E4M3FNUZ, TW_FLOAT8_E4M3B11FNUZ, TW_FLOAT8_E5M2FNUZ}) {
    for (uint32_t code = 0; code < 1 << 8; ++code) agrees(ViewOf(std::vector<uint8_t>{uint8_t(code)}, dtype, {}));
  }
}

TEST(ValueCheck, ReadsDoublesAndBothPartsOfComplexNumbers) {
  const double huge = std::numeric_limits<double>::max();
  EXPECT_FALSE(IsRefused(ViewOf(std::vector<double>{huge, -huge}, TW_DOUBLE, {2}), ValueCheck::kFinite));
  EXPECT_TRUE(IsRefused(ViewOf(std::vector<double>{0, -2 * huge}, TW_DOUBLE, {2}), ValueCheck::kFinite));
  const std::vector<int64_t> two = {2};
  const std::vector<float> imaginary = {1, 2, 3, kNan};
  const tw_view v = ViewOf(imaginary, TW_COMPLEX64, two);
  EXPECT_TRUE(IsRefused(v, ValueCheck::kNan));
  EXPECT_EQ(FirstRefused(v, ValueCheck::kNan), "[1]");
}

TEST(ValueCheck, TypesWithoutSuchElementsAreNeverRefused) {
  const std::vector<int64_t> two = {2};
  EXPECT_FALSE(IsRefused(ViewOf(std::vector<int32_t>{-1, 0x7fffffff}, TW_INT32, two), ValueCheck::kFinite));
  EXPECT_FALSE(IsRefused(ViewOf(std::vector<float>{}, TW_FLOAT, {0}), ValueCheck::kFinite));
  EXPECT_EQ(RangeText(ViewOf(std::vector<float>{}, TW_FLOAT, {0})), "");
}

TEST(ValueCheck, TextsGiveRangeCountsAndPlace) {
  const std::vector<int64_t> dims = {2, 3};
  const std::vector<float> x = {0, 1.5, -2, 0.25, kInf, kNan};
  const tw_view v = ViewOf(x, TW_FLOAT, dims);
  EXPECT_EQ(RangeText(v), " from -2 to 1.5 with 1 NaN and 1 infinite");
  EXPECT_EQ(FirstRefused(v, ValueCheck::kFinite), "[1, 1]");
  EXPECT_EQ(FirstRefused(v, ValueCheck::kNan), "[1, 2]");
  const std::vector<int32_t> whole = {-7, 9};
  const std::vector<int64_t> two = {2};
  EXPECT_EQ(RangeText(ViewOf(whole, TW_INT32, two)), " from -7 to 9");
}

}  // namespace
}  // namespace thalweg
