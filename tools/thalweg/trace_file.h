// Reads traces written by `run --trace` and the library: the bars of threads and queues, bars that
// span rows, and the rows' names.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace thalweg::cli {

using TraceRow = std::pair<int64_t, int64_t>;  // {process, thread or queue}

struct TraceBar {
  std::string name, category, node, shapes, what, device;
  TraceRow row;
  double start = 0, end = 0;  // microseconds
  double enqueued = 0;        // of a device's bar: when the host enqueued the work
  int64_t step = 0;
  int64_t id = -1;  // of the node
  std::vector<int64_t> after;
  double bytes = 0;
  bool across = false;  // true: the bar belongs to no single row
};

struct Trace {
  std::vector<TraceBar> bars;  // sorted by start; of two with equal starts, the longer comes first
  std::map<TraceRow, std::string> rows;
  uint64_t left_out = 0;
};

// Throws std::runtime_error naming the file.
Trace ReadTrace(const std::string& path);

}  // namespace thalweg::cli
