#include "framework/proto/wire.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

TEST(WireTest, ReadsWhatItWrites) {
  std::string message;
  PutVarintField(1, 300, &message);
  PutBytesField(2, "abc", &message);
  PutVarintField(536870911, UINT64_MAX, &message);
  PutBytesField(3, "", &message);
  message += std::string("\x25\1\2\3\4\x21\1\2\3\4\5\6\7\x08", 14);  // a fixed32 and a fixed64, both as field 4
  WireReader r(message);
  WireField f;
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.number, 1u);
  EXPECT_EQ(f.type, WireField::kVarint);
  EXPECT_EQ(f.value, 300u);
  EXPECT_EQ(f.raw, message.substr(0, 3));
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.bytes, "abc");
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.number, 536870911u);
  EXPECT_EQ(f.value, UINT64_MAX);
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.bytes, "");
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.type, WireField::kFixed32);
  EXPECT_EQ(f.bytes.size(), 4u);
  ASSERT_TRUE(r.Next(&f));
  EXPECT_EQ(f.type, WireField::kFixed64);
  EXPECT_EQ(f.raw.size(), 9u);
  EXPECT_FALSE(r.Next(&f));
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.offset(), message.size());
}

TEST(WireTest, EveryTruncationIsNoticedOrEndsBetweenFields) {
  std::string message;
  PutVarintField(1, 1u << 30, &message);
  const size_t first = message.size();
  PutBytesField(2, std::string(200, 'x'), &message);
  for (size_t n = 0; n < message.size(); ++n) {
    WireReader r(std::string_view(message).substr(0, n));
    WireField f;
    while (r.Next(&f)) continue;
    EXPECT_EQ(r.ok(), n == 0 || n == first) << n;
  }
}

TEST(WireTest, RefusesWhatIsNoField) {
  using std::string_literals::operator""s;
  for (const std::string& bad : {
           "\x00\x01"s,                                          // field 0
           "\x0b\x0c"s,                                          // a group
           "\x0e"s, "\x0f"s,                                     // types that do not exist
           "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s,      // 65 bits
           "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,  // eleven bytes
           "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,      // 2^64-1 bytes
           "\x0a\xff\xff\xff\xff\x07 abc"s,                      // 2 GiB
           "\x80\x80\x80\x80\x10\x01"s,                          // field 2^29
       }) {
    WireReader r(bad);
    WireField f;
    EXPECT_FALSE(r.Next(&f));
    EXPECT_FALSE(r.ok()) << testing::PrintToString(bad);
    EXPECT_FALSE(r.Next(&f));
  }
}

}  // namespace
}  // namespace thalweg
