#include "framework/runtime/trace/run_metadata.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "framework/proto/wire.h"
#include "framework/runtime/trace/step_stats.h"

namespace thalweg {
namespace {

// A NodeExecStats message. Its times are microseconds on the machine's monotonic clock.
std::string NodeMessage(const tw_step_node& n, int64_t began_ns) {
  const auto micros = [](int64_t ns) { return uint64_t(std::max<int64_t>(ns, 0) / 1000); };
  const uint64_t lasted = micros(n.end_ns - n.start_ns);
  std::string message, memory;
  PutBytesField(1, n.name, &message);
  PutVarintField(2, micros(began_ns + n.start_ns), &message);
  PutVarintField(4, lasted, &message);  // the op's end
  PutVarintField(5, lasted, &message);  // the end of all
  PutBytesField(1, "host", &memory);
  PutVarintField(2, n.output_bytes, &memory);
  PutVarintField(3, n.output_bytes, &memory);
  PutBytesField(6, memory, &message);
  PutBytesField(8, std::string(n.name) + " = " + n.op, &message);
  PutVarintField(10, n.thread, &message);
  return message;
}

}  // namespace

std::string RunMetadataOf(const StepStats& stats) {
  std::map<std::string_view, std::string> devices;  // the node_stats of each
  for (const tw_step_node& n : stats.nodes()) PutBytesField(2, NodeMessage(n, stats.total().began_ns), &devices[n.device]);
  std::string steps, metadata;
  for (const auto& [name, nodes] : devices) {
    std::string device;
    PutBytesField(1, name, &device);
    device += nodes;
    PutBytesField(1, device, &steps);
  }
  PutBytesField(1, steps, &metadata);
  return metadata;
}

}  // namespace thalweg
