#include "framework/base/thread_reserve.h"

#include <cxxabi.h>
#include <pthread.h>

#include <cstddef>
#include <cstdlib>

namespace thalweg {
namespace {

thread_local volatile char of_this_library;

// Of a thread that has reserved. No thread-local variable: to look at one may be the end.
pthread_key_t reserved;
bool has_key = false;

// Pieces of memory of all sizes that glibc may want for the variables of a library (32 and 300 bytes here) and for its list of libraries.
// Freed, they lie in a cache of this thread's own, where they are found again; only the largest may be lost to another thread.
bool TakeAndGive() noexcept {
  constexpr size_t kStep = 16, kMost = 1024, kLarge = 32 << 10;
  void* pieces[kMost / kStep + 1];
  size_t n = 0;
  bool all = true;
  for (size_t size = kStep; all && size <= kMost + kStep; size += kStep) {
    void* piece = std::malloc(size <= kMost ? size : kLarge);
    asm volatile("" : : "r"(piece) : "memory");  // or compilers leave malloc and free out
    if (piece) pieces[n++] = piece;
    all = piece != nullptr;
  }
  while (n > 0) std::free(pieces[--n]);
  return all;
}

// When the library is loaded there is memory, as a rule; what the first throw needs of the loader and the unwinder is then there too.
__attribute__((constructor)) void ReserveAtLoad() {
  has_key = pthread_key_create(&reserved, nullptr) == 0;
  NoMemoryForThread();
  if (!ReserveThread()) return;
  try {
    throw 0;
  } catch (int) {
  }
}

}  // namespace

bool ReserveThread() noexcept {
  if (!has_key) return true;  // no more keys in this program: as it would be without all this
  if (pthread_getspecific(reserved)) return true;
  if (!TakeAndGive()) return false;
  asm volatile("" : : "r"(abi::__cxa_get_globals()) : "memory");  // declared as if it did nothing
  of_this_library = 1;
  return pthread_setspecific(reserved, &reserved) == 0;
}

}  // namespace thalweg
