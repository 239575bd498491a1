// Charts of measurements as SVG: a panel for each tag, a line for each run.
#pragma once
#include <string>

#include "series.h"

namespace thalweg::cli {

struct ChartStyle {
  std::string title, x_label = "step";
  double smoothing = 0;  // of each value, how much comes from those before it: 0 (none) to below 1
  bool log_y = false;
  size_t columns = 0;  // panels side by side; 0: as many as look well
};

// Points at measurements' `step`. Values that are not finite, or on a logarithmic axis not positive, leave a gap; each panel says how many.
std::string MakeChart(const SeriesSet& set, const ChartStyle& style);

}  // namespace thalweg::cli
