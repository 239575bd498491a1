// What other libraries have under way in this device's context: what is enqueued here later waits for it, so that memory of theirs may be
// read. Threads: any.
#ifndef THALWEG_PLUGINS_OPENCL_OTHERS_H_
#define THALWEG_PLUGINS_OPENCL_OTHERS_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "api.h"

namespace thalweg::opencl {

// Events to wait for. References.
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
  // All that the queue holds now. REQUIRES: a queue of the device's context.
  void Add(cl_command_queue queue);
  // Nothing is under way any more. Where nobody ever came, as cheap as it can be.
  bool none();
  // What has come since this was last called with the same *seen and is not over. What failed is told once, as an error.
  Events Since(uint64_t* seen);
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  struct Work {
    uint64_t number;
    cl_event event;
    bool told;  // somebody waits for it, or was told that it failed
  };
  cl_int StatusOf(const Work& work) const;
  void Prune();  // REQUIRES: mutex_

  const Api& cl_;
  std::atomic<uint64_t> count_{0};  // that ever came
  std::mutex mutex_;
  std::vector<Work> works_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_OTHERS_H_
