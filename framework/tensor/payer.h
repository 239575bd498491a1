// The account that pays on this thread for memory used by calls that receive neither a frame nor a
// budget: reading files for a kernel, restoring objects of a plugin. Threads: each has its own
// payer.
#pragma once
#include <cstdint>

#include "framework/base/status.h"

namespace thalweg {

class MemoryBudget;

// Returns NULL if nobody pays.
MemoryBudget* PayerOfThread();

// Makes `budget` the thread's payer for the life of this object; objects may nest.
class PaysFor {
 public:
  explicit PaysFor(MemoryBudget* budget);
  ~PaysFor();
  PaysFor(const PaysFor&) = delete;

 private:
  MemoryBudget* const before_;
};
// Sets the thread's payer without a scope and returns the previous one.
MemoryBudget* SetPayerOfThread(MemoryBudget* budget);

// Heap bytes charged to the payer of the thread that created this object. They are credited when
// the object is destroyed, on any thread.
class PaidBytes {
 public:
  PaidBytes();
  ~PaidBytes();
  PaidBytes(const PaidBytes&) = delete;
  // Charges bytes before they are allocated. RESOURCE_EXHAUSTED if they exceed the limit.
  Status Take(uint64_t bytes);

 private:
  MemoryBudget* const budget_;
  uint64_t bytes_ = 0;
};

}  // namespace thalweg
