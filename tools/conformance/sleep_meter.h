// SleepMeter: how long a thread slept, as the scheduler counts it: the time that went by, less what it ran and less what it waited for a
// processor. So a busy machine does not count as sleep.
// Threads: made and stopped on one.
#pragma once
#include <cstdint>
#include <optional>

namespace thalweg::conformance {

struct Slept {
  int64_t asleep = 0;  // of the thread, ns
  int64_t others = 0;  // what the process's other threads ran meanwhile, or waited for a processor, ns
};

class SleepMeter {
 public:
  explicit SleepMeter(bool on) {
    if (on) begin_ = Read();
  }
  // Empty where it was not on, or the system does not tell.
  std::optional<Slept> Stop() const;

 private:
  struct Point {
    int64_t wall, own_ran, own_waited, ran, waited;
  };
  static std::optional<Point> Read();
  std::optional<Point> begin_;
};

}  // namespace thalweg::conformance
