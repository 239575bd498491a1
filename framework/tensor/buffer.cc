#include "framework/tensor/buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "framework/tensor/host_use.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {
namespace {

constexpr uint64_t kSmallest = 64;

// There are four classes per power of two: 64, 80, 96, 112, 128, 160, ...
uint32_t ClassOf(uint64_t bytes) {
  if (bytes <= kSmallest) return 0;
  uint32_t log = 63u - uint32_t(std::countl_zero(bytes - 1));
  uint64_t base = uint64_t{1} << log, step = base >> 2;
  return (log - 6) * 4 + uint32_t((bytes - base + step - 1) / step);
}
uint64_t ClassBytes(uint32_t c) {
  uint64_t base = kSmallest << (c / 4);
  return base + (c % 4) * (base >> 2);
}

class HostMemory final : public RawMemory {
 public:
  StatusOr<void*> Allocate(uint64_t bytes) override {
    constexpr uint64_t kHuge = 2u << 20;
    uint64_t align = bytes >= 2 * kHuge ? kHuge : 64;
    if (bytes > (uint64_t{1} << 62)) return ResourceExhausted("out of host memory");
    void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (!p) return ResourceExhausted("out of host memory");
    // This is advice only: if there are no huge pages, the system uses ordinary ones.
    if (align == kHuge) madvise(p, bytes, MADV_HUGEPAGE);
    return p;
  }
  void Free(void* data, uint64_t) override { std::free(data); }
};

}  // namespace

void Buffer::Free() {
  if (pool) {
    pool->Put(this);
  } else {
    release(this);
  }
}

// While a buffer is charged, `user` holds its pool and `release` does the accounting. Uncharged
// buffers thus pay nothing for it.
void Buffer::ChargeTo(MemoryBudget* to) {
  budget = to;
  user = std::exchange(pool, nullptr);
  release = FreeCharged;
}

void Buffer::FreeCharged(Buffer* b) {
  MemoryBudget* budget = std::exchange(b->budget, nullptr);
  budget->GiveBuffer(b->bytes + MemoryBudget::kPerBuffer);
  budget->Release();
  b->pool = static_cast<MemoryPool*>(std::exchange(b->user, nullptr));
  b->release = nullptr;
  b->pool->Put(b);
}

MemoryPool::MemoryPool(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps)
    : raw_(std::move(raw)), name_(std::move(name)), keeps_(keeps) {
  stats_.limit = limit;
}

MemoryPool::~MemoryPool() {
  Trim();
  if (idle_) IdleMemory::Leave(idle_);
}

MemoryPool* MemoryPool::Create(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps) {
  return new MemoryPool(std::move(raw), std::move(name), limit, keeps);
}

MemoryPool* MemoryPool::Host() {
  static MemoryPool* pool = [] {
    MemoryPool* made = Create(std::make_unique<HostMemory>(), "host");  // never deleted by Host: any tensor may use it
    made->CountAsHostMemory();
    return made;
  }();
  return pool;
}

// Returns the size of the buffer that serves a request of `bytes`.
StatusOr<uint64_t> MemoryPool::SizeOf(uint64_t bytes, uint32_t size_class) const {
  if (size_class >= kClasses) return ResourceExhausted("cannot allocate ", bytes, " bytes of ", name_, " memory");
  const uint64_t size = keeps_ ? ClassBytes(size_class) : std::max((bytes + kSmallest - 1) / kSmallest * kSmallest, kSmallest);
  const uint64_t largest = raw_->largest();
  if (!largest || size <= largest) return size;
  if (bytes > largest) {
    return ResourceExhausted("cannot allocate ", bytes, " bytes of ", name_, " memory: it gives at most ", largest, " bytes at once");
  }
  return largest;  // all buffers of this class have this size
}

// Called before a buffer is made. Trims cached memory to the recent maximum of bytes in use, and to
// the rest of the asking account's limit. So steps of ever new sizes do not fill the memory with
// unused buffers, while steps that alternate between two sizes find the buffers that they need.
void MemoryPool::MakeRoom(uint64_t size, const MemoryBudget* budget) {
  constexpr uint64_t kAlways = 64u << 20, kRecent = 512;
  if (!idle_) return;
  uint64_t kept, most;
  {
    std::lock_guard lock(mu_);
    recent_peak_ = std::max(recent_peak_, stats_.in_use + size);
    if (++made_ % kRecent == 0) recent_peak_ = stats_.in_use + size;
    kept = kept_;
    most = std::max(recent_peak_, kAlways);
  }
  if (kept > most) {
    IdleMemory::Freed(TrimBy(kept - most));
    IdleMemory::HeapKeepsAtMost(most);
  }
  if (budget) IdleMemory::KeepAtMost(budget->left());
}

StatusOr<Buffer*> MemoryPool::Allocate(uint64_t bytes) {
  const uint32_t c = ClassOf(bytes);
  ASSIGN_OR_RETURN(const uint64_t size, SizeOf(bytes, c));
  return Allocate(bytes, c, size, nullptr);
}

StatusOr<Buffer*> MemoryPool::Allocate(uint64_t bytes, MemoryBudget* budget) {
  if (!budget) return Allocate(bytes);
  const uint32_t c = ClassOf(bytes);
  ASSIGN_OR_RETURN(const uint64_t size, SizeOf(bytes, c));
  RETURN_IF_ERROR(budget->TakeBuffer(size + MemoryBudget::kPerBuffer));
  auto b = Allocate(bytes, c, size, budget);
  if (!b.ok()) {
    budget->GiveBuffer(size + MemoryBudget::kPerBuffer);
    return b;
  }
  budget->Retain();
  (*b)->ChargeTo(budget);
  return b;
}

StatusOr<Buffer*> MemoryPool::Allocate(uint64_t bytes, uint32_t c, uint64_t size, const MemoryBudget* budget) {
  std::unique_lock lock(mu_);
  asked_[c] = made_;
  Buffer* b = free_[c];
  if (b) {
    free_[c] = b->next;
    Keep(kept_ - b->bytes);
  } else {
    if (closed_) return FailedPrecondition(name_, " memory is closed");
    lock.unlock();
    MakeRoom(size, budget);
    lock.lock();
    if (stats_.limit && stats_.held + size > stats_.limit) {
      lock.unlock();
      Trim();
      lock.lock();
      if (stats_.held + size > stats_.limit) {
        return ResourceExhausted("cannot allocate ", bytes, " bytes of ", name_, " memory: ", stats_.in_use, " of ", stats_.limit,
                                 " bytes are in use; raise the limit or use less");
      }
    }
    stats_.held += size;
    lock.unlock();
    auto raw = raw_->Allocate(size);
    if (!raw.ok()) {
      Trim();  // freeing cached memory may make the allocation possible
      raw = raw_->Allocate(size);
    }
    b = raw.ok() ? new (std::nothrow) Buffer : nullptr;
    if (!b && raw.ok()) {
      raw_->Free(*raw, size);
      raw = ResourceExhausted("out of host memory");
    }
    lock.lock();
    if (!b) {
      stats_.held -= size;
      return Prefix(raw.status(), StrCat("cannot allocate ", bytes, " bytes of ", name_, " memory (", stats_.in_use, " bytes in use):"));
    }
    b->data = *raw;
    b->bytes = size;
    b->size_class = c;
    b->pool = this;
  }
  b->refs.store(1, std::memory_order_relaxed);
  b->next = nullptr;
  CountUse(size);
  recent_peak_ = std::max(recent_peak_, stats_.in_use);
  return b;
}

// Counts one more buffer that is in use. REQUIRES: the pool's lock.
void MemoryPool::CountUse(uint64_t bytes) {
  ++live_;
  stats_.in_use += bytes;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  if (idle_) HostUse::Take(bytes);
}

void MemoryPool::Lodge(Buffer* guest) {
  guest->pool = this;
  std::lock_guard lock(mu_);
  CountUse(guest->bytes);
}

void MemoryPool::Put(Buffer* b) {
  bool last;
  {
    std::unique_lock lock(mu_);
    stats_.in_use -= b->bytes;
    if (idle_) HostUse::Give(b->bytes);
    if (b->release) {
      lock.unlock();
      b->release(b);
      lock.lock();
    } else if (keeps_) {
      b->next = free_[b->size_class];
      free_[b->size_class] = b;
      Keep(kept_ + b->bytes);
    } else {
      stats_.held -= b->bytes;
      lock.unlock();
      raw_->Free(b->data, b->bytes);  // still counted as live, so the pool is not deleted
      delete b;
      lock.lock();
    }
    --live_;
    last = closed_ && live_ == 0;
  }
  if (last) delete this;
}

MemoryPool::Stats MemoryPool::stats() const {
  std::lock_guard lock(mu_);
  return stats_;
}

uint64_t MemoryPool::TrimBy(uint64_t bytes) {
  Buffer* all = nullptr;
  uint64_t given = 0;
  {
    std::lock_guard lock(mu_);
    while (given < bytes && kept_ > 0) {
      uint32_t oldest = kClasses;
      for (uint32_t c = 0; c < kClasses; ++c) {
        if (free_[c] && (oldest == kClasses || made_ - asked_[c] > made_ - asked_[oldest])) oldest = c;
      }
      if (oldest == kClasses) break;
      for (Buffer*& head = free_[oldest]; head && given < bytes;) {
        Buffer* b = head;
        head = b->next;
        stats_.held -= b->bytes;
        given += b->bytes;
        Keep(kept_ - b->bytes);
        b->next = all;
        all = b;
      }
    }
  }
  while (all) {
    Buffer* b = all;
    all = b->next;
    raw_->Free(b->data, b->bytes);
    delete b;
  }
  return given;
}

void MemoryPool::Close() {
  bool last;
  {
    std::lock_guard lock(mu_);
    closed_ = true;
    last = live_ == 0;
  }
  if (last) delete this;
}

}  // namespace thalweg
