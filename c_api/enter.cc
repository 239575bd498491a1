// Prepares a thread of the program when it first enters the library.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "c_api/shim.h"
#include "c_api/step_call.h"
#include "framework/session/session.h"

namespace thalweg {
namespace {

pthread_key_t entered;
bool has_key = false;

// Cache of threads that have entered and have not ended, one per slot. A look here costs a fifth of
// a look at the key.
std::array<std::atomic<uintptr_t>, 64> known;

uintptr_t ThisThread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }
std::atomic<uintptr_t>& PlaceOf(uintptr_t thread) { return known[(thread >> 12) % known.size()]; }

// Adds a thread unless another thread has its slot.
void Know(uintptr_t thread) {
  uintptr_t nobody = 0;
  PlaceOf(thread).compare_exchange_strong(nobody, thread, std::memory_order_relaxed);
}

void Forget(void*) {
  uintptr_t thread = ThisThread();
  PlaceOf(thread).compare_exchange_strong(thread, 0, std::memory_order_relaxed);
}

__attribute__((constructor)) void MakeKey() { has_key = pthread_key_create(&entered, Forget) == 0; }
__attribute__((destructor)) void DeleteKey() {
  if (has_key) pthread_key_delete(entered);  // otherwise threads that end after unloading would call Forget at its old address
}

// The first call of a thread, or any call of a thread without a slot.
[[gnu::noinline]] bool Enters() noexcept {
  if (has_key && pthread_getspecific(entered)) return true;
  if (!ReserveThread()) return false;
  if (!has_key) return true;
  // glibc allocates memory for the destructors of a thread, and ends the process if there is none.
  // So test for that memory first.
  constexpr size_t kNotes = 4096;
  void* notes = std::calloc(1, kNotes);
  asm volatile("" : : "r"(notes) : "memory");
  if (!notes) return false;
  std::free(notes);
  Tensors::TouchThread();
  Session::TouchThread();
  if (pthread_setspecific(entered, &entered) != 0) return false;
  Know(ThisThread());
  return true;
}

}  // namespace

bool ThreadEnters() noexcept {
  const uintptr_t thread = ThisThread();
  return PlaceOf(thread).load(std::memory_order_relaxed) == thread || Enters();
}

}  // namespace thalweg
