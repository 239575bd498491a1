// The reader of JSON that plugins and tools share: what it keeps of a text, and that damaged or hostile texts end with an error.
#include "plugins/common/json_value.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg::common {
namespace {

using Kind = JsonValue::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::string_literals;

std::string Refusal(const std::string& text) {
  try {
    JsonValue::Parse(text);
  } catch (const JsonError& e) {
    return e.what();
  }
  return "no error for " + text.substr(0, 100);
}

TEST(JsonValue, KeepsKindsOrderAndDuplicates) {
  const JsonValue v = JsonValue::Parse(R"( {"b": [1, -2.5e3, true, false, null, "t"], "a": {}, "b": 7} )");
  EXPECT_TRUE(v.is(Kind::kObject));
  EXPECT_THAT(v.keys(), ElementsAre("b", "a", "b"));
  EXPECT_THAT(v.items(), SizeIs(3));
  const std::vector<JsonValue>& list = v["b"].items();
  ASSERT_THAT(list, SizeIs(6)) << "the first of two members is found";
  EXPECT_EQ(list[0].number(), 1);
  EXPECT_EQ(list[1].number(), -2500);
  EXPECT_TRUE(list[2].yes());
  EXPECT_EQ(list[2].number(), 1);
  EXPECT_FALSE(list[3].yes());
  EXPECT_TRUE(list[4].is(Kind::kNull));
  EXPECT_EQ(list[5].text(), "t");
  EXPECT_TRUE(v["a"].is(Kind::kObject));
  EXPECT_TRUE(v["c"].null());
  EXPECT_FALSE(v.has("c"));
  EXPECT_TRUE(JsonValue::Parse(R"({"c": null})").has("c"));
  EXPECT_TRUE(list[0]["x"].is(Kind::kMissing)) << "a number has no members";
}

TEST(JsonValue, ReadsEscapesAndNearestNumbers) {
  EXPECT_EQ(JsonValue::Parse(R"("\u00e9\ud83d\ude00\n\/\u0000")").text(), "\xc3\xa9\xf0\x9f\x98\x80\n/\0"s);
  EXPECT_EQ(JsonValue::Parse("0.1").number(), 0.1);
  EXPECT_EQ(JsonValue::Parse("9007199254740993").number(), 9007199254740992.0);
  EXPECT_EQ(JsonValue::Parse("18446744073709551616").number(), 0x1p64);
  EXPECT_TRUE(std::signbit(JsonValue::Parse("-0.0").number()));
  EXPECT_EQ(JsonValue::Parse("1e-999").number(), 0);
}

TEST(JsonValue, WholeNumbersKeepAllBits) {
  const JsonValue v =
      JsonValue::Parse("[9223372036854775807, -9223372036854775808, 9007199254740993, 9223372036854775808, 1.0, 1e3, true]");
  ASSERT_EQ(v.items().size(), 7u);
  const int64_t wanted[] = {INT64_MAX, INT64_MIN, (int64_t{1} << 53) + 1};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_NE(v.items()[i].whole(), nullptr) << i;
    EXPECT_EQ(*v.items()[i].whole(), wanted[i]);
  }
  for (size_t i = 3; i < 7; ++i) EXPECT_EQ(v.items()[i].whole(), nullptr) << i;
  EXPECT_EQ(v.items()[3].number(), 9223372036854775808.0);
}

TEST(JsonValue, NamesTheByteAtWhichATextIsNoJson) {
  EXPECT_THAT(Refusal(""), HasSubstr("this is no JSON, at byte 0 of 0: "));
  EXPECT_THAT(Refusal("{"), HasSubstr("at byte 1 of 1: "));
  EXPECT_THAT(Refusal("{\"a\":1}x"), HasSubstr("at byte 7 of 8: "));
  EXPECT_THAT(Refusal("{} {}"), HasSubstr("at byte 3 of 5: "));
  EXPECT_THAT(Refusal("[1,]"), HasSubstr("at byte 3 of 4: "));
  EXPECT_THAT(Refusal("{\"a\" 1}"), HasSubstr("expected ':'"));
  for (const char* text : {"nan", "Infinity", "+1", "01", "1.", ".5", "'a'", "truex", "[1 2]", "{a:1}", "\"\n\"", "\"\\x\""})
    EXPECT_THAT(Refusal(text), HasSubstr("no JSON, at byte")) << text;
}

TEST(JsonValue, HostileTextsEndWithShortErrors) {
  EXPECT_THAT(Refusal(std::string(1 << 20, '[')), HasSubstr("more than 64 arrays and objects within one another"));
  std::string objects;
  for (int i = 0; i < 10000; ++i) objects += "{\"a\":";
  EXPECT_THAT(Refusal(objects), HasSubstr("more than 64"));
  EXPECT_NO_THROW(JsonValue::Parse(std::string(JsonValue::kDeepest, '[') + std::string(JsonValue::kDeepest, ']')));
  EXPECT_THAT(Refusal("1e999"), HasSubstr("number overflow"));
  EXPECT_THAT(Refusal("\"\xff\""), HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(Refusal("\"\\ud800\""), HasSubstr("surrogate"));
  EXPECT_THAT(Refusal("{}\0{}"s), HasSubstr("at byte 2 of 5: there is a NUL byte"));
  EXPECT_THAT(Refusal("\"a\0b\""s), HasSubstr("at byte 2 of 5: there is a NUL byte"));
  // The message quotes none of the text, which may be long and no UTF-8.
  EXPECT_LT(Refusal("\"" + std::string(1 << 20, '\xc3')).size(), 250u);
  EXPECT_LT(Refusal(std::string(1 << 20, '9')).size(), 250u);
}

TEST(JsonValue, ChargesTheTreeWhileItGrows) {
  std::string text = "[1";
  for (int i = 1; i < 10000; ++i) text += ",1";
  text += "]";
  uint64_t whole = 0;
  JsonValue::Parse(text, [&whole](uint64_t bytes) { whole += bytes; });
  EXPECT_GE(whole, 10001 * sizeof(JsonValue));
  struct Full {};
  uint64_t portions = 0;
  EXPECT_THROW(JsonValue::Parse(text,
                                [&portions](uint64_t) {
                                  if (++portions == 2) throw Full();
                                }),
               Full);
  EXPECT_EQ(portions, 2u) << "the parser stops at the limit";
}

TEST(JsonValue, ReadingBytesCountAllThatTheLibraryStores) {
  const std::string text = R"({"inputs": [1, -2.5e3, "a\"b"]})";
  const uint64_t few = JsonReadingBytes(text);
  EXPECT_LT(few, 1000u);
  EXPECT_GE(JsonReadingBytes(text + std::string(10000, ' ')), 120000u) << "blanks are stored until a string or a number begins";
  EXPECT_GE(JsonReadingBytes(std::string(10000, '\n') + text), 960000u) << "an error writes <U+000A> for each";
  EXPECT_GE(JsonReadingBytes("\"" + std::string(10000, 'a') + "\\\""), 120000u);
  EXPECT_GE(JsonReadingBytes(std::string(10000, '9')), 120000u);
  std::string words = "[true", numbers = "[1", texts = "[\"\"";
  for (int i = 0; i < 10000; ++i) words += ",true", numbers += ",1", texts += ",\"\"";
  EXPECT_GE(JsonReadingBytes(words), 12 * words.size());
  EXPECT_LT(JsonReadingBytes(numbers), 1000u);
  EXPECT_LT(JsonReadingBytes(texts), 1000u);
  // A text that is refused is charged before it is read.
  uint64_t charged = 0;
  EXPECT_THROW(JsonValue::Parse(std::string(10000, '\n') + "x", [&charged](uint64_t bytes) { charged += bytes; }), JsonError);
  EXPECT_GE(charged, 960000u);
}

TEST(JsonValue, DamagedTextsAreReadOrRefused) {
  const std::string whole = R"({"a": [1, 2.5, {"b": "text \u00e9"}, null], "c": {"d": [true, false]}, "e": "\\"})";
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 2; ++k) text[random() % text.size()] = char(random());
    try {
      JsonValue::Parse(text);
    } catch (const JsonError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_THAT(Refusal(whole.substr(0, n)), HasSubstr("no JSON")) << n;
}

}  // namespace
}  // namespace thalweg::common
