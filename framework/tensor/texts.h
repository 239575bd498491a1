// Texts: storage for the bytes of a string tensor. Strings that are set for the first time share
// blocks, so that many short ones cost few heap calls. A long string, or one that outgrows the
// string that it replaces, has its own block. An object of all zero bits is empty. Threads: strings
// of different elements may be set concurrently.
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
  // Sets *s, one of `count` elements, to `text`, which may be the bytes of another element. budget:
  // is charged for new memory; NULL: none. RESOURCE_EXHAUSTED leaves *s unchanged.
  Status Set(tw_string* s, std::string_view text, uint64_t count, MemoryBudget* budget = nullptr);
  // Frees all that the elements hold. Must be the last call.
  void Free(const tw_string* all, uint64_t count);
  // Returns the heap bytes held.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Piece;
  static constexpr uint32_t kLists = 4;  // threads are spread over the lists to reduce contention

  StatusOr<char*> Place(uint64_t bytes, uint64_t count, MemoryBudget* budget);
  StatusOr<char*> OwnBlock(uint64_t bytes, MemoryBudget* budget);
  StatusOr<void*> Allocate(uint64_t bytes, MemoryBudget* budget);
  void Release(void* memory, uint64_t bytes, MemoryBudget* budget);
  bool Holds(const char* bytes) const;
  void Drop(const char* bytes, MemoryBudget* budget);

  std::atomic<Piece*> latest_[kLists];
  std::atomic<uint64_t> own_;    // number of strings with their own block
  std::atomic<uint64_t> bytes_;  // heap bytes held
};

// Returns the texts of a string tensor. They are stored behind the elements of the tensor that owns
// the elements.
Texts& TextsOf(tw_tensor* t);

}  // namespace thalweg
