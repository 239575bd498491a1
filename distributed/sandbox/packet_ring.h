// PacketRing: packets that one process writes into shared memory and another process reads, in
// order. Neither side trusts the memory that the other can write: each keeps its own position
// outside of it, and copies a length before it checks it. A side that finds no packet, or no room,
// sets a flag in the memory before it sleeps; the other side is then told to ring. Threads: a
// writer and a reader, each used by one thread at a time; any thread may call `ready`.
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
  // Writes a packet of these parts, whole or not at all. Returns false if there is no room now, or
  // if the reader's position is invalid (broken). REQUIRES: the packet is at most half a ring long.
  bool Put(std::initializer_list<std::string_view> parts);
  // Returns true once if the reader sleeps and must be rung for the new packets.
  bool ReaderSleeps() { return Told(&ring_->state.reader_sleeps); }
  // Called before the writer sleeps. Returns false if there is already room for any packet.
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
  // Copies the oldest packet to `to` and returns its length, or 0 if there is none. A length above
  // `most`, zero or invalid breaks the ring.
  size_t Take(char* to, size_t most);
  bool ready() const { return ring_->state.written.load() != at_.load(std::memory_order_relaxed); }
  // Called before the reader sleeps. Returns false if there is already a packet.
  bool Sleep();
  void Awake() { ring_->state.reader_sleeps.store(0, std::memory_order_relaxed); }
  // Returns true once if the writer waits for room and must be rung for the packets taken.
  bool WriterWaits() { return RingWriter::Told(&ring_->state.writer_waits); }
  bool broken() const { return broken_; }

 private:
  void Copy(uint64_t from, char* to, size_t n) const;
  PacketRing* const ring_;
  std::atomic<uint64_t> at_{0};
  bool broken_ = false;
};

// Two rings, one for each direction, in memory that a descriptor names. The memory has no name, and
// its size is sealed.
class RingPair {
 public:
  // Returns a new close-on-exec descriptor. RESOURCE_EXHAUSTED.
  static StatusOr<int> Make();
  // The caller may close the descriptor afterwards. INVALID_ARGUMENT if it is not such memory.
  static StatusOr<std::unique_ptr<RingPair>> Map(int fd);
  ~RingPair();
  PacketRing* to_server() const { return &rings_[0]; }
  PacketRing* to_caller() const { return &rings_[1]; }

 private:
  explicit RingPair(PacketRing* rings) : rings_(rings) {}
  PacketRing* const rings_;
};

}  // namespace thalweg::distributed
