// Partitioned tensors in checkpoints: each piece has an entry of its own, whose key spells the tensor's name and the box that it covers.
// Writers elsewhere make them; ours does not.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_index.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The key of a piece, in the order-preserving code that TensorFlow uses for it; begins with NUL, so that pieces stand before all tensors.
std::string PieceKey(std::string_view tensor, const CheckpointPiece& piece);
// Its shape: whole axes spelled out.
Shape PieceShape(const CheckpointPiece& piece, const Shape& whole);
// The pieces cover the whole tensor, none of it twice. Errors: DATA_LOSS; UNIMPLEMENTED for more than 4,096 pieces.
Status CheckPieces(const std::vector<CheckpointPiece>& pieces, const Shape& whole);
// Copies a piece to its place. REQUIRES: types and shapes fit, and the type is plain bytes.
void PastePiece(const Tensor& from, const CheckpointPiece& piece, Tensor* whole);

}  // namespace thalweg
