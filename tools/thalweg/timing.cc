#include "timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace thalweg::cli {

Timing Summarize(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  Timing t;
  t.steps = n;
  t.min = seconds.front();
  t.max = seconds.back();
  t.median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2;
  t.p99 = seconds[size_t(std::ceil(0.99 * double(n))) - 1];
  t.total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  t.mean = t.total / double(n);
  return t;
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string SecondsText(double seconds) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  double value = seconds * 1e9;
  int unit = 0;
  while (value >= 999.5 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f %s", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, kUnits[unit]);
  return text;
}

std::string CountText(double count) {
  char text[64];
  const int n = std::snprintf(text, sizeof(text), "%.*f", count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2, count);
  std::string out(text, size_t(n));
  if (count < 99.95) return out;
  for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

}  // namespace thalweg::cli
