#include "framework/json/utf8.h"

#include "gtest/gtest.h"

#include "framework/json/json.h"

namespace thalweg {
namespace {

TEST(Utf8Test, KnowsTheLengthOfEveryCharacter) {
  EXPECT_EQ(Utf8Length(std::string_view("\0", 1)), 1u);
  EXPECT_EQ(Utf8Length("a\xff"), 1u);
  EXPECT_EQ(Utf8Length("\xc2\x80"), 2u);
  EXPECT_EQ(Utf8Length("\xe2\x82\xac..."), 3u);
  EXPECT_EQ(Utf8Length("\xed\x9f\xbf"), 3u);
  EXPECT_EQ(Utf8Length("\xf4\x8f\xbf\xbf"), 4u);
}

TEST(Utf8Test, RefusesWhatIsNoCharacter) {
  const std::string_view cases[] = {"",
                                    "\x80",
                                    "\xff",
                                    "\xc2",
                                    "\xc2.",
                                    "\xe2\x82",
                                    "\xe2\x82.",
                                    "\xc1\xbf",
                                    "\xe0\x9f\xbf",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80\x80",
                                    "\xf0\x90",
                                    "\xed\xa0\x80",
                                    "\xfe\x80"};
  for (std::string_view text : cases) EXPECT_EQ(Utf8Length(text), 0u) << OneLine(text);
}

TEST(Utf8Test, OneLineSpellsOutWhatTerminalsObeyOrCannotShow) {
  EXPECT_EQ(OneLine("caf\xc3\xa9 \\ \""), "caf\xc3\xa9 \\ \"");
  EXPECT_EQ(OneLine(std::string_view("a\0b\n\t\r\x1b\x7f", 8)), "a\\x00b\\n\\t\\x0d\\x1b\\x7f");
  EXPECT_EQ(OneLine("\xc2\x9b\xc2\xa0"), "\\xc2\\x9b\xc2\xa0");
  EXPECT_EQ(OneLine("\xff\xe2\x82z\xc3"), "\\xff\\xe2\\x82z\\xc3");
}

TEST(JsonTest, QuotesEveryByteAsUtf8) {
  EXPECT_EQ(JsonQuote(std::string_view("\"\\\n\0\x7f", 5)), R"("\"\\\n\u0000\u007f")");
  EXPECT_EQ(JsonQuote("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
  EXPECT_EQ(JsonQuote("a\xff\xe2\x82z"), "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"");
}

}  // namespace
}  // namespace thalweg
