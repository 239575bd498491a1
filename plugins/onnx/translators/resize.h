// What the parts of Resize share. Threads: those of Builder.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "table.h"

namespace thalweg::onnx::resize {

struct Mode {
  std::string kind = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75, outside = 0;
  bool exclude_outside = false, antialias = false;
};

struct Wanted {
  std::vector<int> axes;       // that may change
  std::vector<double> scales;  // of these axes; empty if they are not known now, or sizes are given
  std::optional<std::vector<int64_t>> sizes;
  Value size_input, scale_input, roi_input;  // what is not known now; absent: not given
};

// A scale of whole numbers.
bool Whole(double scale);
// x in a type in which this mode can compute.
Value InReal(Builder& b, const Mode& m, const Value& x);

// Our op for images [batch, channels, height, width] in this mode, with attributes; none if it is another computation. `ratio`: scales are
// exactly the ratios of sizes. `whole`: they are whole numbers.
struct Native {
  const char* op;
  Attrs attrs;
};
std::optional<Native> NativeOf(const Mode& m, uint32_t dtype, bool ratio, bool whole);
// Height and width that become `size`, an int32 vector of two.
Value ResizeNative(Builder& b, const Value& x, const Native& native, const Value& size);

// Resizes axes whose sizes or scales are known at run time only: the step computes indices and weights.
void ResizeDynamic(Builder& b, Node& n, const Value& x, const Mode& m, Wanted w);

}  // namespace thalweg::onnx::resize
