// PacketRing: packets that one process writes into shared memory and another process reads, in order. Neither trusts what the other can
// write: each keeps its own position outside of that memory, and copies a length before it judges it. Who finds nothing to read, or no
// room, says so there before it sleeps; the other side is then told to ring. Threads: a writer and a reader, each used by one thread at a
// time, but for `ready`, which any thread may ask.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg::distributed {

constexpr size_t kRingBytes = 256 << 10;

struct RingState {
  alignas(64) std::atomic<uint64_t> written{0};  // bytes since the beginning
  std::atomic<uint32_t> reader_sleeps{0};
  alignas(64) std::atomic<uint64_t> read{0};
  std::atomic<uint32_t> writer_waits{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

struct PacketRing {
  RingState state;
  alignas(64) char data[kRingBytes];
};

class RingWriter {
 public:
  explicit RingWriter(PacketRing* ring) : ring_(ring) {}
  // A packet of these parts, whole or not at all. False: there is no room now, or what says so makes no sense (broken).
  // REQUIRES: it is no longer than half a ring.
  bool Put(std::initializer_list<std::string_view> parts);
  // True, once: the reader sleeps and has to be rung for what was put.
  bool ReaderSleeps() { return Told(&ring_->state.reader_sleeps); }
  // Before the writer sleeps. False: there is room for any packet already.
  bool WaitForRoom();
  bool broken() const { return broken_; }

 private:
  static bool Told(std::atomic<uint32_t>* sign) { return sign->load() != 0 && sign->exchange(0) != 0; }
  uint64_t Room();
  void Copy(std::string_view part);
  friend class RingReader;
  PacketRing* const ring_;
  uint64_t at_ = 0;
  bool broken_ = false;
};

class RingReader {
 public:
  explicit RingReader(PacketRing* ring) : ring_(ring) {}
  // Copies the oldest packet there; its length. 0: there is none. What is longer than `most`, empty or makes no sense breaks the ring.
  size_t Take(char* to, size_t most);
  bool ready() const { return ring_->state.written.load() != at_.load(std::memory_order_relaxed); }
  // Before the reader sleeps. False: there is a packet already.
  bool Sleep();
  void Awake() { ring_->state.reader_sleeps.store(0, std::memory_order_relaxed); }
  // True, once: the writer waits for room and has to be rung for what was taken.
  bool WriterWaits() { return RingWriter::Told(&ring_->state.writer_waits); }
  bool broken() const { return broken_; }

 private:
  void Copy(uint64_t from, char* to, size_t n) const;
  PacketRing* const ring_;
  std::atomic<uint64_t> at_{0};
  bool broken_ = false;
};

// Two rings in memory that a descriptor names, one for each direction. The memory has neither a name nor another size, ever.
class RingPair {
 public:
  // A new descriptor, closed when a program is executed. RESOURCE_EXHAUSTED.
  static StatusOr<int> Make();
  // The descriptor may be closed afterwards. INVALID_ARGUMENT: it is no such memory.
  static StatusOr<std::unique_ptr<RingPair>> Map(int fd);
  ~RingPair();
  PacketRing* to_server() const { return &rings_[0]; }
  PacketRing* to_caller() const { return &rings_[1]; }

 private:
  explicit RingPair(PacketRing* rings) : rings_(rings) {}
  PacketRing* const rings_;
};

}  // namespace thalweg::distributed
