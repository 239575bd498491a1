#include "framework/tensor/buffer.h"

#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/tensor/host_use.h"
#include "framework/tensor/memory_budget.h"
#include "tests/framework/support/fakes.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using testing_support::Text;

struct Counts {
  std::atomic<int> allocated{0}, freed{0};
  std::atomic<uint64_t> bytes{0};  // currently allocated from the raw memory
  bool empty = false;              // no memory left
  bool gone = false;               // the raw memory was deleted with its pool
};

class CountingMemory final : public RawMemory {
 public:
  explicit CountingMemory(Counts* c) : c_(c) {}
  ~CountingMemory() override { c_->gone = true; }
  StatusOr<void*> Allocate(uint64_t bytes) override {
    if (c_->empty) return ResourceExhausted("empty");
    ++c_->allocated;
    c_->bytes += bytes;
    return std::malloc(bytes);
  }
  void Free(void* data, uint64_t bytes) override {
    ++c_->freed;
    c_->bytes -= bytes;
    std::free(data);
  }

 private:
  Counts* c_;
};

MemoryPool* Pool(Counts* c, uint64_t limit = 0) { return MemoryPool::Create(std::make_unique<CountingMemory>(c), "test", limit); }

TEST(MemoryPoolTest, HandsOutEnoughAndNotMuchMore) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  for (uint64_t bytes : {0ull, 1ull, 64ull, 65ull, 100ull, 4096ull, 4097ull, 1000000ull}) {
    Buffer* b = *pool->Allocate(bytes);
    EXPECT_GE(b->bytes, bytes);
    EXPECT_LE(b->bytes, std::max<uint64_t>(64, bytes + bytes / 4 + 1)) << bytes;
    ASSERT_NE(b->data, nullptr);
    std::memset(b->data, 1, b->bytes);
    b->Release();
  }
  pool->Close();
  EXPECT_EQ(c.allocated, c.freed);
  EXPECT_EQ(c.bytes, 0u);
}

TEST(MemoryPoolTest, UsesReturnedMemoryAgain) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  Buffer* a = *pool->Allocate(1000);
  void* data = a->data;
  a->Release();
  Buffer* b = *pool->Allocate(1001);  // of the same size class
  EXPECT_EQ(b->data, data);
  EXPECT_EQ(c.allocated, 1);
  EXPECT_TRUE(b->Unique());
  b->Retain();
  EXPECT_FALSE(b->Unique());
  b->Release();
  b->Release();
  pool->Close();
}

TEST(MemoryPoolTest, KeepsNothingWhereTheDevicePoolsItself) {
  Counts c;
  MemoryPool* pool = MemoryPool::Create(std::make_unique<CountingMemory>(&c), "test", 4096, false);
  Buffer* b = *pool->Allocate(1000);
  EXPECT_EQ(b->bytes, 1024u);  // rounded up to cache lines only
  EXPECT_EQ(pool->stats().held, 1024u);
  b->Release();
  EXPECT_EQ(c.freed, 1);
  EXPECT_EQ(pool->stats().held, 0u);
  EXPECT_EQ(pool->stats().peak, 1024u);
  Buffer* last = *pool->Allocate(4096);
  EXPECT_FALSE(pool->Allocate(1).ok());
  pool->Close();
  EXPECT_FALSE(c.gone);
  last->Release();
  EXPECT_TRUE(c.gone);
  EXPECT_EQ(c.bytes, 0u);
}

TEST(MemoryPoolTest, CountsWhatIsInUse) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  Buffer* a = *pool->Allocate(64);
  Buffer* b = *pool->Allocate(128);
  EXPECT_EQ(pool->stats().in_use, 192u);
  a->Release();
  EXPECT_EQ(pool->stats().in_use, 128u);
  EXPECT_EQ(pool->stats().peak, 192u);
  EXPECT_EQ(pool->stats().held, 192u);
  pool->Trim();
  EXPECT_EQ(pool->stats().held, 128u);
  b->Release();
  pool->Close();
}

// ---- Cached memory ----

class KeptMemoryTest : public testing::Test {
 protected:
  KeptMemoryTest() { pool_->CountAsHostMemory(); }
  ~KeptMemoryTest() override {
    budget_->Release();
    pool_->Close();
    EXPECT_EQ(c_.bytes, 0u);
  }
  // Allocates that many bytes and frees them.
  void Use(uint64_t bytes, MemoryBudget* budget) { (*pool_->Allocate(bytes, budget))->Release(); }

  static constexpr uint64_t kMiB = 1 << 20;
  Counts c_;
  MemoryPool* pool_ = Pool(&c_);
  MemoryBudget* budget_ = MemoryBudget::Create(20 * kMiB);
};

TEST_F(KeptMemoryTest, StaysBelowTheLimitOfWhoeverAsks) {
  IdleMemory::GiveBackAll();
  for (uint64_t k = 1; k <= 60; ++k) {
    Use(k * kMiB / 4, budget_);
    EXPECT_LE(c_.bytes, 20 * kMiB) << k;
  }
  EXPECT_GT(c_.freed, 10);
}

TEST_F(KeptMemoryTest, IsNoMoreThanWasInUseOfLateWhereNobodyHasALimit) {
  constexpr uint64_t kAlways = 64 * kMiB;
  for (uint64_t k = 1; k <= 60; ++k) {
    Use(k * 2 * kMiB, nullptr);
    EXPECT_LE(c_.bytes, 2 * std::max(kAlways, k * 3 * kMiB)) << k;
  }
  for (int k = 0; k < 2000; ++k) {  // long after the last large allocation
    Buffer* one = *pool_->Allocate(100, nullptr);
    Use((1 + uint64_t(k) % 7) * kMiB, nullptr);
    one->Release();
    pool_->TrimBy(64);
  }
  EXPECT_LE(c_.bytes, kAlways + 8 * kMiB);
}

TEST_F(KeptMemoryTest, OfTwoSizesInTurnIsFoundAgain) {
  for (int k = 0; k < 10; ++k) {
    Use(3 * kMiB, budget_);
    Use(5 * kMiB, budget_);
  }
  EXPECT_EQ(c_.allocated, 2);
}

TEST_F(KeptMemoryTest, GoesFirstWhereNobodyAskedForTheLongest) {
  Use(2 * kMiB, nullptr);
  Use(3 * kMiB, nullptr);
  Use(4 * kMiB, nullptr);
  Use(2 * kMiB, nullptr);
  Use(5 * kMiB, nullptr);  // makes a new buffer: the cached ones have been used since and are younger
  Use(2 * kMiB, nullptr);
  const int before = c_.allocated;
  EXPECT_EQ(pool_->TrimBy(kMiB), 3 * kMiB);
  Use(2 * kMiB, nullptr);
  Use(4 * kMiB, nullptr);
  EXPECT_EQ(c_.allocated, before);
}

TEST_F(KeptMemoryTest, MakesRoomForWhatTheHeapIsAskedFor) {
  IdleMemory::GiveBackAll();
  Use(15 * kMiB, budget_);
  EXPECT_GE(IdleMemory::bytes(), 15 * kMiB);
  ASSERT_TRUE(budget_->Take(10 * kMiB).ok());
  EXPECT_EQ(c_.bytes, 0u);
  EXPECT_LE(IdleMemory::bytes(), 10 * kMiB);
  budget_->Give(10 * kMiB);
}

TEST_F(KeptMemoryTest, ThePeakIsTheMostThatWasInUse) {
  Buffer* one = *pool_->Allocate(3 * kMiB);
  EXPECT_EQ(pool_->stats().peak, one->bytes);  // a buffer that was made for it
  one->Release();
  Use(kMiB, nullptr);
  EXPECT_EQ(pool_->stats().peak, 3 * kMiB);
  EXPECT_EQ(pool_->stats().in_use, 0u);
}

TEST_F(KeptMemoryTest, EveryPoolOfHostMemoryCountsForTheProcess) {
  const HostUse::Bytes before = HostUse::Read();
  Buffer* large = *pool_->Allocate(before.peak + kMiB, nullptr);
  Buffer* tensor = *MemoryPool::Host()->Allocate(2 * kMiB);
  const HostUse::Bytes most = HostUse::Read();
  EXPECT_EQ(most.now, before.now + large->bytes + tensor->bytes);
  EXPECT_EQ(most.peak, most.now);
  large->Release();
  Use(kMiB, budget_);
  EXPECT_EQ(HostUse::Read().now, before.now + tensor->bytes);
  tensor->Release();
  Buffer guest;
  guest.bytes = 100;
  guest.release = [](Buffer*) {};
  pool_->Lodge(&guest);
  EXPECT_EQ(HostUse::Read().now, before.now + 100);
  guest.Release();
  EXPECT_EQ(HostUse::Read().now, before.now);
  EXPECT_EQ(HostUse::Read().peak, most.peak);
  Counts device;
  MemoryPool* elsewhere = Pool(&device);
  Buffer* b = *elsewhere->Allocate(kMiB);
  EXPECT_EQ(HostUse::Read().now, before.now);
  b->Release();
  elsewhere->Close();
}

TEST(MemoryPoolTest, StaysBelowItsLimit) {
  Counts c;
  MemoryPool* pool = Pool(&c, 1024);
  Buffer* a = *pool->Allocate(512);
  auto refused = pool->Allocate(1024);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(refused.status()), HasSubstr("cannot allocate 1024 bytes of test memory: 512 of 1024 bytes are in use"));
  a->Release();
  Buffer* b = *pool->Allocate(1024);  // cached memory makes room
  EXPECT_LE(c.bytes, 1024u);
  b->Release();
  pool->Close();
}

TEST(MemoryPoolTest, SaysWhatWasMissingWhenMemoryIsOut) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  c.empty = true;
  EXPECT_THAT(Text(pool->Allocate(100).status()), HasSubstr("cannot allocate 100 bytes of test memory (0 bytes in use): empty"));
  EXPECT_EQ(pool->Allocate(~0ull).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->Allocate(1ull << 62).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->stats().held, 0u);
  pool->Close();
}

TEST(MemoryPoolTest, LivesUntilItsLastBufferIsBack) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  Buffer* b = *pool->Allocate(64);
  pool->Close();
  EXPECT_FALSE(c.gone);
  EXPECT_FALSE(pool->Allocate(128).ok());
  b->Release();
  EXPECT_TRUE(c.gone);
  EXPECT_EQ(c.freed, 1);
}

TEST(MemoryPoolTest, ServesThreads) {
  Counts c;
  MemoryPool* pool = Pool(&c);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([pool, i] {
      for (uint64_t k = 0; k < 1000; ++k) {
        Buffer* b = *pool->Allocate(64 + (k * 37) % 1000);
        static_cast<char*>(b->data)[0] = char(i);
        b->Release();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(pool->stats().in_use, 0u);
  pool->Close();
  EXPECT_EQ(c.allocated, c.freed);
}

TEST(MemoryPoolTest, HostMemoryIsAligned) {
  for (uint64_t bytes : {1ull, 1000ull, 5ull << 20}) {
    Buffer* b = *MemoryPool::Host()->Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data) % 64, 0u);
    b->Release();
  }
}

}  // namespace
}  // namespace thalweg
