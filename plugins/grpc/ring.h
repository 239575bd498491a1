// Ring: records that one process writes into shared memory and another one reads, in order. Neither
// side trusts the memory that the other can write: each keeps its own position outside of it, and
// copies the other's position and a record's length before it checks them. A record is contiguous;
// one that does not fit before the end begins at the start. Now and then a record for an empty ring
// also begins at the start, so that a mostly empty ring touches little memory and cache. Threads: a
// writer and a reader, each used by one thread at a time.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg::grpc_transport {

constexpr uint64_t kRingBytes = 128 << 10;  // of records and their length words
constexpr uint64_t kRecord = 8 << 10;       // most bytes of a record

// The positions of both sides, in bytes since the beginning.
struct RingState {
  alignas(64) std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> skipped_at{0};  // from this position on the rest of the lap is empty; 0: none
  alignas(64) std::atomic<uint64_t> read{0};
  std::atomic<uint32_t> waits{0};  // 1: the reader is to tell the writer when there is room
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

class RingWriter {
 public:
  // data: kRingBytes, aligned to 8.
  RingWriter(RingState* state, char* data) : state_(state), data_(data) {}
  // Returns the place of the next record, kRecord bytes. NULL if there is no room now, or if the
  // reader's position is invalid (broken).
  char* Begin();
  // Publishes the record of n bytes to the reader. REQUIRES: Begin, n > 0.
  void End(uint64_t n);
  // Called after Begin found no room. Returns true if the reader will report room; false if there
  // is some already.
  bool Wait();
  bool broken() const { return broken_; }

 private:
  uint64_t Room();
  void Skip(bool is_empty);
  RingState* const state_;
  char* const data_;
  uint64_t at_ = 0;
  uint64_t skipped_at_ = ~uint64_t{0}, skipped_to_ = 0;  // positions of the last skip in an empty ring
  bool broken_ = false;
};

class RingReader {
 public:
  RingReader(RingState* state, const char* data) : state_(state), data_(data) {}
  // Finds the oldest record, which stays in place until Pop. Returns false if there is none, or if
  // the writer's data are invalid (broken).
  bool Front(const char** out_record, uint64_t* out_bytes);
  // REQUIRES: Front returned true.
  void Pop();
  // Called after Pop. Returns true once if the writer waits for room and must be told.
  bool WriterWaits();
  bool broken() const { return broken_; }

 private:
  bool Broken();
  RingState* const state_;
  const char* const data_;
  uint64_t at_ = 0, next_ = 0;
  bool broken_ = false;
};

}  // namespace thalweg::grpc_transport
