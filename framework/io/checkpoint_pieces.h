// Partitioned tensors in checkpoints: each piece has an entry of its own, whose key spells the tensor's name and the box that it covers.
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
// All of a tensor of that rank, as one piece.
CheckpointPiece WholePiece(int32_t rank);
// It covers the tensor.
bool IsWhole(const CheckpointPiece& piece, const Shape& whole);
// It lies inside the tensor and has as many axes. INVALID_ARGUMENT says where it does not.
Status CheckPiece(const CheckpointPiece& piece, const Shape& whole);
// What two have in common; false: nothing.
bool Intersect(const CheckpointPiece& a, const CheckpointPiece& b, const Shape& whole, CheckpointPiece* out);
// The pieces cover `part` of the tensor, and no element of the tensor twice. Errors: DATA_LOSS; UNIMPLEMENTED for more than 4,096 pieces.
Status CheckPieces(const std::vector<CheckpointPiece>& pieces, const CheckpointPiece& part, const Shape& whole);
// Copies what `from`, which holds the box `from_box`, and `to`, which holds `to_box`, have in common. REQUIRES: types and shapes fit.
Status CopyCommon(const Tensor& from, const CheckpointPiece& from_box, const CheckpointPiece& to_box, const Shape& whole, Tensor* to);

}  // namespace thalweg
