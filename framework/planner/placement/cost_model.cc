#include "framework/planner/placement/cost_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "framework/runtime/trace/step_stats.h"

namespace thalweg {
namespace {

// Estimates for unknown ops and memories: of a call, and of each byte that it makes or copies.
constexpr double kCallNs = 2'000, kByteNs = 0.1, kCopyNs = 10'000, kCopyByteNs = 0.2;
constexpr size_t kMostKernels = 1 << 16;  // entries kept

}  // namespace

void CostModel::Line::Add(double bytes, double ns) {
  least = n == 0 ? ns : std::min(least, ns);
  n += 1;
  x += bytes;
  y += ns;
  xx += bytes * bytes;
  xy += bytes * ns;
}

// Returns the least-squares estimate. If all samples had one size, or larger ones were faster,
// returns the mean, scaled in proportion for sizes beyond the mean.
double CostModel::Line::At(double bytes) const {
  const double spread = n * xx - x * x, mean_x = x / n, mean_y = y / n;
  if (spread > 1e-6 * n * xx && n * xy > x * y) {
    const double slope = (n * xy - x * y) / spread;
    return std::max({mean_y + slope * (bytes - mean_x), least / 2, 1.0});
  }
  return std::max(mean_x > 0 ? mean_y * std::max(1.0, bytes / mean_x) : mean_y, 1.0);
}

void CostModel::AddKernel(std::string_view op, std::string_view shapes, std::string_view device, int64_t ns, uint64_t bytes) {
  std::lock_guard lock(mu_);
  ops_[{std::string(op), std::string(device)}].Add(double(bytes), double(ns));
  const KernelKey key{op, shapes, device};
  if (kernels_.size() >= kMostKernels && !kernels_.count(key)) return;
  auto [it, is_new] = kernels_.try_emplace(key, Exact{ns, bytes});
  if (!is_new) it->second.ns = std::min(it->second.ns, ns);
}

void CostModel::AddCopy(std::string_view from, std::string_view to, uint64_t bytes, int64_t ns) {
  std::lock_guard lock(mu_);
  copies_[{std::string(from), std::string(to)}].Add(double(bytes), double(ns));
}

void CostModel::Learn(const StepStats& stats) {
  for (const tw_step_node& n : stats.nodes()) {
    if (n.flags & TW_STEP_NODE_FAILED) continue;
    const int64_t ns = std::max<int64_t>(*n.queue ? n.device_end_ns - n.device_start_ns : n.end_ns - n.start_ns, 1);
    const std::string_view op = n.op;
    if (!(n.flags & TW_STEP_NODE_COPY)) {
      AddKernel(op, n.shapes, n.device, ns, n.output_bytes);
    } else {
      AddCopy(op == "CopyToDevice" ? "" : n.device, op == "CopyToDevice" ? n.device : op == "CopyToHost" ? "" : n.to, n.output_bytes, ns);
    }
  }
}

bool CostModel::Knows(std::string_view op, std::string_view device) const {
  std::lock_guard lock(mu_);
  return ops_.count({std::string(op), std::string(device)}) > 0;
}

// Returns how many times slower a device is than another, by kernels of the same op and shapes that
// ran on both; 1 if there are none.
double CostModel::Slowness(std::string_view device, std::string_view other) const {
  double sum = 0, n = 0;
  for (const auto& [key, exact] : kernels_) {
    if (std::get<2>(key) != device) continue;
    const auto there = kernels_.find(KernelKey{std::get<0>(key), std::get<1>(key), other});
    if (there == kernels_.end()) continue;
    sum += std::log(double(exact.ns) / double(there->second.ns));
    ++n;
  }
  return n > 0 ? std::exp(sum / n) : 1;
}

int64_t CostModel::KernelNs(std::string_view op, std::string_view shapes, std::string_view device, uint64_t bytes) const {
  std::lock_guard lock(mu_);
  const auto exact = kernels_.find(KernelKey{op, shapes, device});
  if (exact != kernels_.end() && !shapes.empty()) return exact->second.ns;
  // Uses the op at other sizes; then its time on another device.
  const auto line = ops_.find({std::string(op), std::string(device)});
  if (line != ops_.end()) return int64_t(line->second.At(double(bytes)));
  for (auto it = ops_.lower_bound({std::string(op), ""}); it != ops_.end() && it->first.first == op; ++it) {
    const std::string& other = it->first.second;
    const auto there = kernels_.find(KernelKey{op, shapes, other});
    const double ns = there != kernels_.end() ? double(there->second.ns) : it->second.At(double(bytes));
    return int64_t(ns * Slowness(device, other));
  }
  return int64_t(kCallNs + kByteNs * double(bytes));
}

// For memories without a measured copy between them, uses the reverse direction, else the way
// through the host.
int64_t CostModel::CopyNs(std::string_view from, std::string_view to, uint64_t bytes) const {
  std::lock_guard lock(mu_);
  const auto known = [&](std::string_view a, std::string_view b) {
    for (const Key& key : {Key(a, b), Key(b, a)}) {
      if (const auto it = copies_.find(key); it != copies_.end()) return it->second.At(double(bytes));
    }
    return -1.0;
  };
  if (const double ns = known(from, to); ns >= 0) return int64_t(ns);
  if (!from.empty() && !to.empty()) {
    const double out = known(from, ""), in = known("", to);
    if (out >= 0 && in >= 0) return int64_t(out + in);
  }
  return int64_t((kCopyNs + kCopyByteNs * double(bytes)) * (from.empty() || to.empty() ? 1 : 2));
}

std::vector<std::vector<std::string>> CostModel::Rows() const {
  std::lock_guard lock(mu_);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, exact] : kernels_) {
    rows.push_back({"kernel", std::get<0>(key), std::get<1>(key), std::get<2>(key), std::to_string(exact.ns), std::to_string(exact.bytes)});
  }
  for (const auto& [key, line] : copies_) {
    for (const double bytes : {0.0, 2 * line.x / line.n}) {  // two points define the line
      rows.push_back({"copy", key.first, key.second, std::to_string(int64_t(line.At(bytes))), std::to_string(uint64_t(bytes))});
    }
  }
  return rows;
}

bool CostModel::AddRow(const std::vector<std::string>& row) {
  int64_t ns = 0, bytes = 0;
  const auto number = [](const std::string& text, int64_t* to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *to);
    return error == std::errc() && end == text.data() + text.size() && *to >= 0;
  };
  if (row.size() < 5 || !number(row[row.size() - 2], &ns) || !number(row.back(), &bytes)) return false;
  if (row[0] == "kernel" && row.size() == 6) {
    AddKernel(row[1], row[2], row[3], ns, uint64_t(bytes));
  } else if (row[0] == "copy" && row.size() == 5) {
    AddCopy(row[1], row[2], uint64_t(bytes), ns);
  } else {
    return false;
  }
  return true;
}

}  // namespace thalweg
