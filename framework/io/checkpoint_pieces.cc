#include "framework/io/checkpoint_pieces.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// Appends a count: the number of bytes, then the bytes, the highest first.
void PutCount(uint64_t v, std::string* to) {
  const int n = (std::bit_width(v) + 7) / 8;
  to->push_back(char(n));
  for (int i = n - 1; i >= 0; --i) to->push_back(char(v >> (8 * i)));
}

// Appends a signed number of n bytes in big-endian two's complement. The n highest bits, which all
// equal the sign, are flipped to encode n, except for the sign bit itself. So each byte carries 7
// bits.
void PutSigned(int64_t v, std::string* to) {
  const uint64_t magnitude = uint64_t(v < 0 ? ~v : v);
  const int n = std::bit_width(magnitude) / 7 + 1;
  unsigned char bytes[10];
  for (int i = 0; i < 10; ++i) bytes[i] = i < 2 ? (v < 0 ? 0xff : 0) : static_cast<unsigned char>(uint64_t(v) >> (8 * (9 - i)));
  const uint32_t mark = 0xffffu << (16 - n) & 0xffff;
  unsigned char* first = bytes + 10 - n;
  first[0] ^= static_cast<unsigned char>(mark >> 8);
  if (n > 1) first[1] ^= static_cast<unsigned char>(mark & 255);
  to->append(reinterpret_cast<const char*>(first), size_t(n));
}

// Appends a text that may contain any byte, and a terminator that sorts before all text.
void PutText(std::string_view s, std::string* to) {
  for (char c : s) {
    to->push_back(c);
    if (c == '\0') to->push_back('\xff');
    if (c == '\xff') to->push_back('\0');
  }
  to->append("\0\1", 2);
}

// Returns the end of a piece on axis i.
int64_t End(const CheckpointPiece& p, size_t i, const Shape& whole) {
  return p.sizes[i] < 0 ? whole.dim(int32_t(i)) : p.starts[i] + p.sizes[i];
}

StatusOr<int64_t> CountOf(const CheckpointPiece& piece, const Shape& whole) {
  const Shape shape = PieceShape(piece, whole);
  return CountElements(shape.dims().data(), shape.rank());
}

// Returns the index of the tensor's element `at` in a dense tensor that holds `box`.
uint64_t ElementAt(const std::vector<int64_t>& at, const CheckpointPiece& box, const Shape& whole) {
  uint64_t element = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    element = element * uint64_t(End(box, i, whole) - box.starts[i]) + uint64_t(at[i] - box.starts[i]);
  }
  return element;
}

// Moves `at` to the next row of the box; returns false after the last.
bool NextRow(const CheckpointPiece& box, std::vector<int64_t>* at) {
  for (size_t i = at->size(); i-- > 1;) {
    int64_t& place = (*at)[i - 1];
    if (++place < box.starts[i - 1] + box.sizes[i - 1]) return true;
    place = box.starts[i - 1];
  }
  return false;
}

Status CopyRun(const Tensor& from, uint64_t from_at, Tensor* to, uint64_t to_at, uint64_t n) {
  if (from.dtype() == TW_STRING) {
    for (uint64_t i = 0; i < n; ++i) RETURN_IF_ERROR(to->SetString(to_at + i, from.str(from_at + i)));
    return Status();
  }
  const uint64_t each = DTypeBytes(to->dtype());
  std::memcpy(to->as<char>() + to_at * each, from.as<char>() + from_at * each, n * each);
  return Status();
}

}  // namespace

std::string PieceKey(std::string_view tensor, const CheckpointPiece& piece) {
  std::string key;
  PutCount(0, &key);
  PutText(tensor, &key);
  PutCount(piece.starts.size(), &key);
  for (size_t i = 0; i < piece.starts.size(); ++i) {
    PutSigned(piece.starts[i], &key);
    PutSigned(piece.sizes[i], &key);
  }
  return key;
}

Shape PieceShape(const CheckpointPiece& piece, const Shape& whole) {
  std::vector<int64_t> dims = piece.sizes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = whole.dim(int32_t(i));
  }
  return Shape(std::move(dims));
}

CheckpointPiece WholePiece(int32_t rank) { return {std::vector<int64_t>(size_t(rank), 0), std::vector<int64_t>(size_t(rank), -1)}; }

bool IsWhole(const CheckpointPiece& piece, const Shape& whole) { return PieceShape(piece, whole) == whole; }

Status CheckPiece(const CheckpointPiece& piece, const Shape& whole) {
  if (piece.starts.size() != piece.sizes.size() || int64_t(piece.starts.size()) != whole.rank()) {
    return InvalidArgument("a piece has ", piece.starts.size(), " axes, the tensor of shape ", whole.text(), " has ", whole.rank());
  }
  for (size_t i = 0; i < piece.starts.size(); ++i) {
    const int64_t start = piece.starts[i], size = piece.sizes[i], axis = whole.dim(int32_t(i));
    if (start < 0 || size < -1 || start > axis || (size < 0 ? start != 0 : size > axis - start)) {
      return InvalidArgument("a piece covers ", start, " + ", size, " of axis ", i, ", which has ", axis);
    }
  }
  return Status();
}

bool Intersect(const CheckpointPiece& a, const CheckpointPiece& b, const Shape& whole, CheckpointPiece* out) {
  *out = CheckpointPiece();
  for (size_t i = 0; i < a.starts.size(); ++i) {
    const int64_t start = std::max(a.starts[i], b.starts[i]), end = std::min(End(a, i, whole), End(b, i, whole));
    if (end <= start) return false;
    out->starts.push_back(start);
    out->sizes.push_back(end - start);
  }
  return true;
}

Status CheckPieces(const std::vector<CheckpointPiece>& pieces, const CheckpointPiece& part, const Shape& whole) {
  constexpr size_t kMost = 4096;  // every pair is compared
  if (pieces.size() > kMost) return Unimplemented("it has ", pieces.size(), " pieces; at most ", kMost, " can be put together");
  int64_t sum = 0;
  CheckpointPiece common;
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (Intersect(pieces[i], pieces[k], whole, &common)) return DataLoss("its pieces ", k, " and ", i, " overlap");
    }
    if (!Intersect(pieces[i], part, whole, &common)) continue;
    ASSIGN_OR_RETURN(const int64_t n, CountOf(common, whole));
    if (!CheckedAdd(sum, n, &sum)) return DataLoss("its pieces have more than 2^63-1 elements");
  }
  ASSIGN_OR_RETURN(const int64_t all, CountOf(part, whole));
  if (sum != all) return DataLoss("its pieces have ", sum, " elements, but shape ", PieceShape(part, whole).text(), " has ", all);
  return Status();
}

Status CopyCommon(const Tensor& from, const CheckpointPiece& from_box, const CheckpointPiece& to_box, const Shape& whole, Tensor* to) {
  CheckpointPiece common;
  if (!Intersect(from_box, to_box, whole, &common)) return Status();
  std::vector<int64_t> at = common.starts;  // in the whole tensor; the last axis is copied as a run
  const uint64_t run = at.empty() ? 1 : uint64_t(common.sizes.back());
  do {
    RETURN_IF_ERROR(CopyRun(from, ElementAt(at, from_box, whole), to, ElementAt(at, to_box, whole), run));
  } while (NextRow(common, &at));
  return Status();
}

}  // namespace thalweg
