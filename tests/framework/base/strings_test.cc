#include "framework/base/strings.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

#include "framework/base/status.h"

namespace thalweg {
namespace {

TEST(StringsTest, PutsTextsAndNumbersInARow) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(StrCat(text, "", "c", std::string_view("def", 2), AbslView("g")), std::string("a\0bcdeg", 7));
  EXPECT_EQ(StrCat("n", 0, " ", -1, " ", uint8_t{200}, " ", true), "n0 -1 200 1");
  EXPECT_EQ(StrCat("only text"), "only text");
  EXPECT_EQ(StrCat(""), "");
}

TEST(StringsTest, WritesTheLargestAndSmallestNumbers) {
  EXPECT_EQ(StrCat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(StrCat(std::numeric_limits<int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(StrCat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(StrCat(std::numeric_limits<uint64_t>::max() - 2, " ", std::numeric_limits<uint32_t>::max()), "18446744073709551613 4294967295");
}

TEST(StringsTest, WritesRealNumbersWithSixDigits) {
  EXPECT_EQ(StrCat(0.5, " ", 1.f, " ", 1.0 / 3, " ", 1e300, " ", -2.5e-9), "0.5 1 0.333333 1e+300 -2.5e-09");
  EXPECT_EQ(StrCat(std::numeric_limits<double>::infinity(), " ", -std::numeric_limits<double>::infinity()), "inf -inf");
  EXPECT_EQ(StrCat(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(StringsTest, WritesEnumeratorsAsNumbers) {
  enum Plain { kSeven = 7, kBelow = -1 };
  enum class Scoped : uint8_t { kLast = 255 };
  EXPECT_EQ(StrCat(kSeven, " ", kBelow, " ", Scoped::kLast), "7 -1 255");
}

TEST(StringsTest, WritesHexadecimalNumbers) {
  EXPECT_EQ(Hex(0) + " " + Hex(255) + " " + Hex(0xabc, 5), "0 ff 00abc");
  EXPECT_EQ(Hex(~uint64_t{0}) + " " + Hex(1, 16), "ffffffffffffffff 0000000000000001");
}

TEST(StringsTest, AnErrorHasItsPartsAsMessage) {
  const Status s = InvalidArgument("axis ", -3, " of '", std::string("x"), "' is ", 2.5);
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(s), "axis -3 of 'x' is 2.5");
}

}  // namespace
}  // namespace thalweg
