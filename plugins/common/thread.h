// Threads of a plugin that can throw, even if memory runs out later. The C++ runtime keeps the
// state of exceptions in thread-local memory. In a program that loads the runtime by dlopen, that
// memory is allocated at a thread's first throw, and glibc ends the process if the allocation
// fails. So a new thread throws once at its start. Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_THREAD_H_
#define THALWEG_PLUGINS_COMMON_THREAD_H_

#include <thread>
#include <utility>

namespace thalweg::common {

// Starts a thread that runs f. Throws std::system_error if no thread can be started.
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
