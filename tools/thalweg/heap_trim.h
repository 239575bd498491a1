// HeapTrim: returns free memory of the heap to the system, for a program that runs for days.
// Threads: one.
#pragma once

#include <cstdint>

namespace thalweg::cli {

class HeapTrim {
 public:
  // Trims the heap if, since the last trim, the process has grown by kGrown bytes or kGrown bytes of
  // the heap were freed. The trim takes about a millisecond, and threads that allocate meanwhile may
  // wait for it. Without a trim, a call reads one line of a file and walks the free blocks of the
  // heap. A walk that took n ms of CPU time is left out in the next n calls.
  void Look();

  // The process takes much of the memory again, by page faults, so less is not worth a trim.
  static constexpr uint64_t kGrown = 4 << 20;

 private:
  void CountUse();

  uint64_t least_ = 0;      // fewest bytes in memory since the last trim, as seen by Look
  uint64_t most_used_ = 0;  // most bytes of the heap in use since the last trim, as seen by CountUse
  uint64_t used_ = 0;       // bytes of the heap in use, as last seen by CountUse
  uint64_t skip_ = 0;       // calls of Look that do not walk the heap
};

}  // namespace thalweg::cli
