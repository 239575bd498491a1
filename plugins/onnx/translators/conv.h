// The convolution that Conv, ConvInteger and QLinearConv share. Threads: those of Builder.
#pragma once
#include "table.h"

namespace thalweg::onnx {

// Convolves x [batch, channels, spatial...] with w [out, channels / groups, spatial...] as the attributes of the node say; no bias.
Value ConvOf(Builder& b, Node& n, const Value& x, const Value& w);

// The same of numbers of 8 bits minus their zero points, in int32, by our op for such images. Returns an absent value if the op does not
// fit: other types, zero points that differ, other than two spatial axes, or groups of few results, for which it is slow.
Value ConvOfEightBits(Builder& b, Node& n, const Value& x, const Value& zero_x, const Value& w, const Value& zero_w);

}  // namespace thalweg::onnx
