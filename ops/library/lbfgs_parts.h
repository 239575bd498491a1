// What an L-BFGS is, for the files that make and run one.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "thalweg/lbfgs.h"
#include "thalweg/status.h"

namespace thalweg::library {

using Vector = std::vector<double>;

// What one iteration has taught of the curvature.
struct Pair {
  Vector step, change;  // of the position and of the gradient
  double product;       // of the two, > 0
};

inline tw_status* Refuse(const std::string& text) { return tw_status_create(TW_INVALID_ARGUMENT, ("tw_lbfgs: " + text).c_str()); }

}  // namespace thalweg::library

struct tw_lbfgs {
  tw_lbfgs_options options;
  tw_output loss, gradient, position;  // of type double: a scalar and two vectors
  tw_output target;                    // fed with a position,
  const tw_operation* set;             // which this makes the variables'
  int64_t size = 0;
  double rounding;  // of the loss, relative to it: smaller differences mean nothing
  std::deque<thalweg::library::Pair> history;
};
