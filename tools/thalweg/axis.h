// The scale of one axis of a chart: which range it shows, where its marks are, and how they are written.
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

struct Tick {
  double value = 0;
  std::string label;
};

class Axis {
 public:
  // Holds low to high, both finite and, on a logarithmic axis, positive. margin: a part of the range that is left free at either end.
  Axis(double low, double high, bool logarithmic, double margin);
  // 0 at the beginning of the range, 1 at its end.
  double Place(double value) const;
  // About `most` marks at round numbers, in order.
  std::vector<Tick> Ticks(size_t most) const;

 private:
  double low_, high_;  // of the value, or its logarithm
  bool logarithmic_;
};

}  // namespace thalweg::cli
