// Partitioned tensors in checkpoints: each piece has its own entry, whose key encodes the tensor's
// name and the box that it covers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_index.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The key of a piece, in TensorFlow's order-preserving encoding. It begins with NUL, so pieces sort
// before all tensors.
std::string PieceKey(std::string_view tensor, const CheckpointPiece& piece);
// Returns the shape of a piece, with whole axes as numbers.
Shape PieceShape(const CheckpointPiece& piece, const Shape& whole);
// Returns one piece that covers a tensor of that rank.
CheckpointPiece WholePiece(int32_t rank);
// Returns true if the piece covers the tensor.
bool IsWhole(const CheckpointPiece& piece, const Shape& whole);
// Checks that the piece lies inside the tensor and has the same rank. INVALID_ARGUMENT names the
// violation.
Status CheckPiece(const CheckpointPiece& piece, const Shape& whole);
// Sets *out to the intersection of two pieces; returns false if it is empty.
bool Intersect(const CheckpointPiece& a, const CheckpointPiece& b, const Shape& whole, CheckpointPiece* out);
// Checks that the pieces cover `part` of the tensor, and no element of the tensor twice. Errors:
// DATA_LOSS; UNIMPLEMENTED for more than 4,096 pieces.
Status CheckPieces(const std::vector<CheckpointPiece>& pieces, const CheckpointPiece& part, const Shape& whole);
// Copies the elements in both boxes from `from`, which holds the box `from_box`, to `to`, which
// holds `to_box`. REQUIRES: types and shapes fit.
Status CopyCommon(const Tensor& from, const CheckpointPiece& from_box, const CheckpointPiece& to_box, const Shape& whole, Tensor* to);

}  // namespace thalweg
