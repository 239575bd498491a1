// Measurements of training runs, from TensorBoard event files or from a table.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

struct Measurement {
  double step = 0, time = 0, value = 0;  // time: seconds since 1970; 0 if not known
};

// The measurements of one tag in one run, by step.
struct Series {
  std::string run, tag;
  std::vector<Measurement> points;
};

struct SeriesSet {
  std::vector<Series> series;      // by tag, then by run
  std::vector<std::string> notes;  // one line for each omission, with the reason
  size_t damaged = 0;              // number of records with a wrong checksum
};

// Reads every event file in a folder and its sub-folders. Each folder is a run, named by its path
// from `folder`; `folder` itself is ".". A truncated file, of a run that is still going or was
// stopped, is read up to its last complete record. If a run was restarted, the newer file counts.
// Throws std::runtime_error if there is no event file.
SeriesSet ReadEventFolder(const std::string& folder);

// Reads a table whose first line names the columns, and makes a series of each numeric column
// except `x`, which holds the steps. If `x` is "", the steps are the column `step` or, without one,
// the row number. An empty cell is no measurement. Throws std::runtime_error.
SeriesSet ReadSeriesTable(const std::string& path, const std::string& x);

// Sorts the series, and sorts the points of each stably.
void SortSeries(SeriesSet* set);

}  // namespace thalweg::cli
