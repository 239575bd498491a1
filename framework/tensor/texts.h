// Texts: where the bytes of a string tensor lie. Strings that are set for the first time share pieces of memory, so that many short ones
// cost few calls of the heap; long ones, and those that outgrow what they replace, have a block of their own. All bits zero is an empty
// one. Threads: strings of different elements may be set at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/abi.h"

struct tw_tensor;

namespace thalweg {

class MemoryBudget;

class Texts {
 public:
  // *s, one of `count` elements, becomes the text, which may lie in another of them. budget: pays for the memory that this takes; NULL:
  // nobody. Errors: RESOURCE_EXHAUSTED, and *s is as it was.
  Status Set(tw_string* s, std::string_view text, uint64_t count, MemoryBudget* budget = nullptr);
  // The last call: all that the elements hold goes.
  void Free(const tw_string* all, uint64_t count);
  // Of the heap, that is held.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Piece;
  static constexpr uint32_t kLists = 4;  // threads spread over them, so that few wait for one another

  StatusOr<char*> Place(uint64_t bytes, uint64_t count, MemoryBudget* budget);
  StatusOr<char*> OwnBlock(uint64_t bytes, MemoryBudget* budget);
  StatusOr<void*> Allocate(uint64_t bytes, MemoryBudget* budget);
  void Release(void* memory, uint64_t bytes, MemoryBudget* budget);
  bool Holds(const char* bytes) const;
  void Drop(const char* bytes, MemoryBudget* budget);

  std::atomic<Piece*> latest_[kLists];
  std::atomic<uint64_t> own_;    // blocks of their own
  std::atomic<uint64_t> bytes_;  // held
};

// Those of a string tensor: behind the elements of whoever owns them.
Texts& TextsOf(tw_tensor* t);

}  // namespace thalweg
