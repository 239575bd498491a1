// Definition of tw_lbfgs, for the files that make and run one.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "thalweg/lbfgs.h"
#include "thalweg/status.h"

namespace thalweg::library {

using Vector = std::vector<double>;

// Curvature information of one iteration.
struct Pair {
  Vector step, change;  // differences of position and of gradient
  double product;       // dot product of the two, > 0
};

inline tw_status* Refuse(const std::string& text) { return tw_status_create(TW_INVALID_ARGUMENT, ("tw_lbfgs: " + text).c_str()); }

}  // namespace thalweg::library

struct tw_lbfgs {
  tw_lbfgs_options options;
  tw_output loss, gradient, position;  // of type double: a scalar and two vectors
  tw_output target;                    // placeholder for a position
  const tw_operation* set;             // sets the variables from the target
  int64_t size = 0;
  double rounding;  // relative rounding error of the loss: smaller differences mean nothing
  std::deque<thalweg::library::Pair> history;
};
