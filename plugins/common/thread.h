// Threads of a plugin that can throw, also where memory runs out later. What the C++ runtime keeps of exceptions is thread-local memory.
// Where a program loads it by dlopen, it is allocated at a thread's first throw, and glibc ends the process if that fails. So the first
// throw comes when the thread begins. Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_THREAD_H_
#define THALWEG_PLUGINS_COMMON_THREAD_H_

#include <thread>
#include <utility>

namespace thalweg::common {

// A thread that runs f. Throws std::system_error where there is no thread left.
template <class F>
std::thread StartThread(F f) {
  return std::thread([f = std::move(f)]() mutable {
    try {
      throw 0;
    } catch (int) {
    }
    f();
  });
}

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_THREAD_H_
