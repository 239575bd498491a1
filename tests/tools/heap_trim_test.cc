// HeapTrim: which memory it returns to the system, as /proc/self/statm counts it.
#include "tools/thalweg/heap_trim.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace thalweg::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;

uint64_t InMemory() {
  unsigned long long all = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  const int n = file ? std::fscanf(file, "%llu %llu", &all, &resident) : 0;
  if (file) std::fclose(file);
  EXPECT_EQ(n, 2) << "/proc/self/statm cannot be read";
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

// Blocks of the heap, too small to be mapped one by one. The last one stays: without it, free()
// itself would return the end of the heap.
class Blocks {
 public:
  explicit Blocks(uint64_t bytes) {
    for (uint64_t done = 0; done <= bytes; done += kBlock) {
      blocks_.push_back(std::malloc(kBlock));
      std::memset(blocks_.back(), 1, kBlock);
    }
  }
  Blocks(const Blocks&) = delete;
  ~Blocks() {
    for (void* b : blocks_) std::free(b);
  }
  // Frees that many bytes, the oldest first; UINT64_MAX: all but the last block.
  void Free(uint64_t bytes) {
    for (uint64_t done = 0; done < bytes && blocks_.size() > 1; done += kBlock) {
      std::free(blocks_.front());
      blocks_.pop_front();
    }
  }

 private:
  static constexpr size_t kBlock = 64 << 10;
  std::deque<void*> blocks_;
};

TEST(HeapTrimTest, ReturnsWhatWasFreedSinceTheProcessGrew) {
  HeapTrim heap;
  heap.Look();
  const uint64_t before = InMemory();
  Blocks blocks(24 * kMiB);
  blocks.Free(UINT64_MAX);
  ASSERT_GT(InMemory(), before + 20 * kMiB) << "the heap has returned the memory by itself";
  heap.Look();
  EXPECT_LT(InMemory(), before + 4 * kMiB);
}

TEST(HeapTrimTest, ReturnsWhatWasInUseDuringTheLastTrim) {
  HeapTrim heap;
  Blocks blocks(24 * kMiB);
  heap.Look();  // trims
  const uint64_t before = InMemory();
  blocks.Free(UINT64_MAX);
  ASSERT_GT(InMemory(), before - 4 * kMiB) << "the heap has returned the memory by itself";
  heap.Look();
  EXPECT_LT(InMemory(), before - 20 * kMiB);
}

TEST(HeapTrimTest, ReturnsMemoryOfOtherThreads) {
  HeapTrim heap;
  std::unique_ptr<Blocks> blocks;
  std::thread([&] { blocks = std::make_unique<Blocks>(24 * kMiB); }).join();
  heap.Look();
  const uint64_t before = InMemory();
  blocks->Free(UINT64_MAX);
  ASSERT_GT(InMemory(), before - 4 * kMiB) << "the heap has returned the memory by itself";
  heap.Look();
  EXPECT_LT(InMemory(), before - 20 * kMiB);
}

TEST(HeapTrimTest, LittleMemoryStays) {
  HeapTrim heap;
  Blocks blocks(24 * kMiB);
  heap.Look();
  const uint64_t before = InMemory();
  blocks.Free(HeapTrim::kGrown / 2);
  heap.Look();
  EXPECT_GT(InMemory(), before - kMiB);
  blocks.Free(HeapTrim::kGrown);
  heap.Look();
  EXPECT_LT(InMemory(), before - 5 * kMiB);
}

}  // namespace
}  // namespace thalweg::cli
