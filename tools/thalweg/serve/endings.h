// The signals that end the server, SIGTERM and SIGINT: one thread waits for them. The first one ends the server; a second one ends the
// process at once, by the system's default.
// Threads: that of the program's start; the functions that are given to it run on the thread that waits.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace thalweg::cli::serve {

class Endings {
 public:
  using End = std::function<void(const char* signal)>;  // signal: its name

  // Blocks the signals in this thread and in all that it starts. Until Started a signal calls `end` and then ends the process with status
  // 0. It does not wait for other threads, because a model that is being loaded cannot be interrupted.
  // REQUIRES: no other thread was started.
  explicit Endings(End end);
  ~Endings();
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  // While it lives, a signal before Started calls `end` in place of the first function. Its destructor waits for the call, after which the
  // process has ended.
  class Scope {
   public:
    Scope(Endings* all, End end);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Endings* const all_;
    End outer_;
  };

  // From here on a signal lets Wait return.
  void Started();
  void Wait();
  // Ends the process with status 0. Other threads stop where they are, and no destructor runs.
  [[noreturn]] static void Leave();

 private:
  void Watch();

  std::mutex mutex_;  // guards the members that follow, but for the thread; held while `end_` runs
  std::condition_variable changed_;
  End end_;
  bool started_ = false, came_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace thalweg::cli::serve
