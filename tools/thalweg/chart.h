// Charts of measurements as SVG: a panel for each tag, a line for each run.
#pragma once
#include <string>

#include "series.h"

namespace thalweg::cli {

struct ChartStyle {
  std::string title, x_label = "step";
  double smoothing = 0;  // the weight of the previous values in each shown value, in [0, 1); 0: no smoothing
  bool log_y = false;
  size_t columns = 0;  // panels side by side; 0: chosen automatically
};

// Plots each measurement at its `step`. Values that are not finite, and non-positive values on a
// logarithmic axis, leave a gap; each panel reports their number.
std::string MakeChart(const SeriesSet& set, const ChartStyle& style);

}  // namespace thalweg::cli
