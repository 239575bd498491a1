// Statistics of steps in messages: the part of one task, sent to the client, which assembles the
// parts. Threads: values.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/trace/step_stats.h"

namespace thalweg::distributed {

// Writes the duration of the step in nanoseconds (int64), then the input of GetStats.
std::string PutStats(const StepStats& stats);

// A part, with the memory that it points to.
struct StatsPart {
  StepStats::Part part;
  std::string texts;  // each ends with a zero
  std::vector<uint32_t> after;
  std::string task;  // "/job:ps/replica:0/task:0", in place of the one in the names of devices
};
// shift: nanoseconds from the beginning of the client's run to that of the task.
Status GetStats(std::string_view bytes, int64_t shift, StatsPart* to);

}  // namespace thalweg::distributed
