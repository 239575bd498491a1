#include "framework/tensor/texts.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace thalweg {
namespace {

// Which list of pieces this thread takes from.
uint32_t ThreadNumber() {
  static std::atomic<uint32_t> last{0};
  thread_local const uint32_t mine = last.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

struct Texts::Piece {
  Piece* next;
  uint64_t size;
  std::atomic<uint64_t> used;  // may be more than the size, where somebody asked in vain
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

char* Texts::Place(uint64_t bytes, uint64_t count) {
  constexpr uint64_t kExpected = 16, kFirst = 1 << 14, kMost = 1 << 20;
  std::atomic<Piece*>& latest = latest_[ThreadNumber() % kLists];
  Piece* piece = latest.load(std::memory_order_acquire);
  for (;;) {
    if (piece) {
      const uint64_t at = piece->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= piece->size) return piece->bytes() + at;
    }
    const uint64_t size = std::max(bytes, piece ? std::min(2 * piece->size, kMost) : std::min((count - 1) * kExpected, kFirst));
    void* memory = std::malloc(sizeof(Piece) + size);
    if (!memory) return nullptr;
    auto* more = new (memory) Piece{piece, size, {bytes}};
    if (latest.compare_exchange_strong(piece, more, std::memory_order_acq_rel)) return more->bytes();
    std::free(memory);  // another thread of the same list was first
  }
}

bool Texts::Holds(const char* bytes) const {
  for (const std::atomic<Piece*>& list : latest_) {
    for (Piece* p = list.load(std::memory_order_acquire); p; p = p->next) {
      if (bytes >= p->bytes() && bytes < p->bytes() + p->size) return true;
    }
  }
  return false;
}

void Texts::Drop(const char* bytes) {
  if (!bytes || own_.load(std::memory_order_relaxed) == 0 || Holds(bytes)) return;
  std::free(const_cast<char*>(bytes));
  own_.fetch_sub(1, std::memory_order_relaxed);
}

bool Texts::Set(tw_string* s, std::string_view text, uint64_t count) {
  constexpr uint64_t kLong = 1 << 12;
  auto* old = const_cast<char*>(s->data);
  if (text.size() <= s->size && (s->size <= kLong || text.size() > s->size / 2)) {
    if (!text.empty()) std::memmove(old, text.data(), text.size());
    s->size = text.size();  // the place stays, so that a longer text finds that there was one
    return true;
  }
  const bool own = old || text.size() > kLong;
  char* place = own ? static_cast<char*>(std::malloc(std::max<size_t>(text.size(), 1))) : Place(text.size(), count);
  if (!place) return false;
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  Drop(old);
  if (own) own_.fetch_add(1, std::memory_order_relaxed);
  *s = {place, text.size()};
  return true;
}

void Texts::Free(const tw_string* all, uint64_t count) {
  for (uint64_t i = 0; i < count && own_.load(std::memory_order_relaxed) > 0; ++i) Drop(all[i].data);
  for (std::atomic<Piece*>& list : latest_) {
    for (Piece* p = list.load(std::memory_order_acquire); p;) std::free(std::exchange(p, p->next));
  }
}

}  // namespace thalweg
