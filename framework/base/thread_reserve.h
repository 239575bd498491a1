// ThreadReserve: allocates what a thread needs to throw before memory runs out, so that running out
// of memory is an error on that thread and does not end the process.
// A library that a program loads by dlopen gets its thread-local variables on each thread's first
// use, and glibc ends the process if there is no memory for them. The C++ runtime keeps the
// exceptions in flight in such variables, so a thread's first std::bad_alloc could end the process.
// Threads therefore allocate these variables while there is memory: a thread of the program when it
// enters the library, a runtime thread before it starts work.
// Threads: each call affects the calling thread only.
#pragma once
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

struct tw_status;

namespace thalweg {

// Returns true if the calling thread can now throw, catch, and use the runtime's thread-local
// variables. False means there is no memory for that, and the caller must not call anything that
// may throw. After the first success a call costs two nanoseconds.
bool ReserveThread() noexcept;
// Returns the status that C receives in that case: RESOURCE_EXHAUSTED, allocated when the library
// was loaded.
tw_status* NoMemoryForThread() noexcept;

// Starts a thread that reserves its memory and then runs f. Throws std::bad_alloc or
// std::system_error if no thread could be started.
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
      start.changed.notify_one();  // under the lock, because `start` is destroyed after this wait
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
