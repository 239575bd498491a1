// CostModel: estimates the time of kernels and copies from the steps that were watched, or from
// similar kernels and copies if none was watched. Devices are named by their full names, a memory
// by the name of its device, and host memory by "".
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

class StepStats;

class CostModel {
 public:
  // Adds the measurements of a run.
  void Learn(const StepStats& stats);
  void AddKernel(std::string_view op, std::string_view shapes, std::string_view device, int64_t ns, uint64_t bytes);
  void AddCopy(std::string_view from, std::string_view to, uint64_t bytes, int64_t ns);

  // shapes: as in tw_step_node.shapes; "" if they are not known. bytes: of the outputs.
  int64_t KernelNs(std::string_view op, std::string_view shapes, std::string_view device, uint64_t bytes) const;
  int64_t CopyNs(std::string_view from, std::string_view to, uint64_t bytes) const;
  // Returns whether the op has run on the device.
  bool Knows(std::string_view op, std::string_view device) const;

  // For files: the model as rows of words. AddRow reads one row back and returns false if `row` is
  // not such a row.
  std::vector<std::vector<std::string>> Rows() const;
  bool AddRow(const std::vector<std::string>& row);

 private:
  using Key = std::pair<std::string, std::string>;
  using KernelKey = std::tuple<std::string, std::string, std::string>;
  struct Exact {
    int64_t ns = 0;  // the least: other activity on the machine is no property of the kernel
    uint64_t bytes = 0;
  };
  // A line fitted to times over bytes.
  struct Line {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, least = 0;
    void Add(double bytes, double ns);
    double At(double bytes) const;
  };
  // REQUIRES: mu_.
  double Slowness(std::string_view device, std::string_view other) const;

  mutable std::mutex mu_;
  std::map<KernelKey, Exact> kernels_;  // by op, shapes, device
  std::map<Key, Line> ops_;             // by op, device
  std::map<Key, Line> copies_;          // by memories
};

}  // namespace thalweg
