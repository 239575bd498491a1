#include "common.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace thalweg::stablehlo {

bool IsBool(const Value& v) { return v.dtype() == TW_BOOL; }
bool IsComplex(const Value& v) { return v.dtype() == TW_COMPLEX64 || v.dtype() == TW_COMPLEX128; }
bool IsReal(const Value& v) { return importer::IsFloating(v.dtype()); }
bool IsWhole(const Value& v) { return importer::IsInteger(v.dtype()); }
bool IsUnsigned(const Value& v) {
  return v.dtype() == TW_UINT8 || v.dtype() == TW_UINT16 || v.dtype() == TW_UINT32 || v.dtype() == TW_UINT64;
}

uint32_t BitsOf(uint32_t dtype) { return importer::ElementBytes(dtype) * 8; }

uint32_t UnsignedOf(uint32_t dtype) {
  switch (BitsOf(dtype)) {
    case 8: return TW_UINT8;
    case 16: return TW_UINT16;
    case 32: return TW_UINT32;
    case 64: return TW_UINT64;
    default: throw Error{TW_UNIMPLEMENTED, std::string("bits of ") + importer::DtypeName(dtype) + " are not supported"};
  }
}

uint32_t SignedOf(uint32_t dtype) {
  switch (UnsignedOf(dtype)) {
    case TW_UINT8: return TW_INT8;
    case TW_UINT16: return TW_INT16;
    case TW_UINT32: return TW_INT32;
    default: return TW_INT64;
  }
}

uint32_t PartOf(uint32_t complex) { return complex == TW_COMPLEX128 ? TW_DOUBLE : TW_FLOAT; }

Value Like(Translation& t, const Value& v, double value) {
  if (v.dtype() == TW_COMPLEX64 || v.dtype() == TW_COMPLEX128) {
    Tensor made(v.dtype(), {});
    if (v.dtype() == TW_COMPLEX64) {
      *static_cast<float*>(made.mutable_data()) = static_cast<float>(value);
    } else {
      *static_cast<double*>(made.mutable_data()) = value;
    }
    return t.constant(made);
  }
  return t.scalar(v.dtype(), value);
}

Value Whole(Translation& t, uint32_t dtype, uint64_t bits) {
  Tensor made(dtype, {});
  // The low bytes stand first on the machines that the runtime supports.
  std::memcpy(made.mutable_data(), &bits, importer::ElementBytes(dtype));
  return t.constant(made);
}

Value Bits(Translation& t, const Value& v, uint32_t dtype) {
  return v.dtype() == dtype ? v : t.op("Bitcast", {v}, {{"type", Dtype{dtype}}});
}

Value Known(Translation& t, int64_t size) {
  Tensor made(TW_INT64, {});
  *static_cast<int64_t*>(made.mutable_data()) = size;
  return t.constant(made);
}

int64_t NumberOf(const Value& size) { return size.constant() ? size.constant()->integer(0) : -1; }

Value Sized(Translation& t, const char* op, const Value& a, const Value& b) {
  const std::string_view name = op;
  if (a.constant() && b.constant()) {
    const int64_t x = a.constant()->integer(0), y = b.constant()->integer(0);
    int64_t z = 0;
    bool fits = true;
    if (name == "AddV2") {
      fits = !__builtin_add_overflow(x, y, &z);
    } else if (name == "Sub") {
      fits = !__builtin_sub_overflow(x, y, &z);
    } else if (name == "Mul") {
      fits = !__builtin_mul_overflow(x, y, &z);
    } else if (name == "TruncateDiv") {
      fits = y > 0;
      if (fits) z = x / y;
    } else if (name == "Maximum") {
      z = std::max(x, y);
    } else {
      z = std::min(x, y);
    }
    if (!fits) throw Error{TW_RESOURCE_EXHAUSTED, "a size does not fit 64 bits: " + std::to_string(x) + " and " + std::to_string(y)};
    return Known(t, z);
  }
  // What changes nothing adds no node.
  if (name == "AddV2" && a.constant() && a.constant()->integer(0) == 0) return b;
  if ((name == "AddV2" || name == "Sub") && b.constant() && b.constant()->integer(0) == 0) return a;
  if (name == "Mul" && a.constant() && a.constant()->integer(0) == 1) return b;
  if ((name == "Mul" || name == "TruncateDiv") && b.constant() && b.constant()->integer(0) == 1) return a;
  return t.op(op, {a, b});
}

Value Vector(Translation& t, const std::vector<Value>& sizes) {
  std::vector<int64_t> known;
  for (const Value& size : sizes) {
    if (!size.constant()) return t.flat(sizes);
    known.push_back(size.constant()->integer(0));
  }
  return t.ints(known);
}

std::vector<Value> SizesOf(Translation& t, const Value& v) {
  if (v.rank() < 0) throw Error{TW_UNIMPLEMENTED, "the rank of a value is unknown"};
  std::vector<Value> sizes;
  for (int axis = 0; axis < v.rank(); ++axis) sizes.push_back(v.dim(axis) >= 0 ? Known(t, v.dim(axis)) : t.size(v, axis));
  return sizes;
}

std::vector<Value> Parts(Translation& t, const Value& vector, int64_t count) {
  std::vector<Value> parts;
  if (vector.known()) {
    const std::vector<int64_t> all = vector.integers();
    if (all.size() != static_cast<size_t>(count)) {
      throw Error{TW_INVALID_ARGUMENT,
                  "sizes or places for " + std::to_string(count) + " axes are needed, but there are " + std::to_string(all.size())};
    }
    for (const int64_t one : all) parts.push_back(Known(t, one));
    return parts;
  }
  const Value whole = t.cast(vector, TW_INT64);
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(t.reshape(t.op("Slice", {whole, t.ints({i}), t.ints({1})}), Dims{}));
  }
  return parts;
}

Value Places(Translation& t, const Value& indices) {
  const Value wide = t.cast(indices, TW_INT64);
  if (indices.dtype() != TW_UINT64) return wide;
  return t.op("SelectV2", {t.op("Less", {wide, Known(t, 0)}), Known(t, int64_t{1} << 62), wide});
}

Value ReshapeTo(Translation& t, const Value& v, const std::vector<Value>& sizes) {
  Dims dims;
  bool zero = false;
  for (const Value& size : sizes) {
    dims.push_back(NumberOf(size));
    zero |= dims.back() == 0;
  }
  const auto unknown = std::count(dims.begin(), dims.end(), -1);
  // A size that is unknown now follows from the others, unless one of those is 0.
  if (unknown == 0 || (unknown == 1 && !zero)) return t.reshape(v, dims);
  return t.shaped(t.reshape(v, Vector(t, sizes)), {dims, true});
}

Value BroadcastTo(Translation& t, const Value& v, const std::vector<Value>& sizes) {
  Dims dims;
  for (const Value& size : sizes) dims.push_back(NumberOf(size));
  bool all = std::count(dims.begin(), dims.end(), -1) == 0;
  if (all && v.rank() == static_cast<int>(dims.size()) && v.dims() == dims) return v;
  return t.shaped(t.broadcast(v, Vector(t, sizes)), {dims, true});
}

Value Product(Translation& t, const std::vector<Value>& sizes, size_t begin, size_t end) {
  Value all = Known(t, 1);
  for (size_t i = begin; i < end; ++i) all = Times(t, all, sizes[i]);
  return all;
}

Value Count(Translation& t, const Value& end) {
  const int64_t known = NumberOf(end);
  if (known >= 0 && known <= 128) {
    std::vector<int64_t> numbers(static_cast<size_t>(known));
    std::iota(numbers.begin(), numbers.end(), 0);
    return t.ints(numbers);
  }
  return t.op("Range", {Known(t, 0), end, Known(t, 1)});
}

Value CountAlong(Translation& t, const Value& end, int rank, int axis) {
  Dims dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = NumberOf(end);
  return t.reshape(Count(t, end), dims);
}

void WantStatic(const Op& op, const Value& v, const char* why) {
  if (!v.static_shape()) {
    op.unsupported(std::string("a size is unknown here, and ") + why +
                   " needs all sizes; export the program with the sizes that it shall run with");
  }
}

int RankOf(const Op& op, const Value& v) {
  if (v.rank() < 0) op.unsupported("the rank of an operand is unknown; export the program with ranked tensors");
  return v.rank();
}

int AxisOf(const Op& op, int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) {
    op.fail("axis " + std::to_string(axis) + " is outside of a value of rank " + std::to_string(rank) + "; it must be in [0, " +
            std::to_string(rank) + ")");
  }
  return static_cast<int>(axis);
}

void CheckParts(const Op& op, const std::vector<Value>& sizes, const std::vector<Value>& parts) {
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (!sizes[axis].constant() || !parts[axis].constant()) continue;
    const int64_t size = sizes[axis].constant()->integer(0), part = parts[axis].constant()->integer(0);
    if (part >= 0 && part <= size) continue;
    op.fail("a part of " + std::to_string(part) + " elements is meant of axis " + std::to_string(axis) + ", which has " +
            std::to_string(size));
  }
}

bool Contains(const std::vector<int64_t>& all, int64_t one) { return std::find(all.begin(), all.end(), one) != all.end(); }

std::vector<int64_t> Others(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!Contains(axes, axis)) others.push_back(axis);
  }
  return others;
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace thalweg::stablehlo
