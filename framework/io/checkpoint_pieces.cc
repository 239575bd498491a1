#include "framework/io/checkpoint_pieces.h"

#include <bit>
#include <cstring>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// A count: how many bytes, then the bytes, the highest first.
void PutCount(uint64_t v, std::string* to) {
  const int n = (std::bit_width(v) + 7) / 8;
  to->push_back(char(n));
  for (int i = n - 1; i >= 0; --i) to->push_back(char(v >> (8 * i)));
}

// A signed number of n bytes in big-endian two's complement, in which the n highest bits but the sign's are flipped to say n: as many as
// are equal to begin with. Each byte so carries 7 bits.
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

// Text that may hold any byte, and an end that sorts before all text.
void PutText(std::string_view s, std::string* to) {
  for (char c : s) {
    to->push_back(c);
    if (c == '\0') to->push_back('\xff');
    if (c == '\xff') to->push_back('\0');
  }
  to->append("\0\1", 2);
}

bool Overlap(const CheckpointPiece& a, const CheckpointPiece& b, const Shape& whole) {
  for (size_t i = 0; i < a.starts.size(); ++i) {
    const int64_t axis = whole.dim(int32_t(i));
    const int64_t a_end = a.sizes[i] < 0 ? axis : a.starts[i] + a.sizes[i], b_end = b.sizes[i] < 0 ? axis : b.starts[i] + b.sizes[i];
    if (a_end <= b.starts[i] || b_end <= a.starts[i]) return false;
  }
  return true;
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

Status CheckPieces(const std::vector<CheckpointPiece>& pieces, const Shape& whole) {
  constexpr size_t kMost = 4096;  // every pair is looked at
  if (pieces.size() > kMost) return Unimplemented("it has ", pieces.size(), " pieces; at most ", kMost, " can be put together");
  int64_t sum = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Shape shape = PieceShape(pieces[i], whole);
    ASSIGN_OR_RETURN(const int64_t n, CountElements(shape.dims().data(), shape.rank()));
    if (!CheckedAdd(sum, n, &sum)) return DataLoss("its pieces have more than 2^63-1 elements");
    for (size_t k = 0; k < i; ++k) {
      if (n > 0 && Overlap(pieces[i], pieces[k], whole)) return DataLoss("its pieces ", k, " and ", i, " overlap");
    }
  }
  ASSIGN_OR_RETURN(const int64_t all, CountElements(whole.dims().data(), whole.rank()));
  if (sum != all) return DataLoss("its pieces have ", sum, " elements, but shape ", whole.text(), " has ", all);
  return Status();
}

void PastePiece(const Tensor& from, const CheckpointPiece& piece, Tensor* whole) {
  const int32_t rank = whole->rank();
  const uint64_t each = DTypeBytes(whole->dtype());
  const char* p = static_cast<const char*>(from.data());
  if (rank == 0 || from.count() == 0) {
    std::memcpy(whole->data(), p, from.bytes());
    return;
  }
  const uint64_t row = uint64_t(from.dim(rank - 1)) * each;
  std::vector<int64_t> at(size_t(rank), 0);  // in the piece; the last axis goes as a whole
  for (uint64_t rows = from.bytes() / row; rows > 0; --rows, p += row) {
    uint64_t element = 0;
    for (int32_t i = 0; i < rank; ++i) element = element * uint64_t(whole->dim(i)) + uint64_t(piece.starts[size_t(i)] + at[size_t(i)]);
    std::memcpy(static_cast<char*>(whole->data()) + element * each, p, row);
    for (int32_t i = rank - 2; i >= 0 && ++at[size_t(i)] == from.dim(i); --i) at[size_t(i)] = 0;
  }
}

}  // namespace thalweg
