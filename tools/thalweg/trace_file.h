// A trace as `run --trace` and the library write it: bars of threads and queues, what lies across them, and what they are called.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace thalweg::cli {

using TraceRow = std::pair<int64_t, int64_t>;  // process, thread or queue

struct TraceBar {
  std::string name, category, node, shapes, what, device;
  TraceRow row;
  double start = 0, end = 0;  // microseconds
  double enqueued = 0;        // of what a device did: when the host gave it to its queue
  int64_t step = 0;
  int64_t id = -1;  // of the node
  std::vector<int64_t> after;
  double bytes = 0;
  bool across = false;  // it belongs to no row alone
};

struct Trace {
  std::vector<TraceBar> bars;  // by their starts; where two start together, the longer first
  std::map<TraceRow, std::string> rows;
  uint64_t left_out = 0;
};

// Throws std::runtime_error naming the file.
Trace ReadTrace(const std::string& path);

}  // namespace thalweg::cli
