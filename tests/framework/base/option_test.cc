#include "framework/base/option.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;

struct Record {
  bool flag = false;
  uint32_t count = 1;
  int64_t bytes = 0;
  std::string colour;
  std::vector<std::string> paths, names;
  std::map<std::string, std::string> settings;
};

bool SetSetting(Record* r, const tw_option&, std::string_view key, std::string_view value) {
  r->settings[std::string(key)] = value;
  return true;
}

constexpr const char* kColours[] = {"red", "green", "blue"};
constexpr tw_option kMany = [] {
  tw_option o = BytesOption("many", "4K", "many bytes");
  o.min = 1024;
  return o;
}();
constexpr OptionRow<Record> kRows[] = {
    {BoolOption("flag", "false", "a flag"), SetMember<&Record::flag>},
    {IntOption("count", "1", 1, 9, "a count"), SetMember<&Record::count>},
    {BytesOption("bytes", "0", "bytes"), SetMember<&Record::bytes>},
    {kMany, SetMember<&Record::bytes>},
    {ChoiceOption("colour", "", kColours, "a colour"), SetMember<&Record::colour>},
    {ListOption("paths", ':', "paths"), SetMember<&Record::paths>},
    {Repeating(TextOption("name", "", "a name")), AddToMember<&Record::names>},
    {TextOption("for.<who>.<what>", "", "a setting"), SetSetting},
};

std::string Set(Record* r, std::string_view key, std::string_view value) {
  return std::string(StdView(SetOption<Record>("test", kRows, r, key, value).message()));
}

TEST(OptionTest, SetsAMemberOfEachKind) {
  Record r;
  EXPECT_EQ(Set(&r, "flag", "1"), "");
  EXPECT_EQ(Set(&r, "count", "9"), "");
  EXPECT_EQ(Set(&r, "bytes", "3K"), "");
  EXPECT_EQ(Set(&r, "colour", "blue"), "");
  EXPECT_EQ(Set(&r, "paths", "a::b"), "");
  EXPECT_EQ(Set(&r, "name", "x"), "");
  EXPECT_EQ(Set(&r, "name", "y"), "");
  EXPECT_TRUE(r.flag);
  EXPECT_EQ(r.count, 9u);
  EXPECT_EQ(r.bytes, 3072);
  EXPECT_EQ(r.colour, "blue");
  EXPECT_THAT(r.paths, ElementsAre("a", "b"));
  EXPECT_THAT(r.names, ElementsAre("x", "y"));
}

TEST(OptionTest, SaysWhatAnOptionTakes) {
  Record r;
  EXPECT_EQ(Set(&r, "flag", "yes"), "test option 'flag' cannot be 'yes'; it takes true or false");
  EXPECT_EQ(Set(&r, "count", "10"), "test option 'count' cannot be '10'; it takes a number from 1 to 9");
  EXPECT_EQ(Set(&r, "count", "2x"), "test option 'count' cannot be '2x'; it takes a number from 1 to 9");
  EXPECT_EQ(Set(&r, "colour", "pink"), "test option 'colour' cannot be 'pink'; it takes red, green or blue");
  for (const char* wrong : {"", "-1", "2KB", "2X", "9999999999999T", "99999999999999999999"}) {
    EXPECT_EQ(Set(&r, "bytes", wrong),
              StrCat("test option 'bytes' cannot be '", wrong, "'; it takes a number of bytes, such as 1000000 or 2G"));
  }
  EXPECT_EQ(Set(&r, "many", "1023"), "test option 'many' cannot be '1023'; it takes a number of bytes from 1024 on, such as 1000000 or 2G");
  EXPECT_EQ(Set(&r, "size", "1"),
            "there is no test option 'size'; there are: flag, count, bytes, many, colour, paths, name, for.<who>.<what>");
  EXPECT_EQ(r.count, 1u);
  EXPECT_EQ(r.bytes, 0);
}

TEST(OptionTest, FindsNamesThatTheUserFillsIn) {
  EXPECT_TRUE(IsNamed("limit.<KIND>", "limit.CPU"));
  EXPECT_FALSE(IsNamed("limit.<KIND>", "limit."));
  EXPECT_TRUE(IsNamed("for.<who>.<what>", "for.org.someone.this"));
  EXPECT_FALSE(IsNamed("for.<who>.<what>", "for.someone"));
  EXPECT_FALSE(IsNamed("for.<who>.<what>", "for.someone."));
  EXPECT_FALSE(IsNamed("for.<who>.<what>", "for..this"));
  Record r;
  EXPECT_EQ(Set(&r, "for.me.this", "v"), "");
  EXPECT_EQ(r.settings["for.me.this"], "v");
}

}  // namespace
}  // namespace thalweg
