// How long steps took.
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

struct Timing {
  size_t steps = 0;
  double min = 0, median = 0, mean = 0, p99 = 0, max = 0, total = 0;  // seconds; p99: what 99 of 100 steps stay below
  double PerSecond() const { return total > 0 ? double(steps) / total : 0; }
};

// Of the seconds that each step took; at least one.
Timing Summarize(std::vector<double> seconds);
// Seconds since some moment, steady.
double Now();
// 12.3 us, 4.56 ms, 7.89 s.
std::string SecondsText(double seconds);
// 1234567.8 as 1,234,568, with three digits at least.
std::string CountText(double count);

}  // namespace thalweg::cli
