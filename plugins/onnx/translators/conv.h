// The convolution that Conv, ConvInteger and QLinearConv share. Threads: those of Builder.
#pragma once
#include "table.h"

namespace thalweg::onnx {

// Convolves x [batch, channels, spatial...] with w [out, channels / groups, spatial...] as the attributes of the node say; no bias.
Value ConvOf(Builder& b, Node& n, const Value& x, const Value& w);

}  // namespace thalweg::onnx
