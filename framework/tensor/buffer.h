// Buffer: reference-counted memory. MemoryPool: allocates buffers and keeps freed ones for reuse,
// so that most allocations do not call the heap. Threads: any.
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
  uint64_t bytes = 0;                    // usable size
  bool read_only = false;                // shared with code outside the runtime; must never be written
  MemoryPool* pool = nullptr;            // the pool that takes the buffer back; NULL: `release` is called
  void (*release)(Buffer* b) = nullptr;  // set together with a pool: the buffer is a guest of that pool
  void* user = nullptr;                  // argument for `release`
  MemoryBudget* budget = nullptr;        // the account that pays for it; NULL: none
  Buffer* next = nullptr;                // in the pool's free list

  void Retain() { refs.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) Free();
  }
  // Charges the buffer to the budget until it is back in its pool. Takes over the caller's
  // reference to the budget. REQUIRES: pool.
  void ChargeTo(MemoryBudget* to);
  bool Unique() const { return refs.load(std::memory_order_acquire) == 1; }
  // Returns the pool that the buffer came from; NULL if none.
  MemoryPool* home() const { return budget ? static_cast<MemoryPool*>(user) : pool; }

 private:
  void Free();
  static void FreeCharged(Buffer* b);
};

// The source of a pool's memory, such as a device.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  virtual StatusOr<void*> Allocate(uint64_t bytes) = 0;
  virtual void Free(void* data, uint64_t bytes) = 0;
  // Returns the largest size in bytes that one Allocate can give; 0 means no such limit.
  virtual uint64_t largest() const { return 0; }
};

// Free lists by size class (four per power of two) over raw memory. If the raw memory pools by
// itself, the pool only counts. A pool outlives its buffers: it is deleted after Close, when the
// last buffer is back.
// The amount of cached memory is bounded when a buffer must be made, and never when one is found in
// a free list: see MakeRoom.
class MemoryPool {
 public:
  struct Stats {
    uint64_t in_use = 0, peak = 0, held = 0, limit = 0;
  };
  // limit: the most bytes held from `raw` at once; 0 means no limit. keeps: returned buffers are
  // cached for reuse. The caller owns the pool until Close.
  static MemoryPool* Create(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit = 0, bool keeps = true);
  // Returns the process-wide pool of host memory.
  static MemoryPool* Host();
  // Registers the pool's memory as host memory: HostUse counts the buffers in use, and IdleMemory
  // the cached ones. REQUIRES: called before the pool is used.
  void CountAsHostMemory() { idle_ = IdleMemory::Join(this); }

  // Returns a buffer of at least `bytes` (if 0, data is not NULL but must not be read).
  // RESOURCE_EXHAUSTED names the pool, the size and the use.
  StatusOr<Buffer*> Allocate(uint64_t bytes);
  // Also charges the buffer to the budget, unless the budget is NULL.
  StatusOr<Buffer*> Allocate(uint64_t bytes, MemoryBudget* budget);
  // Registers a buffer whose memory belongs to somebody else but is in the same place as the
  // pool's. It counts as in use, against no limit, until its `release` is called.
  void Lodge(Buffer* guest);
  Stats stats() const;
  // Returns all cached memory to the device.
  void Trim() { TrimBy(UINT64_MAX); }
  // Returns at least `bytes` of cached memory to the device, or all there is, the least recently
  // requested size class first. The result is the number of bytes returned.
  uint64_t TrimBy(uint64_t bytes);
  // Refuses further allocations that need new memory; deletes the pool when its last buffer is
  // returned.
  void Close();
  // Records which Device the memory belongs to, while that device exists; NULL: no particular one.
  void SetPlace(void* place) { place_.store(place, std::memory_order_release); }
  void* place() const { return place_.load(std::memory_order_acquire); }
  const std::string& name() const { return name_; }

 private:
  friend struct Buffer;
  MemoryPool(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps);
  ~MemoryPool();
  void CountUse(uint64_t bytes);
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
  uint32_t asked_[kClasses] = {};  // value of made_ when a buffer of the class was last requested
  uint32_t made_ = 0;
  Stats stats_;
  uint64_t kept_ = 0;                 // bytes in the free lists
  uint64_t recent_peak_ = 0;          // recent maximum of the bytes in use
  IdleMemory::Kept* idle_ = nullptr;  // NULL: not host memory
  uint64_t live_ = 0;
  bool closed_ = false;
};

}  // namespace thalweg
