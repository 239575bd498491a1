#include "axis.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace thalweg::cli {
namespace {

std::string Digits(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

// Returns the smallest step of the form 1, 2 or 5 times a power of ten that fits at most `most`
// times into `range`.
double RoundStep(double range, size_t most) {
  const double least = range / double(std::max<size_t>(most, 1)), power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// Formats `value` with as many digits as distinguish marks that are `step` apart.
std::string TickLabel(double value, double step) {
  if (std::fabs(value) < step * 1e-6) return "0";
  const double size = std::fabs(value);
  const int digits = std::clamp(int(std::floor(std::log10(size)) - std::floor(std::log10(step))) + 1, 1, 15);
  if (size < 1e-3 || size >= 1e4) {
    const std::string text = Digits(value, digits);
    if (size < 1e-3 || size >= 1e15) return text;
    static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
    const int unit = int(std::floor(std::log10(size) / 3 + 1e-9));
    return Digits(value / std::pow(1000, unit), std::max(digits, 3)) + kUnits[unit];
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", std::max(0, -int(std::floor(std::log10(step) + 1e-9))), value);
  return text;
}

}  // namespace

Axis::Axis(double low, double high, bool logarithmic, double margin) : low_(low), high_(high), logarithmic_(logarithmic) {
  if (logarithmic_) {
    low_ = std::log10(low);
    high_ = std::log10(high);
  }
  // Adds a margin if the range is one value, or too narrow for a picture to show differences.
  if (high_ - low_ <= 1e-12 * std::max(std::fabs(low_), std::fabs(high_))) {
    const double room = logarithmic_ ? 0.5 : low_ == 0 ? 1 : std::fabs(low_) * 0.1;
    low_ -= room;
    high_ += room;
  }
  const double free = (high_ / 2 - low_ / 2) * 2 * margin;
  low_ -= free;
  high_ += free;
}

double Axis::Place(double value) const {
  const double at = logarithmic_ ? std::log10(value) : value;
  return (at / 2 - low_ / 2) / (high_ / 2 - low_ / 2);  // halved first: the difference of the widest ranges would overflow to infinity
}

std::vector<Tick> Axis::Ticks(size_t most) const {
  std::vector<Tick> ticks;
  const double range = high_ - low_;
  if (!std::isfinite(range)) return ticks;
  if (logarithmic_ && range >= 1) {
    const double step = std::max(1.0, std::ceil(range / double(most)));
    for (double power = std::ceil(low_ / step - 1e-9) * step; power <= high_ + 1e-9; power += step) {
      ticks.push_back({std::pow(10, power), TickLabel(std::pow(10, power), std::pow(10, power))});
    }
    // If there is room between the powers of ten, also adds marks at 2 and 5 times each power.
    if (ticks.size() * 3 <= most + 2 && step == 1) {
      ticks.clear();
      for (double power = std::floor(low_); power <= high_; ++power) {
        for (const double factor : {1.0, 2.0, 5.0}) {
          const double value = factor * std::pow(10, power), at = std::log10(value);
          if (at >= low_ - 1e-9 && at <= high_ + 1e-9) ticks.push_back({value, TickLabel(value, value)});
        }
      }
    }
    return ticks;
  }
  const double low = logarithmic_ ? std::pow(10, low_) : low_, high = logarithmic_ ? std::pow(10, high_) : high_;
  const double step = RoundStep(high - low, most);
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && ticks.size() < 50; ++k) {
    if (!logarithmic_ || k > 0) ticks.push_back({k * step, TickLabel(k * step, step)});
  }
  return ticks;
}

}  // namespace thalweg::cli
