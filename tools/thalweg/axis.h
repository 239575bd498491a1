// The scale of one axis of a chart: the range it shows, the places of its marks, and their labels.
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
  // Covers [low, high]; both are finite, and positive on a logarithmic axis. margin: the fraction
  // of the range that is left free at each end.
  Axis(double low, double high, bool logarithmic, double margin);
  // Maps `value` to its position: 0 at the start of the range, 1 at its end.
  double Place(double value) const;
  // Returns about `most` marks at round numbers, in ascending order.
  std::vector<Tick> Ticks(size_t most) const;

 private:
  double low_, high_;  // of the value, or of its logarithm
  bool logarithmic_;
};

}  // namespace thalweg::cli
