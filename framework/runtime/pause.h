// Pause: what a thread does between two looks at something that others are about to change. Threads: any.
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
