// Who pays on this thread for memory that is taken by calls which are given no frame and no budget: files that are read for a kernel,
// objects that a plugin restores. Threads: each has its own.
#pragma once
#include <cstdint>

#include "framework/base/status.h"

namespace thalweg {

class MemoryBudget;

// NULL: nobody.
MemoryBudget* PayerOfThread();

// For as long as this lives, or until the next.
class PaysFor {
 public:
  explicit PaysFor(MemoryBudget* budget);
  ~PaysFor();
  PaysFor(const PaysFor&) = delete;

 private:
  MemoryBudget* const before_;
};
// The same without a scope; answers who paid before.
MemoryBudget* SetPayerOfThread(MemoryBudget* budget);

// Bytes of the heap for which whoever pays on the thread that made this has paid, until it goes, on whatever thread.
class PaidBytes {
 public:
  PaidBytes();
  ~PaidBytes();
  PaidBytes(const PaidBytes&) = delete;
  // Before they are allocated. RESOURCE_EXHAUSTED where they are too many.
  Status Take(uint64_t bytes);

 private:
  MemoryBudget* const budget_;
  uint64_t bytes_ = 0;
};

}  // namespace thalweg
