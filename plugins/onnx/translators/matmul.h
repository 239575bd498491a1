// The product that MatMul and its quantised forms share. Threads: those of Builder.
#pragma once
#include <functional>

#include "table.h"

namespace thalweg::onnx {

// The product as numpy.matmul defines it: vectors, matrices, and batches of matrices that broadcast.
Value MatMulOf(Builder& b, Node& n, Value x, Value y);

// Makes the product of two matrices, or, unless IsOneProduct, of two batches of them.
using MatrixProduct = std::function<Value(const Value& x, const Value& y)>;
// Returns true if one matrix y is multiplied with all rows of x, so that a product of two matrices is enough.
bool IsOneProduct(const Value& x, const Value& y);
// MatMulOf by `product` instead of our own ops.
Value MatMulBy(Builder& b, Node& n, Value x, Value y, const MatrixProduct& product);

}  // namespace thalweg::onnx
