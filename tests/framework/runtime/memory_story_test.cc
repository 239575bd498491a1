#include "framework/runtime/devices/memory_story.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

TEST(MemoryStoryTest, TheLargestComeFirstAndTheRestIsSummedUp) {
  EXPECT_EQ(LargestText({}), "");
  EXPECT_EQ(LargestText({{"empty", 0}}), "");
  EXPECT_EQ(LargestText({{"a", 1}, {"b", 8}}), "; the largest there are b (8 bytes), a (1 bytes)");
  EXPECT_EQ(LargestText({{"a", 1}, {"b", 8}, {"c", 2}, {"d", 4}, {"e", 3}, {"none", 0}, {"f", 1}}),
            "; the largest there are b (8 bytes), d (4 bytes), e (3 bytes), c (2 bytes), and 2 more of 2 bytes");
}

}  // namespace
}  // namespace thalweg
