// What a trace says of where the time went: `thalweg trace top`.
#pragma once
#include "command.h"
#include "trace_file.h"

namespace thalweg::cli {

struct OpCost {
  std::string op, where;
  int64_t count = 0;
  double self = 0, longest = 0;  // microseconds; self: without what ran inside of it
};
struct PathPart {
  const TraceBar* bar = nullptr;
  double time = 0;  // what it adds to the path
  double gap = 0;   // between it and what comes next
};
struct RowUse {
  std::string name;
  double total = 0, busy = 0;
  std::map<std::string, double> idle;  // by reason
};

std::vector<OpCost> CostliestOps(const Trace& trace);  // the costliest first
// From the beginning of a step to its end: who waited for whom.
std::vector<PathPart> CriticalPath(const Trace& trace, int64_t step);
std::vector<RowUse> UseOfRows(const Trace& trace);
// The steps of a trace, with their times.
std::map<int64_t, std::pair<double, double>> StepsOf(const Trace& trace);

int TraceTop(const Args& args);
int TraceMerge(const Args& args);  // trace_merge.cc

}  // namespace thalweg::cli
