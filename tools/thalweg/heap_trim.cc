#include "heap_trim.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace thalweg::cli {
namespace {

#ifdef __GLIBC__
// Returns the bytes of this process that are in memory; 0 if /proc cannot be read.
uint64_t ResidentBytes() {
  char text[64] = "";
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  unsigned long long all = 0, resident = 0;
  if (got <= 0 || std::sscanf(text, "%llu %llu", &all, &resident) != 2) return 0;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

// Returns the CPU time of this thread in ns. Time in which others run or hold a lock is not part of it.
uint64_t OwnNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}
#endif

}  // namespace

#ifdef __GLIBC__
// The bytes in use of all arenas. Blocks that malloc maps one by one are not part of them: free()
// unmaps them, so a trim cannot return more.
void HeapTrim::CountUse() {
  const uint64_t begin = OwnNanoseconds();
  used_ = mallinfo2().uordblks;
  most_used_ = std::max(most_used_, used_);
  skip_ = (OwnNanoseconds() - begin) / 1'000'000;
}
#endif

void HeapTrim::Look() {
#ifdef __GLIBC__
  const uint64_t resident = ResidentBytes();
  const bool grown = resident >= least_ + kGrown;
  least_ = std::min(least_, resident);
  // Memory that was in use during the last trim and was freed since then leaves the process as large
  // as it was.
  if (grown || skip_ == 0) {
    CountUse();
  } else {
    --skip_;
  }
  if (!grown && used_ + kGrown > most_used_) return;
  // Counted before the trim, so that memory that is freed during the trim is found the next time.
  most_used_ = used_;
  malloc_trim(0);
  least_ = ResidentBytes();
#endif
}

}  // namespace thalweg::cli
