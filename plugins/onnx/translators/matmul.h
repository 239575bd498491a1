// The product that MatMul and its quantised forms share. Threads: those of Builder.
#pragma once
#include "table.h"

namespace thalweg::onnx {

// The product as numpy.matmul defines it: vectors, matrices, and batches of matrices that broadcast.
Value MatMulOf(Builder& b, Node& n, Value x, Value y);

}  // namespace thalweg::onnx
