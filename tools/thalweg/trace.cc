// thalweg trace: analyses a trace of steps, and merges several traces.
#include "handles.h"
#include "trace_top.h"

namespace thalweg::cli {
namespace {

int Run(const Args& args) {
  const std::string what = args.positional()[0];
  if (what == "top") return TraceTop(args);
  if (what == "merge") return TraceMerge(args);
  throw UsageError{"'" + what + "' is neither top nor merge"};
}

}  // namespace

const Command& TraceCommand() {
  static const Command command = {
      "trace",
      "top|merge FILE ...",
      "Says where the time of traced steps went; makes one trace of several.",
      "top FILE: the costliest ops, the critical path of a step, and how long each thread and queue stood still and why.\n"
      "merge FILE...: one trace of the processes of all; times by the machines' clocks.\n"
      "Traces come from `thalweg run --trace FILE` and from tw_step_stats_trace; ui.perfetto.dev draws them.\n",
      {{"--most", "N", "of top: rows of a table; 15 unless it is said"},
       {"--step", "N", "of top: whose critical path; the last one's unless it is said"},
       {"--output", "FILE", "of merge: where to; standard output unless it is said"},
       {"--offset", "FILE=MS", "of merge: milliseconds that the clock of a file's machine is ahead; may be repeated"},
       kJsonOption},
      2,
      1000,
      Run};
  return command;
}

}  // namespace thalweg::cli
