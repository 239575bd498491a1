// Threads that run joined requests, so that no request's own thread is held by a run that others wait for.
// Threads: any.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg::cli::serve {

class Runners {
 public:
  Runners() = default;
  ~Runners();  // waits for what runs
  Runners(const Runners&) = delete;
  Runners& operator=(const Runners&) = delete;

  // Calls `run`, which throws nothing, on a thread, and destroys it there. A thread is kept for the next one. If the system gives no more
  // threads, `run` waits for one that there is. Throws std::system_error, and does not call it, if there is none.
  void Start(std::function<void()> run);

 private:
  void Work();

  std::mutex mutex_;  // guards the members that follow
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;  // only Start adds to it, so the destructor needs no lock to join
  size_t free_threads_ = 0;
  bool stopping_ = false;
};

}  // namespace thalweg::cli::serve
