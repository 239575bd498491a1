// Pending work of other libraries in this device's context. Commands that the plugin enqueues later
// wait for it, so that they may read memory of these libraries. Threads: any.
#ifndef THALWEG_PLUGINS_OPENCL_OTHERS_H_
#define THALWEG_PLUGINS_OPENCL_OTHERS_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "api.h"

namespace thalweg::opencl {

// Events to wait for; owns a reference to each.
class Events {
 public:
  explicit Events(const Api& cl) : cl_(cl) {}
  ~Events() {
    for (cl_event e : events_) cl_.clReleaseEvent(e);
  }
  Events(Events&& o) noexcept : cl_(o.cl_), events_(std::move(o.events_)) { o.events_.clear(); }
  void Add(cl_event event) {
    events_.push_back(event);
    cl_.clRetainEvent(event);
  }
  bool empty() const { return events_.empty(); }
  cl_uint size() const { return cl_uint(events_.size()); }
  const cl_event* data() const { return events_.empty() ? nullptr : events_.data(); }

 private:
  const Api& cl_;
  std::vector<cl_event> events_;
};

class Others {
 public:
  explicit Others(const Api& cl) : cl_(cl) {}
  ~Others() {
    for (const Work& w : works_) cl_.clReleaseEvent(w.event);
  }
  Others(const Others&) = delete;
  // Adds all work that the queue holds now. REQUIRES: a queue of the device's context.
  void Add(cl_command_queue queue);
  // Returns true if no added work is pending. It is cheap as long as no work was ever added.
  bool none();
  // Returns the events of pending work added since the last call with the same *seen. Throws for
  // work that failed, once.
  Events Since(uint64_t* seen);
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  struct Work {
    uint64_t number;
    cl_event event;
    bool told;  // a stream waits for it, or its failure was reported
  };
  cl_int StatusOf(const Work& work) const;
  void Prune();  // REQUIRES: mutex_

  const Api& cl_;
  std::atomic<uint64_t> count_{0};  // works ever added
  std::mutex mutex_;
  std::vector<Work> works_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_OTHERS_H_
