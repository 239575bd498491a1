// Buffer: reference-counted memory, and MemoryPool, which hands buffers out and takes them back without calling the heap.
// Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/idle_memory.h"

namespace thalweg {

class MemoryBudget;
class MemoryPool;

struct Buffer {
  std::atomic<int32_t> refs{1};
  uint32_t size_class = 0;
  void* data = nullptr;                  // host or device address, or the device's memory handle
  uint64_t bytes = 0;                    // usable
  bool read_only = false;                // somebody outside sees it: never to be written to
  MemoryPool* pool = nullptr;            // where it goes back to; NULL: `release` is called
  void (*release)(Buffer* b) = nullptr;  // with a pool: it is a guest there
  void* user = nullptr;                  // for release
  MemoryBudget* budget = nullptr;        // what it counts towards; NULL: nothing
  Buffer* next = nullptr;                // in the pool's free list

  void Retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }
  // Counts towards the budget, whose reference is taken, until it is back in its pool. REQUIRES: pool.
  void ChargeTo(MemoryBudget* to);
  bool Unique() const { return refs.load(std::memory_order_acquire) == 1; }
  // The pool that it came from; NULL: none.
  MemoryPool* home() const { return budget ? static_cast<MemoryPool*>(user) : pool; }

 private:
  void Free();
  static void FreeCharged(Buffer* b);
};

// Raw memory, as a device gives it.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  virtual StatusOr<void*> Allocate(uint64_t bytes) = 0;
  virtual void Free(void* data, uint64_t bytes) = 0;
  // Bytes that Allocate can give at once; 0: no limit of its own.
  virtual uint64_t largest() const { return 0; }
};

// Free lists by size class (four per power of two) over raw memory, or nothing but counts where that pools itself. A pool outlives its
// buffers: it is deleted when closed and the last buffer is back.
// What is kept for later is bounded where a buffer has to be made, and never where one is found: see MakeRoom.
class MemoryPool {
 public:
  struct Stats {
    uint64_t in_use = 0, peak = 0, held = 0, limit = 0;
  };
  // limit: bytes that may be held from `raw` at once; 0: no limit. keeps: buffers that come back are kept for the next. Owned by the
  // caller until Close.
  static MemoryPool* Create(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit = 0, bool keeps = true);
  // The process's own host memory.
  static MemoryPool* Host();
  // What it keeps is host memory, and counts as idle. Before it is used.
  void CountAsIdle() { idle_ = IdleMemory::Join(this); }

  // At least `bytes` (0 is fine: data is then not NULL but must not be read). RESOURCE_EXHAUSTED names the pool, the size and the use.
  StatusOr<Buffer*> Allocate(uint64_t bytes);
  // The same, charged to the budget unless that is NULL.
  StatusOr<Buffer*> Allocate(uint64_t bytes, MemoryBudget* budget);
  // Memory of the same place that is somebody else's stays here until the buffer's `release` has it back; counted as in use, against no
  // limit.
  void Lodge(Buffer* guest);
  Stats stats() const;
  // Gives cached memory back to the device.
  void Trim() { TrimBy(UINT64_MAX); }
  // So much of it, or all that there is: first what has not been asked for the longest. Answers how much it was.
  uint64_t TrimBy(uint64_t bytes);
  // No more allocations; deletes the pool when its last buffer returns.
  void Close();
  // Whose memory it is: a Device, for as long as that is there; NULL: nobody's in particular.
  void SetPlace(void* place) { place_.store(place, std::memory_order_release); }
  void* place() const { return place_.load(std::memory_order_acquire); }
  const std::string& name() const { return name_; }

 private:
  friend struct Buffer;
  MemoryPool(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps);
  ~MemoryPool();
  void Put(Buffer* b);
  void MakeRoom(uint64_t size, const MemoryBudget* budget);
  StatusOr<Buffer*> Allocate(uint64_t bytes, uint32_t size_class, uint64_t size, const MemoryBudget* budget);
  StatusOr<uint64_t> SizeOf(uint64_t bytes, uint32_t size_class) const;
  void Keep(uint64_t bytes) {
    kept_ = bytes;
    if (idle_) idle_->bytes.store(bytes, std::memory_order_relaxed);
  }

  static constexpr uint32_t kClasses = 4 * 48;
  std::unique_ptr<RawMemory> raw_;
  std::string name_;
  std::atomic<void*> place_{nullptr};
  const bool keeps_;
  mutable std::mutex mu_;
  Buffer* free_[kClasses] = {};
  uint32_t asked_[kClasses] = {};  // how many buffers had been made when one of the class was last asked for
  uint32_t made_ = 0;
  Stats stats_;
  uint64_t kept_ = 0;         // bytes in the free lists
  uint64_t recent_peak_ = 0;  // of what was in use
  IdleMemory::Kept* idle_ = nullptr;
  uint64_t live_ = 0;
  bool closed_ = false;
};

}  // namespace thalweg
