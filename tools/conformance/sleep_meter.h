// SleepMeter: measures how long a thread slept: the elapsed time, minus the time that the thread ran,
// minus the time that it waited for a processor. A busy machine therefore does not count as sleep.
// Threads: the same thread makes and stops a meter.
#pragma once
#include <cstdint>
#include <optional>

namespace thalweg::conformance {

struct Slept {
  int64_t asleep = 0;  // time that the thread slept, ns
  int64_t others = 0;  // time that other threads of the process ran or waited for a processor, ns
};

class SleepMeter {
 public:
  explicit SleepMeter(bool on) {
    if (on) begin_ = Read();
  }
  // Returns the times since construction; empty if `on` was false or the system has no such counts.
  std::optional<Slept> Stop() const;

 private:
  struct Point {
    int64_t wall, own_ran, own_waited, ran, waited;
  };
  static std::optional<Point> Read();
  std::optional<Point> begin_;
};

}  // namespace thalweg::conformance
