// Ring: records that one process writes into shared memory and another one reads, in order. Neither trusts what the other one can write:
// the own position is remembered outside of it, and what says how far the other side is, or how long a record is, is copied before it is
// looked at. A record lies in one piece; what does not fit before the end begins at the start, and so does what comes into an empty ring
// now and then, so that what is seldom full stays small, in memory and in caches. Threads: a writer and a reader, each used by one thread
// at a time.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg::grpc_transport {

constexpr uint64_t kRingBytes = 128 << 10;  // of records and what says how long they are
constexpr uint64_t kRecord = 8 << 10;       // bytes of one, at most

// How far both are, in bytes since the beginning.
struct RingState {
  alignas(64) std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> skipped_at{0};  // from there on the rest of the lap is empty; 0: nowhere
  alignas(64) std::atomic<uint64_t> read{0};
  std::atomic<uint32_t> waits{0};  // 1: the writer is to be told of room
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

class RingWriter {
 public:
  // data: kRingBytes, at an address that 8 divides.
  RingWriter(RingState* state, char* data) : state_(state), data_(data) {}
  // Where the next record goes, kRecord bytes. NULL: there is no room now, or what says so makes no sense (broken).
  char* Begin();
  // The record is so long: the reader may have it. REQUIRES: Begin, n > 0.
  void End(uint64_t n);
  // After Begin found no room: true: the reader will say when there is some; false: there is some already.
  bool Wait();
  bool broken() const { return broken_; }

 private:
  uint64_t Room();
  void Skip(bool is_empty);
  RingState* const state_;
  char* const data_;
  uint64_t at_ = 0;
  uint64_t skipped_at_ = ~uint64_t{0}, skipped_to_ = 0;  // the last time that the ring was empty
  bool broken_ = false;
};

class RingReader {
 public:
  RingReader(RingState* state, const char* data) : state_(state), data_(data) {}
  // The oldest record, which stays where it is until Pop. False: there is none, or what says so makes no sense (broken).
  bool Front(const char** out_record, uint64_t* out_bytes);
  // REQUIRES: Front was true.
  void Pop();
  // After some: true, once: the writer waits for room, and has to be told.
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
