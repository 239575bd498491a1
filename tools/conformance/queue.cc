#include "tools/conformance/queue.h"

#include <thread>
#include <utility>

namespace thalweg::conformance {

bool Reaches(tw_timeline* line, uint64_t value, std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  while (line->value() < value) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

StatusOr<Queue> Queue::Make(const Device& device) {
  Queue q(device);
  const tw_stream_config config = {TW_SIZED(tw_stream_config), q.line_.get()};
  RETURN_IF_ERROR(FromC(q.set().create(q.host(), device.self(), &config, &q.stream_)));
  if (!q.stream_) return Internal("create answered neither a stream nor an error");
  return q;
}

Queue::Queue(Queue&& o) noexcept
    : device_(o.device_), line_(std::move(o.line_)), stream_(std::exchange(o.stream_, nullptr)), last_(o.last_) {}

void Queue::Destroy() {
  if (void* s = std::exchange(stream_, nullptr)) set().destroy(host(), s);
}

StatusOr<uint64_t> Queue::Signal() {
  RETURN_IF_ERROR(FromC(set().signal(host(), stream_, last_ + 1)));
  return ++last_;
}

Status Queue::Wait(tw_timeline* other, uint64_t value) { return FromC(set().wait(host(), stream_, other, value)); }

Status Queue::Drain() {
  ASSIGN_OR_RETURN(uint64_t value, Signal());
  return line_->Wait(value);
}

}  // namespace thalweg::conformance
