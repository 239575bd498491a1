#include "framework/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

TEST(Crc32cTest, MatchesTheVectorsOfRfc3720) {
  const std::string zeros(32, '\0'), ones(32, '\xff');
  std::string up(32, '\0'), down(32, '\0');
  for (int i = 0; i < 32; ++i) up[size_t(i)] = char(i), down[size_t(i)] = char(31 - i);
  for (auto extend : {&ExtendCrc32c, &ExtendCrc32cPortable}) {
    EXPECT_EQ(extend(0, zeros.data(), 32), 0x8a9136aau);
    EXPECT_EQ(extend(0, ones.data(), 32), 0x62a8ab43u);
    EXPECT_EQ(extend(0, up.data(), 32), 0x46dd794eu);
    EXPECT_EQ(extend(0, down.data(), 32), 0x113fdb5cu);
    EXPECT_EQ(extend(0, "123456789", 9), 0xe3069283u);
    EXPECT_EQ(extend(0, nullptr, 0), 0u);
  }
}

TEST(Crc32cTest, FastAndPortableAgreeAtEveryLengthAndOffset) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes.push_back(char(i * 31 + i / 7));
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t n = 0; begin + n <= bytes.size(); ++n) {
      ASSERT_EQ(ExtendCrc32c(5, bytes.data() + begin, n), ExtendCrc32cPortable(5, bytes.data() + begin, n)) << Crc32cMethod();
    }
  }
}

TEST(Crc32cTest, ExtendingIsTheSameAsOneGo) {
  const std::string s = "hello world, this is a checkpoint";
  for (size_t cut = 0; cut <= s.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, s.data(), cut), s.data() + cut, s.size() - cut), ExtendCrc32c(0, s.data(), s.size()));
  }
}

TEST(Crc32cTest, MasksAsLevelDbDoes) {
  // The mask ((crc >> 15) | (crc << 17)) + 0xa282ead8 of the checksum of "foo".
  EXPECT_EQ(ExtendCrc32c(0, "foo", 3), 0xcfc4ae1du);
  EXPECT_EQ(MaskCrc(0xcfc4ae1du), 0xfebe8a61u);
}

}  // namespace
}  // namespace thalweg
