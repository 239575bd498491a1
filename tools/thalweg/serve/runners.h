// Threads that run joined requests, so that no request's own thread is held by a run that others wait for. A run may go on for a while
// after all of its requests have left, so the number of threads has a limit of its own.
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
  explicit Runners(size_t most) : most_(most) {}
  ~Runners();  // waits for what runs
  Runners(const Runners&) = delete;
  Runners& operator=(const Runners&) = delete;

  // Calls `run`, which throws nothing, on a thread, and destroys it there. A thread is kept for the next one. If `most` threads run
  // something, or the system gives no more, `run` waits for one of them. Throws std::system_error, and does not call it, if there is none.
  void Start(std::function<void()> run);

 private:
  void Work();

  const size_t most_;
  std::mutex mutex_;  // guards the members that follow
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;  // only Start adds to it, so the destructor needs no lock to join
  size_t free_threads_ = 0;
  bool stopping_ = false;
};

}  // namespace thalweg::cli::serve
