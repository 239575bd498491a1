#include "heap_trim.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace thalweg::cli {
namespace {

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

}  // namespace

void HeapTrim::Look() {
#ifdef __GLIBC__
  const uint64_t now = ResidentBytes();
  if (now < least_ + kGrown) {
    least_ = std::min(least_, now);
    return;
  }
  malloc_trim(0);
  least_ = ResidentBytes();
#endif
}

}  // namespace thalweg::cli
