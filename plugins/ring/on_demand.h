// OnDemand: an object of a process that exists while somebody uses it, such as the hub.
// The child of a fork gets an object of its own. It never touches what the parent had at that moment:
// a lock of a thread that does not exist in the child, or an object whose thread does not.
// Threads: any.
#pragma once
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>

#include <sys/types.h>

namespace thalweg::ring {

template <class T>
class OnDemand {
 public:
  OnDemand() : state_(new State) {}
  ~OnDemand() {
    State* s = state_.load();
    if (s->process == getpid()) delete s;
  }
  OnDemand(const OnDemand&) = delete;

  // Returns the object; if there is none, that which make() returns.
  template <class Make>
  std::shared_ptr<T> Get(Make make) {
    State& s = Own();
    std::lock_guard lock(s.mu);
    if (!s.object) s.object = make();
    return s.object;
  }
  // Destroys the object if nobody uses it. Holds the lock meanwhile, because the next object may need
  // what this one has, such as a port.
  void Release() {
    State& s = Own();
    std::lock_guard lock(s.mu);
    if (s.object.use_count() == 1) s.object.reset();
  }

 private:
  struct State {
    const pid_t process = getpid();
    State* const parent = nullptr;  // that of the process that has forked; stays as it is
    std::mutex mu;                  // guards object
    std::shared_ptr<T> object;

    State() = default;
    explicit State(State* p) : parent(p) {}
  };
  State& Own() {
    State* s = state_.load();
    if (s->process == getpid()) return *s;
    auto own = std::make_unique<State>(s);
    if (state_.compare_exchange_strong(s, own.get())) return *own.release();
    return *s;  // another thread of this process was first
  }

  std::atomic<State*> state_;
};

}  // namespace thalweg::ring
