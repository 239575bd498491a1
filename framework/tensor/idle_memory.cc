#include "framework/tensor/idle_memory.h"

#include <mutex>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "framework/tensor/buffer.h"

namespace thalweg {
namespace {

// Guards the assignment of records to pools. Held while pools are trimmed, so that none is deleted
// meanwhile. Acquired before any pool's lock.
std::mutex& Mutex() {
  static auto* mu = new std::mutex;  // never destroyed: pools may be deleted at exit
  return *mu;
}

// The heap retains memory that is freed in the middle of its arenas until malloc_trim.
void GiveHeapBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

IdleMemory::Kept* IdleMemory::Join(MemoryPool* pool) {
  std::lock_guard lock(Mutex());
  Kept* first = all_.load();
  for (Kept* k = first; k; k = k->next) {
    if (k->pool) continue;
    k->pool = pool;
    return k;
  }
  auto* made = new Kept;
  made->pool = pool;
  made->next = first;
  all_.store(made, std::memory_order_release);
  return made;
}

void IdleMemory::Leave(Kept* kept) {
  std::lock_guard lock(Mutex());
  kept->pool = nullptr;
  kept->bytes.store(0, std::memory_order_relaxed);
}

uint64_t IdleMemory::bytes() {
  uint64_t sum = freed_.load(std::memory_order_relaxed);
  for (const Kept* k = all_.load(std::memory_order_acquire); k; k = k->next) sum += k->bytes.load(std::memory_order_relaxed);
  return sum;
}

void IdleMemory::GiveBack(uint64_t most) {
  std::lock_guard lock(Mutex());
  uint64_t all = bytes();
  if (all <= most) return;  // another thread was first
  all -= freed_.exchange(0, std::memory_order_relaxed);
  for (Kept* k = all_.load(); k && all > most; k = k->next) {
    if (k->pool) all -= k->pool->TrimBy(all - most);
  }
  GiveHeapBack();
}

void IdleMemory::HeapKeepsAtMost(uint64_t most) {
  if (freed_.load(std::memory_order_relaxed) <= most) return;
  std::lock_guard lock(Mutex());
  if (freed_.exchange(0, std::memory_order_relaxed) > most) GiveHeapBack();
}

void IdleMemory::GiveBackAll() {
  constexpr uint64_t kWorthWhile = 1 << 20;  // walking the heap takes some hundred microseconds
  std::lock_guard lock(Mutex());
  uint64_t given = freed_.exchange(0, std::memory_order_relaxed);
  for (Kept* k = all_.load(); k; k = k->next) {
    if (k->pool) given += k->pool->TrimBy(UINT64_MAX);
  }
  if (given >= kWorthWhile) GiveHeapBack();
}

}  // namespace thalweg
