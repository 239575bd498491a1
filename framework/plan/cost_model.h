// CostModel: what kernels and copies take, by what watched steps have shown; where they have shown nothing, by what is like it. Devices are
// known by their full names, memories by that of their device, and the host's by "".
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
  // What a run has shown.
  void Learn(const StepStats& stats);
  void AddKernel(std::string_view op, std::string_view shapes, std::string_view device, int64_t ns, uint64_t bytes);
  void AddCopy(std::string_view from, std::string_view to, uint64_t bytes, int64_t ns);

  // shapes: as tw_step_node.shapes tells them; "" where they are not known. bytes: of its outputs.
  int64_t KernelNs(std::string_view op, std::string_view shapes, std::string_view device, uint64_t bytes) const;
  int64_t CopyNs(std::string_view from, std::string_view to, uint64_t bytes) const;
  // Whether it has run there.
  bool Knows(std::string_view op, std::string_view device) const;

  // For files: rows of words. AddRow takes them back; false: it is none.
  std::vector<std::vector<std::string>> Rows() const;
  bool AddRow(const std::vector<std::string>& row);

 private:
  using Key = std::pair<std::string, std::string>;
  using KernelKey = std::tuple<std::string, std::string, std::string>;
  struct Exact {
    int64_t ns = 0;  // the least: what else happened on the machine is no property of the kernel
    uint64_t bytes = 0;
  };
  // Times over bytes, as a line.
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
