#include "framework/base/thread_reserve.h"

#include <cxxabi.h>
#include <pthread.h>

#include <cstddef>
#include <cstdlib>

namespace thalweg {
namespace {

thread_local volatile char of_this_library;

// Set for each thread that has reserved. Not a thread-local variable: reading one could itself need
// memory and end the process.
pthread_key_t reserved;
bool has_key = false;

// Allocates and frees blocks of all sizes that glibc may need for a library's thread-local
// variables (32 and 300 bytes here) and for its list of libraries. The freed blocks stay in this
// thread's malloc cache, where glibc finds them; only the largest may go to another thread.
bool TakeAndGive() noexcept {
  constexpr size_t kStep = 16, kMost = 1024, kLarge = 32 << 10;
  void* pieces[kMost / kStep + 1];
  size_t n = 0;
  bool all = true;
  for (size_t size = kStep; all && size <= kMost + kStep; size += kStep) {
    void* piece = std::malloc(size <= kMost ? size : kLarge);
    asm volatile("" : : "r"(piece) : "memory");  // keeps compilers from removing malloc and free
    if (piece) pieces[n++] = piece;
    all = piece != nullptr;
  }
  while (n > 0) std::free(pieces[--n]);
  return all;
}

// When the library is loaded there usually is memory. The first throw makes the loader and the
// unwinder allocate what they need.
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
  if (!has_key) return true;  // the program used up all keys: continue without the reserve
  if (pthread_getspecific(reserved)) return true;
  if (!TakeAndGive()) return false;
  asm volatile("" : : "r"(abi::__cxa_get_globals()) : "memory");  // the asm is needed because the function is declared const
  of_this_library = 1;
  return pthread_setspecific(reserved, &reserved) == 0;
}

}  // namespace thalweg
