// Pictures in the terminal: a batch of grey images, each with lines of text beside it, as many side by side as fit.
#pragma once
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

struct Pictures {
  int64_t n = 0, height = 0, width = 0;
  std::vector<double> grey;  // [n, height, width], 0 (lowest value of the batch) .. 1 (highest)
};

// Takes numbers of shape [n, h, w], [n, h, w, 1] or [n, k * k]. Throws std::runtime_error for
// another shape.
Pictures ToPictures(const tw::Runtime& runtime, const tw::Tensor& batch);

// captions: lines for each picture. Draws half blocks in shades of grey on a terminal, and
// characters elsewhere.
std::string Draw(const Pictures& pictures, const std::vector<std::vector<std::string>>& captions);

}  // namespace thalweg::cli
