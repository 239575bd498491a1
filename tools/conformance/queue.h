// Queue: a stream of a device with its own timeline, driven by hand.
// Threads: one at a time.
#pragma once
#include <chrono>
#include <memory>

#include "framework/runtime/devices/device.h"
#include "framework/runtime/devices/timeline.h"

namespace thalweg::conformance {

struct ReleaseLine {
  void operator()(tw_timeline* t) const { t->Release(); }
};
using Line = std::unique_ptr<tw_timeline, ReleaseLine>;
inline Line NewLine() { return Line(new tw_timeline); }

// Returns true if the timeline reaches the value within the time.
bool Reaches(tw_timeline* line, uint64_t value, std::chrono::milliseconds within);
constexpr std::chrono::milliseconds kSoon{3000}, kAWhile{30};

class Queue {
 public:
  static StatusOr<Queue> Make(const Device& device);
  Queue(Queue&& o) noexcept;
  ~Queue() { Destroy(); }
  void Destroy();
  // Returns a value that the timeline reaches when all work enqueued so far is done.
  StatusOr<uint64_t> Signal();
  Status Wait(tw_timeline* other, uint64_t value);
  Status Drain();
  bool can_wait() const { return set().wait != nullptr; }
  void* c() const { return stream_; }
  tw_timeline* line() const { return line_.get(); }

 private:
  explicit Queue(const Device& device) : device_(&device), line_(NewLine()) {}
  const tw_stream_set& set() const { return device_->def().streams; }
  const tw_host* host() const { return device_->def().host; }
  const Device* device_;
  Line line_;
  void* stream_ = nullptr;
  uint64_t last_ = 0;
};

}  // namespace thalweg::conformance
