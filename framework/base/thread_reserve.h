// What a thread must have before memory runs out, so that this is an error there and not the end of the process.
//
// A library that a program loads by dlopen has its thread-local variables made for each thread when that first uses one, and glibc ends the
// process where there is no memory for them. The C++ runtime keeps the exceptions under way in such variables: a thread's first
// std::bad_alloc would be its last. So threads have them made while there is memory: those of the program where they enter the library, the
// runtime's own before they begin.
// Threads: each for itself.
#pragma once
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

struct tw_status;

namespace thalweg {

// The calling thread can throw, catch, and use the runtime's thread-local variables from now on. False: there is no memory for that;
// nothing that may throw can be called. A call where it was true before costs two nanoseconds.
bool ReserveThread() noexcept;
// What C is told then: RESOURCE_EXHAUSTED, made when the library was loaded.
tw_status* NoMemoryForThread() noexcept;

// A thread that runs f, once it has reserved what it needs. Throws std::bad_alloc or std::system_error, and there is no thread then.
template <class F>
std::thread StartThread(F f) {
  struct {
    std::mutex mu;
    std::condition_variable changed;
    bool begun = false, ready = false;
  } start;
  std::thread thread([&start, f = std::move(f)]() mutable {
    const bool ready = ReserveThread();
    {
      std::lock_guard lock(start.mu);
      start.begun = true;
      start.ready = ready;
      start.changed.notify_one();  // under the lock, for `start` ends with it
    }
    if (ready) f();
  });
  std::unique_lock lock(start.mu);
  start.changed.wait(lock, [&] { return start.begun; });
  if (start.ready) return thread;
  lock.unlock();
  thread.join();
  throw std::bad_alloc();
}

}  // namespace thalweg
