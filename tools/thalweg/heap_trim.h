// HeapTrim: returns free memory of the heap to the system, for a program that runs for days.
// Threads: one.
#pragma once

#include <cstdint>

namespace thalweg::cli {

class HeapTrim {
 public:
  // Trims the heap if the process has grown by kGrown bytes since the last trim. The trim takes about
  // a millisecond, and threads that allocate meanwhile may wait for it. Without growth a call reads
  // one line of a file.
  void Look();

  // The process takes much of the memory again, by page faults, so less is not worth a trim.
  static constexpr uint64_t kGrown = 4 << 20;

 private:
  uint64_t least_ = 0;  // fewest bytes in memory since the last trim, as seen by Look
};

}  // namespace thalweg::cli
