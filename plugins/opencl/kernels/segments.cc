#include "kernels/segments.h"

#include <algorithm>
#include <utility>

namespace thalweg::opencl {

Segments::Segments(const std::vector<int64_t>& targets) {
  for (size_t k = 0; k < targets.size(); ++k)
    if (targets[k] >= 0) order.push_back(int64_t(k));
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return std::pair(targets[size_t(a)], a) < std::pair(targets[size_t(b)], b); });
  for (size_t k = 0; k < order.size(); ++k) {
    const int64_t row = targets[size_t(order[k])];
    if (!rows.empty() && rows.back() == row) continue;
    rows.push_back(row);
    starts.push_back(int64_t(k));
  }
  starts.push_back(int64_t(order.size()));
}

void CheckIndices(const std::vector<int64_t>& indices, int64_t rows, const char* name) {
  for (size_t k = 0; k < indices.size(); ++k)
    if (indices[k] < 0 || indices[k] >= rows)
      Invalid(std::string(name) + "[" + std::to_string(k) + "] is " + tw::text(indices[k]) + ", outside [0, " + tw::text(rows) + ")");
}

}  // namespace thalweg::opencl
