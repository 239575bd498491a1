#include "framework/planner/emit/runs.h"

#include <algorithm>
#include <set>

#include "framework/base/dtype.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

constexpr size_t kFewest = 4;             // nodes that make it worth arranging a plan for recording
constexpr int32_t kShortest = 2;          // nodes of the shortest run
constexpr uint64_t kMostFollowed = 4096;  // bytes of an argument that may be another one in every step

// Returns true if the node reads a variable for others and the read involves only the host.
bool OnlyReads(const PlanNode& n) {
  return n.kind == PlanNode::kKernel && n.given && !n.run.open_read.empty() && n.run.open_update.empty() && n.pending == 0;
}

// Returns true if the device can follow an argument that the kernel gets in host memory, and that may
// be another one in every step: a learning rate, not a batch. (If the device's memory is the host's, an
// argument in host memory may be one that enqueued work reads.)
bool CanFollow(const PlanNode& n, const PlanValue& v, const PlanShapes::Value& shape) {
  const DTypeInfo* type = FindDType(v.dtype);
  return n.run.device->def().capture->mark && !n.run.device->host_memory() && type && type->plain && shape.shape.known() &&
         shape.bytes <= kMostFollowed;
}

// Returns true if the kernel only enqueues work, and gets the same host-side arguments in every step
// or ones that the device can follow.
bool IsRecordable(const Plan& plan, const PlanShapes& shapes, const PlanNode& n) {
  if (n.kind != PlanNode::kKernel || !n.run.kernel || !n.run.device->has_streams() || !n.run.device->def().capture) return false;
  const KernelDef& k = *n.run.kernel;
  if (!k.spec.capture_safe || k.spec.async || k.spec.may_block || n.dynamic || n.given || !n.run.open_replace.empty()) return false;
  if (std::any_of(n.run.host_out.begin(), n.run.host_out.end(), [](uint8_t host) { return host != 0; })) return false;
  if (std::any_of(k.keep.begin(), k.keep.end(), [](auto keep) { return keep != 0; })) return false;
  for (size_t i = 0; i < n.in.size(); ++i) {
    const PlanValue& v = plan.values[size_t(n.in[i])];
    if (v.kind == PlanValue::kConst || !(n.run.host_in[i] || v.dtype == TW_RESOURCE)) continue;
    if (v.dtype == TW_RESOURCE || !CanFollow(n, v, shapes.values[size_t(n.in[i])])) return false;
  }
  return true;
}

// Returns the handles that the node opens, as values.
std::vector<int32_t> Opened(const PlanNode& n) {
  std::vector<int32_t> all;
  for (uint32_t i : n.run.open_read) all.push_back(n.in[i]);
  for (uint32_t i : n.run.open_update) all.push_back(n.in[i]);
  return all;
}

}  // namespace

bool WorthRecording(const Plan& plan, const PlanShapes& shapes, const PlanOptions& options) {
  if (!options.capture || options.engine == "counted" || plan.prioritized) return false;
  size_t recordable = 0, others = 0;
  for (const PlanNode& n : plan.nodes) {
    if (n.run.kernel && n.run.kernel->spec.async) return false;
    const bool light = n.kind != PlanNode::kKernel || n.given || n.cheap;
    const bool records = IsRecordable(plan, shapes, n);
    recordable += records;
    others += !records && !light;
  }
  return recordable >= kFewest && recordable >= 2 * others;
}

std::vector<int32_t> OrderForRuns(const Plan& plan) {
  std::vector<int32_t> order;
  order.reserve(plan.nodes.size());
  for (const bool reads : {true, false}) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      if (OnlyReads(plan.nodes[i]) == reads) order.push_back(int32_t(i));
    }
  }
  return order;
}

std::vector<PlanRun> FindRuns(const Plan& plan, const PlanShapes& shapes) {
  std::vector<PlanRun> runs;
  std::set<int32_t> opened;  // by the current run: a run takes all its locks at once
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (!IsRecordable(plan, shapes, n)) continue;
    const std::vector<int32_t> handles = Opened(n);
    const bool follows = !runs.empty() && runs.back().end == int32_t(i) && plan.nodes[i - 1].run.device == n.run.device;
    if (!follows || std::any_of(handles.begin(), handles.end(), [&](int32_t h) { return opened.count(h) > 0; })) {
      runs.push_back({int32_t(i), int32_t(i)});
      opened.clear();
    }
    opened.insert(handles.begin(), handles.end());
    runs.back().end = int32_t(i) + 1;
  }
  std::erase_if(runs, [](const PlanRun& r) { return r.end - r.begin < kShortest; });
  return runs;
}

}  // namespace thalweg
