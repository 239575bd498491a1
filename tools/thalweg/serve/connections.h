// The threads of connections, one each, and which connections wait for a request. When all threads are busy, the connection that has
// waited longest is closed for a new one.
// Threads: any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "settings.h"

namespace thalweg::cli::serve {

class Connections {
 public:
  explicit Connections(size_t most) : most_(most) {}

  // Runs `serve`, which serves one connection, on a thread. Blocks while too many wait for a thread. Throws, and does not run it, if
  // there is no memory or not a single thread.
  void Start(std::function<void()> serve);

  // A connection that lives, from its construction to its destruction. REQUIRES: the socket is closed afterwards.
  class Open {
   public:
    Open(Connections* all, int socket);
    ~Open();
    void Idle(bool idle);  // whether it waits for a request
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Connections* const all_;
    const int socket_;
    uint64_t order_ = 0;  // of its wait; 0: it does not wait
  };

  bool stopping() const;
  // Closes the connections that wait, and lets the others end.
  void Stop();
  // Waits until no connection is left. Returns false at the deadline.
  bool WaitUntilEmpty(Deadline deadline);
  // Shuts all sockets down.
  void Break();
  // Ends the threads. REQUIRES: Stop was called, and Start is called no more.
  void Join();

 private:
  void Work();
  bool AddThread();
  void CloseLongestIdle();

  const size_t most_;
  mutable std::mutex mutex_;  // guards the members that follow
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;  // only Start adds to it, so Join needs no lock
  std::set<int> open_;
  std::map<uint64_t, int> idle_;  // sockets, in the order of the beginning of their wait
  uint64_t next_order_ = 1;
  size_t free_threads_ = 0;
  bool stopping_ = false;
};

}  // namespace thalweg::cli::serve
