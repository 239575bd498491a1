// Measurements of training runs, from what TensorBoard reads or from a table.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

struct Measurement {
  double step = 0, time = 0, value = 0;  // time: seconds since 1970; 0 where it is not known
};

// What one run says about one thing, by step.
struct Series {
  std::string run, tag;
  std::vector<Measurement> points;
};

struct SeriesSet {
  std::vector<Series> series;      // by tag, then by run
  std::vector<std::string> notes;  // what was left out, and why: a line each
  size_t damaged = 0;              // records that are not what was written
};

// Every event file in a folder and the folders below; each folder is a run, named by its path from `folder`, "." for itself. A file
// that is cut short, as of a run that still goes on or was stopped, is read as far as it goes. Where a run was started again, the newer
// file counts. Throws std::runtime_error if there is no event file.
SeriesSet ReadEventFolder(const std::string& folder);

// A table with a line of column names: a series of each column of numbers but `x`, which holds the steps; "": the column `step` or, if
// there is none, the number of the row. An empty cell is no measurement. Throws std::runtime_error.
SeriesSet ReadSeriesTable(const std::string& path, const std::string& x);

// Sorts the series and, stably, their points.
void SortSeries(SeriesSet* set);

}  // namespace thalweg::cli
