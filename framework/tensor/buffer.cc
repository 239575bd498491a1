#include "framework/tensor/buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "framework/tensor/memory_budget.h"

namespace thalweg {
namespace {

constexpr uint64_t kSmallest = 64;

// Four classes per power of two: 64, 80, 96, 112, 128, 160, ...
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
    // Advice only: where huge pages are not to be had, ordinary ones serve.
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

// The pool stands aside while the buffer is charged, so that buffers that are not pay nothing for the difference.
void Buffer::ChargeTo(MemoryBudget* to) {
  budget = to;
  user = std::exchange(pool, nullptr);
  release = FreeCharged;
}

void Buffer::FreeCharged(Buffer* b) {
  MemoryBudget* budget = std::exchange(b->budget, nullptr);
  budget->Give(b->bytes);
  budget->Release();
  b->pool = static_cast<MemoryPool*>(std::exchange(b->user, nullptr));
  b->release = nullptr;
  b->pool->Put(b);
}

MemoryPool::MemoryPool(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps)
    : raw_(std::move(raw)), name_(std::move(name)), keeps_(keeps) {
  stats_.limit = limit;
}

MemoryPool::~MemoryPool() { Trim(); }

MemoryPool* MemoryPool::Create(std::unique_ptr<RawMemory> raw, std::string name, uint64_t limit, bool keeps) {
  return new MemoryPool(std::move(raw), std::move(name), limit, keeps);
}

MemoryPool* MemoryPool::Host() {
  static MemoryPool* pool = Create(std::make_unique<HostMemory>(), "host");  // lives as long as any tensor might
  return pool;
}

StatusOr<Buffer*> MemoryPool::Allocate(uint64_t bytes) {
  uint32_t c = ClassOf(bytes);
  if (c >= kClasses) return ResourceExhausted("cannot allocate ", bytes, " bytes of ", name_, " memory");
  uint64_t size = keeps_ ? ClassBytes(c) : std::max((bytes + kSmallest - 1) / kSmallest * kSmallest, kSmallest);
  if (uint64_t largest = raw_->largest(); largest && size > largest) {
    if (bytes > largest) {
      return ResourceExhausted("cannot allocate ", bytes, " bytes of ", name_, " memory: it gives at most ", largest, " bytes at once");
    }
    size = largest;  // all buffers of this class then are of this size
  }
  std::unique_lock lock(mu_);
  Buffer* b = free_[c];
  if (b) {
    free_[c] = b->next;
  } else {
    if (closed_) return FailedPrecondition(name_, " memory is closed");
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
      Trim();  // memory that we only keep for later may be what is missing
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
  ++live_;
  stats_.in_use += size;
  if (stats_.in_use > stats_.peak) stats_.peak = stats_.in_use;
  return b;
}

StatusOr<Buffer*> MemoryPool::Allocate(uint64_t bytes, MemoryBudget* budget) {
  if (!budget) return Allocate(bytes);
  RETURN_IF_ERROR(budget->Check(bytes));
  ASSIGN_OR_RETURN(Buffer * b, Allocate(bytes));
  Status s = budget->Charge(b);
  if (s.ok()) return b;
  b->Release();
  return s;
}

void MemoryPool::Lodge(Buffer* guest) {
  guest->pool = this;
  std::lock_guard lock(mu_);
  ++live_;
  stats_.in_use += guest->bytes;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
}

void MemoryPool::Put(Buffer* b) {
  bool last;
  {
    std::unique_lock lock(mu_);
    stats_.in_use -= b->bytes;
    if (b->release) {
      lock.unlock();
      b->release(b);
      lock.lock();
    } else if (keeps_) {
      b->next = free_[b->size_class];
      free_[b->size_class] = b;
    } else {
      stats_.held -= b->bytes;
      lock.unlock();
      raw_->Free(b->data, b->bytes);  // still counted as live, so the pool stays
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

void MemoryPool::Trim() {
  Buffer* all = nullptr;
  {
    std::lock_guard lock(mu_);
    for (auto& head : free_) {
      while (head) {
        Buffer* b = head;
        head = b->next;
        stats_.held -= b->bytes;
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
