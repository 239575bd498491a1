// The bytes of string tensors: many short ones, long ones, replaced ones, by one thread and by
// several. Sanitizers check what is freed.
#include "framework/tensor/texts.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "framework/tensor/tensor.h"

namespace thalweg {
namespace {

std::string Text(uint64_t i, size_t size) {
  std::string s = std::to_string(i);
  s.resize(size, char('a' + i % 26));
  return s;
}

TEST(TextsTest, ShortStringsLieSideBySide) {
  Tensor t = *Tensor::Make(TW_STRING, Shape({1000}));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(t.SetString(i, Text(i, 4 + i % 9)).ok());
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(t.str(i), Text(i, 4 + i % 9));
  int beside = 0;
  for (uint64_t i = 1; i < 1000; ++i) beside += t.str(i).data() == t.str(i - 1).data() + t.str(i - 1).size();
  EXPECT_GT(beside, 980);
}

TEST(TextsTest, StringsOfAnySizeMix) {
  constexpr size_t kSizes[] = {0, 1, 100, 4096, 4097, 20'000, 3'000'000};
  Tensor t = *Tensor::Make(TW_STRING, Shape({210}));
  for (uint64_t i = 0; i < 210; ++i) ASSERT_TRUE(t.SetString(i, Text(i, kSizes[i % 7])).ok());
  for (uint64_t i = 0; i < 210; ++i) ASSERT_EQ(t.str(i), Text(i, kSizes[i % 7]));
}

TEST(TextsTest, ReplacedStringsDoNotPileUp) {
  Tensor t = *Tensor::Make(TW_STRING, Shape({2}));
  ASSERT_TRUE(t.SetString(1, "neighbour").ok());
  const char* first = nullptr;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const std::string text = Text(i, i % 3 * 10);
    ASSERT_TRUE(t.SetString(0, text).ok());
    ASSERT_EQ(t.str(0), text);
    if (i == 2) first = t.str(0).data();
  }
  EXPECT_EQ(t.str(0).data(), first);  // no later string was longer
  EXPECT_EQ(t.str(1), "neighbour");
}

TEST(TextsTest, AShortStringLetsTheBlockOfALongOneGo) {
  Tensor t = *Tensor::Make(TW_STRING, Shape({1}));
  ASSERT_TRUE(t.SetString(0, std::string(1 << 20, 'x')).ok());
  const char* before = t.str(0).data();
  ASSERT_TRUE(t.SetString(0, "x").ok());
  EXPECT_NE(t.str(0).data(), before);
  ASSERT_TRUE(t.SetString(0, std::string(1 << 20, 'y')).ok());
  ASSERT_TRUE(t.SetString(0, "").ok());
  EXPECT_EQ(t.str(0), "");
}

TEST(TextsTest, AStringMayBeMadeOfItsOwnBytesOrOfItsNeighbours) {
  Tensor t = *Tensor::Make(TW_STRING, Shape({2}));
  ASSERT_TRUE(t.SetString(0, "abcdef").ok() && t.SetString(1, "a longer one than the other").ok());
  ASSERT_TRUE(t.SetString(0, t.str(0).substr(2)).ok());
  EXPECT_EQ(t.str(0), "cdef");
  ASSERT_TRUE(t.SetString(0, t.str(1)).ok());
  ASSERT_TRUE(t.SetString(1, t.str(0).substr(2, 6)).ok());
  EXPECT_EQ(t.str(0), "a longer one than the other");
  EXPECT_EQ(t.str(1), "longer");
}

TEST(TextsTest, ThreadsMaySetDifferentElements) {
  constexpr uint64_t kEach = 20'000, kThreads = 6;
  Tensor t = *Tensor::Make(TW_STRING, Shape({int64_t(kEach * kThreads)}));
  std::vector<std::thread> threads;
  for (uint64_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&t, k] {
      for (uint64_t i = k * kEach; i < (k + 1) * kEach; ++i) {
        EXPECT_TRUE(t.SetString(i, Text(i, i % 40)).ok());
        EXPECT_TRUE(i % 5 || t.SetString(i, Text(i, i % 90)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kEach * kThreads; ++i) ASSERT_EQ(t.str(i), Text(i, i % 5 ? i % 40 : i % 90));
}

}  // namespace
}  // namespace thalweg
