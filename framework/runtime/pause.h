// Pause: tells the CPU that the thread spins on a value that another thread will change. Threads:
// any.
#pragma once

namespace thalweg {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace thalweg
