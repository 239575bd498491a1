#include "framework/tensor/texts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "framework/tensor/memory_budget.h"

namespace thalweg {
namespace {

// Returns the number of this thread, which selects its list of blocks.
uint32_t ThreadNumber() {
  static std::atomic<uint32_t> last{0};
  thread_local const uint32_t mine = last.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

struct Texts::Piece {
  Piece* next;
  uint64_t size;
  std::atomic<uint64_t> used;  // may exceed the size after a request that did not fit
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

// The overhead of malloc per block, in bytes.
constexpr uint64_t kBlock = 16;

StatusOr<void*> Texts::Allocate(uint64_t bytes, MemoryBudget* budget) {
  if (budget) RETURN_IF_ERROR(budget->Take(bytes + kBlock));
  void* memory = std::malloc(bytes);
  if (!memory) {
    if (budget) budget->Give(bytes + kBlock);
    return ResourceExhausted("out of host memory for a string of ", bytes, " bytes");
  }
  bytes_.fetch_add(bytes + kBlock, std::memory_order_relaxed);
  return memory;
}

void Texts::Release(void* memory, uint64_t bytes, MemoryBudget* budget) {
  std::free(memory);
  bytes_.fetch_sub(bytes + kBlock, std::memory_order_relaxed);
  if (budget) budget->Give(bytes + kBlock);
}

StatusOr<char*> Texts::Place(uint64_t bytes, uint64_t count, MemoryBudget* budget) {
  constexpr uint64_t kExpected = 16, kFirst = 1 << 14, kMost = 1 << 20;
  std::atomic<Piece*>& latest = latest_[ThreadNumber() % kLists];
  Piece* piece = latest.load(std::memory_order_acquire);
  for (;;) {
    if (piece) {
      const uint64_t at = piece->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= piece->size) return piece->bytes() + at;
    }
    const uint64_t size = std::max(bytes, piece ? std::min(2 * piece->size, kMost) : std::min((count - 1) * kExpected, kFirst));
    ASSIGN_OR_RETURN(void* memory, Allocate(sizeof(Piece) + size, budget));
    auto* more = new (memory) Piece{piece, size, {bytes}};
    if (latest.compare_exchange_strong(piece, more, std::memory_order_acq_rel)) return more->bytes();
    Release(memory, sizeof(Piece) + size, budget);  // another thread of the same list was first
  }
}

// The block is preceded by its size.
StatusOr<char*> Texts::OwnBlock(uint64_t bytes, MemoryBudget* budget) {
  ASSIGN_OR_RETURN(void* memory, Allocate(sizeof(uint64_t) + bytes, budget));
  *static_cast<uint64_t*>(memory) = bytes;
  own_.fetch_add(1, std::memory_order_relaxed);
  return static_cast<char*>(memory) + sizeof(uint64_t);
}

bool Texts::Holds(const char* bytes) const {
  for (const std::atomic<Piece*>& list : latest_) {
    for (Piece* p = list.load(std::memory_order_acquire); p; p = p->next) {
      if (bytes >= p->bytes() && bytes < p->bytes() + p->size) return true;
    }
  }
  return false;
}

void Texts::Drop(const char* bytes, MemoryBudget* budget) {
  if (!bytes || own_.load(std::memory_order_relaxed) == 0 || Holds(bytes)) return;
  auto* block = reinterpret_cast<uint64_t*>(const_cast<char*>(bytes)) - 1;
  Release(block, sizeof(uint64_t) + *block, budget);
  own_.fetch_sub(1, std::memory_order_relaxed);
}

Status Texts::Set(tw_string* s, std::string_view text, uint64_t count, MemoryBudget* budget) {
  constexpr uint64_t kLong = 1 << 12;
  auto* old = const_cast<char*>(s->data);
  if (text.size() <= s->size && (s->size <= kLong || text.size() > s->size / 2)) {
    if (!text.empty()) std::memmove(old, text.data(), text.size());
    s->size = text.size();  // the block is kept, so that a longer text finds that there was one
    return Status();
  }
  const bool own = old || text.size() > kLong;
  ASSIGN_OR_RETURN(char* place, own ? OwnBlock(text.size(), budget) : Place(text.size(), count, budget));
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  Drop(old, budget);
  *s = {place, text.size()};
  return Status();
}

void Texts::Free(const tw_string* all, uint64_t count) {
  for (uint64_t i = 0; i < count && own_.load(std::memory_order_relaxed) > 0; ++i) Drop(all[i].data, nullptr);
  for (std::atomic<Piece*>& list : latest_) {
    for (Piece* p = list.load(std::memory_order_acquire); p;) std::free(std::exchange(p, p->next));
  }
}

}  // namespace thalweg
