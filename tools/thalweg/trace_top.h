// Attributes the time of a trace: `thalweg trace top`.
#pragma once
#include "command.h"
#include "trace_file.h"

namespace thalweg::cli {

struct OpCost {
  std::string op, where;
  int64_t count = 0;
  double self = 0, longest = 0;  // microseconds; self: excludes the time of nested bars
};
struct PathPart {
  const TraceBar* bar = nullptr;
  double time = 0;  // its share of the path
  double gap = 0;   // idle time between it and the next part
};
struct RowUse {
  std::string name;
  double total = 0, busy = 0;
  std::map<std::string, double> idle;  // by reason
};

std::vector<OpCost> CostliestOps(const Trace& trace);  // the costliest first
// Returns the chain of dependent bars that determines a step's duration, in order from its
// beginning to its end.
std::vector<PathPart> CriticalPath(const Trace& trace, int64_t step);
std::vector<RowUse> UseOfRows(const Trace& trace);
// Returns the steps of a trace with their start and end times.
std::map<int64_t, std::pair<double, double>> StepsOf(const Trace& trace);

int TraceTop(const Args& args);
int TraceMerge(const Args& args);  // trace_merge.cc

}  // namespace thalweg::cli
