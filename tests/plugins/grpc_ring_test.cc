// Rings: one side reads what the other writes, in order, with records of any size, when the ring is
// full, and across its end; invalid data is detected. The written records are the oracle.
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "ring.h"

namespace thalweg::grpc_transport {
namespace {

struct Memory {
  RingState state;
  alignas(8) char data[kRingBytes];
};

class RingTest : public ::testing::Test {
 protected:
  // Returns false if there is no room.
  bool Write(const std::string& record) {
    char* to = writer_.Begin();
    if (!to) return false;
    std::memcpy(to, record.data(), record.size());
    writer_.End(record.size());
    return true;
  }
  // Returns "" if there is no record.
  std::string Read() {
    const char* record;
    uint64_t bytes;
    if (!reader_.Front(&record, &bytes)) return "";
    std::string out(record, bytes);
    reader_.Pop();
    return out;
  }
  const std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  RingWriter writer_{&memory_->state, memory_->data};
  RingReader reader_{&memory_->state, memory_->data};
};

std::string Pattern(std::minstd_rand* random, uint64_t most) {
  std::string s(1 + (*random)() % most, '\0');
  for (char& c : s) c = char((*random)());
  return s;
}

TEST_F(RingTest, AnEmptyRingHasNothing) {
  EXPECT_EQ(Read(), "");
  EXPECT_FALSE(reader_.broken());
  EXPECT_FALSE(reader_.WriterWaits());
}

TEST_F(RingTest, RecordsComeInOrderOverManyLaps) {
  std::minstd_rand random(7);
  std::vector<std::string> inside;
  uint64_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    for (uint32_t n = uint32_t(random() % 8); n > 0; --n) {
      std::string record = Pattern(&random, round % 3 ? 100 : kRecord);
      if (!Write(record)) break;
      total += record.size();
      inside.push_back(std::move(record));
    }
    const size_t keep = random() % 4;
    while (inside.size() > keep) {
      ASSERT_EQ(Read(), inside.front());
      inside.erase(inside.begin());
    }
  }
  EXPECT_GT(total, 20 * kRingBytes);
}

// At each position in the ring: when the ring is empty, a record of any size fits.
TEST_F(RingTest, WhatIsEmptyTakesARecordWhereverItIs) {
  std::minstd_rand random(11);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(Write(std::string(1 + random() % kRecord, 'x'))) << i;
    uint64_t n = 0;
    while (i % 7 == 0 && Write(std::string(kRecord, 'y'))) ++n;
    ASSERT_TRUE(i % 7 || n >= kRingBytes / kRecord - 4) << i << ": " << n;  // nearly the whole ring
    ASSERT_EQ(Read()[0], 'x');
    for (; n > 0; --n) ASSERT_EQ(Read(), std::string(kRecord, 'y'));
    ASSERT_EQ(Read(), "");
    ASSERT_FALSE(reader_.broken());
  }
}

TEST_F(RingTest, AFullRingSaysWhenThereIsRoom) {
  int n = 0;
  while (Write(std::string(kRecord, char('a' + n)))) ++n;
  EXPECT_GE(n, int(kRingBytes / (kRecord + 8)) - 2);
  EXPECT_TRUE(writer_.Wait());
  EXPECT_FALSE(writer_.broken());
  for (int i = 0; i < n; ++i) ASSERT_EQ(Read(), std::string(kRecord, char('a' + i)));
  EXPECT_TRUE(reader_.WriterWaits());
  EXPECT_FALSE(reader_.WriterWaits());  // the writer is told once
  EXPECT_FALSE(writer_.Wait());         // there is room already
  EXPECT_TRUE(Write("more"));
  EXPECT_EQ(Read(), "more");
}

TEST_F(RingTest, ThreadsWriteAndReadAtOnce) {
  constexpr int kRecords = 60000;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::minstd_rand random(3);
    for (int i = 0; i < kRecords && !stop;) {
      std::minstd_rand before = random;
      const std::string record = Pattern(&random, i % 100 ? 60 : kRecord);
      if (Write(record)) {
        ++i;
        continue;
      }
      random = before;
      ASSERT_FALSE(writer_.broken());
      std::this_thread::yield();
    }
  });
  std::minstd_rand random(3);
  for (int i = 0; i < kRecords; ++i) {
    std::string record;
    while ((record = Read()).empty()) {
      if (reader_.broken()) break;
      std::this_thread::yield();
    }
    if (record != Pattern(&random, i % 100 ? 60 : kRecord)) {
      ADD_FAILURE() << "record " << i;
      break;
    }
  }
  stop = true;
  writer.join();
}

// A writer that died leaves complete records, and nothing of the incomplete one.
TEST_F(RingTest, WhatIsNotWholeIsNotThere) {
  ASSERT_TRUE(Write("whole"));
  char* to = writer_.Begin();
  ASSERT_NE(to, nullptr);
  std::memcpy(to, "half", 4);
  EXPECT_EQ(Read(), "whole");
  EXPECT_EQ(Read(), "");
  EXPECT_FALSE(reader_.broken());
}

TEST_F(RingTest, AWrittenPositionWithoutSenseIsNoticed) {
  for (const uint64_t at : {uint64_t{8}, uint64_t{9}, kRingBytes + 8, ~uint64_t{0}, uint64_t{1} << 63}) {
    RingReader reader(&memory_->state, memory_->data);
    memory_->state.written = at;
    const char* record;
    uint64_t bytes;
    EXPECT_FALSE(reader.Front(&record, &bytes)) << at;
    EXPECT_TRUE(reader.broken()) << at;
    memory_->state.written = 16;
    EXPECT_FALSE(reader.Front(&record, &bytes)) << at;  // the error stays
    EXPECT_TRUE(reader.broken()) << at;
  }
}

TEST_F(RingTest, ALengthWithoutSenseIsNoticed) {
  ASSERT_TRUE(Write(std::string(100, 'x')));
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{105}, kRecord, kRecord + 1, ~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63}) {
    RingReader reader(&memory_->state, memory_->data);
    std::memcpy(memory_->data, &bytes, sizeof bytes);
    const char* record;
    uint64_t got;
    EXPECT_FALSE(reader.Front(&record, &got)) << bytes;
    EXPECT_TRUE(reader.broken()) << bytes;
  }
}

TEST_F(RingTest, AReadPositionWithoutSenseIsNoticed) {
  for (const uint64_t at : {uint64_t{1}, uint64_t{1} << 40, ~uint64_t{0} - kRingBytes}) {
    RingWriter writer(&memory_->state, memory_->data);
    memory_->state.read = at;
    EXPECT_EQ(writer.Begin(), nullptr) << at;
    EXPECT_TRUE(writer.broken()) << at;
  }
}

// Another process may overwrite the ring meanwhile: all reads stay inside the ring, and the reader
// terminates.
TEST_F(RingTest, ScribblesDoNotLeadOutside) {
  std::minstd_rand random(5);
  for (int round = 0; round < 3000; ++round) {
    auto memory = std::make_unique<Memory>();
    RingReader reader(&memory->state, memory->data);
    for (int i = 0; i < 200; ++i) {
      const uint64_t word = random() % 3 ? random() % (2 * kRecord) : random() % 2 ? ~uint64_t{0} : uint64_t{random()} << 33;
      std::memcpy(memory->data + random() % (kRingBytes / 8) * 8, &word, 8);
    }
    for (uint64_t at = 0; at < 4096; at += 8) std::memcpy(memory->data + at, &at, 8);
    memory->state.skipped_at = random() % 2 ? random() % kRingBytes : 0;
    memory->state.written = random() % 2 ? random() % kRingBytes / 8 * 8 : random() % (2 * kRingBytes);
    const char* record;
    uint64_t bytes;
    int n = 0;
    for (; reader.Front(&record, &bytes) && n < 20000; ++n) {
      ASSERT_TRUE(record >= memory->data && bytes <= kRecord && record + bytes <= memory->data + kRingBytes);
      reader.Pop();
    }
    ASSERT_LT(n, 20000);
  }
}

}  // namespace
}  // namespace thalweg::grpc_transport
