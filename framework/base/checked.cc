#include "framework/base/checked.h"

#include "framework/base/dtype.h"

namespace thalweg {

std::string ShapeText(const int64_t* dims, int32_t rank) {
  if (rank < 0) return "unknown";
  std::string s = "[";
  for (int32_t i = 0; i < rank; ++i) {
    if (i) s += ", ";
    s += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return s + "]";
}

StatusOr<int64_t> CountElements(const int64_t* dims, int32_t rank) {
  if (rank < 0) return InvalidArgument("the rank is unknown");
  int64_t n = 1;
  bool empty = false, overflow = false;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) return InvalidArgument("size ", dims[i], " of axis ", i, " is negative");
    empty = empty || dims[i] == 0;
    // Even an empty shape must not overflow in between: [2^40, 2^40, 0] is refused, because its
    // reshape would be refused.
    if (dims[i] != 0 && !CheckedMul(n, dims[i], &n)) overflow = true;
  }
  if (overflow) return InvalidArgument("shape ", ShapeText(dims, rank), " has more than 2^63-1 elements");
  return empty ? 0 : n;
}

StatusOr<int64_t> CountBytes(const int64_t* dims, int32_t rank, uint32_t dtype) {
  uint32_t each = DTypeBytes(dtype);
  if (each == 0) return InvalidArgument("element type ", dtype, " is unknown");
  ASSIGN_OR_RETURN(int64_t n, CountElements(dims, rank));
  int64_t bytes;
  if (!CheckedMul(n, each, &bytes)) {
    return InvalidArgument("shape ", ShapeText(dims, rank), " of ", DTypeName(dtype), " has more than 2^63-1 bytes");
  }
  return bytes;
}

}  // namespace thalweg
