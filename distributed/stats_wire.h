// Statistics of steps in messages: what a task did of a step, on its way to the client that puts the parts together. Threads: values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/step_stats.h"

namespace thalweg::distributed {

// How long the step took, in nanoseconds (int64), then what GetStats takes.
std::string PutStats(const StepStats& stats);

// A part, with the memory of what it points to.
struct StatsPart {
  StepStats::Part part;
  std::string texts;  // each ends with a zero
  std::vector<uint32_t> after;
  std::string task;  // "/job:ps/replica:0/task:0", in place of the one that devices say
};
// shift: nanoseconds from the beginning of the client's run to that of the task's.
Status GetStats(std::string_view bytes, int64_t shift, StatsPart* to);

}  // namespace thalweg::distributed
