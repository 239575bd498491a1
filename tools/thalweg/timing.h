// Statistics of step durations.
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

struct Timing {
  size_t steps = 0;
  double min = 0, median = 0, mean = 0, p99 = 0, max = 0, total = 0;  // seconds; p99: the 99th percentile
  double PerSecond() const { return total > 0 ? double(steps) / total : 0; }
};

// Summarises the seconds of each step. REQUIRES: at least one step.
Timing Summarize(std::vector<double> seconds);
// Returns the seconds of a monotonic clock.
double Now();
// Formats seconds: 12.3 us, 4.56 ms, 7.89 s.
std::string SecondsText(double seconds);
// Formats 1234567.8 as 1,234,568; keeps at least three digits.
std::string CountText(double count);

}  // namespace thalweg::cli
