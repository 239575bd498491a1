// Views tensors of any type as runs of elements, for kernels that move data, and reads index
// vectors. This header is cheap to include; arithmetic types are in types.h. Threads: pure
// functions.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_ELEMENT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_ELEMENT_H_

#include <iterator>
#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

inline constexpr int kMaxRank = 254;  // as in TensorFlow's shapes; the host accepts no larger rank

[[noreturn]] inline void Invalid(std::string text) { throw tw::Error{TW_INVALID_ARGUMENT, std::move(text)}; }

// Returns the size of an element in bytes, or 0 for types whose elements own memory (string,
// resource, variant).
constexpr uint32_t ElementBytes(uint32_t dtype) {
  switch (dtype) {
    case TW_INVALID_TYPE:
    case TW_STRING:
    case TW_RESOURCE:
    case TW_VARIANT: return 0;
    case TW_COMPLEX128: return 16;
    case TW_DOUBLE:
    case TW_INT64:
    case TW_UINT64:
    case TW_COMPLEX64: return 8;
    case TW_FLOAT:
    case TW_INT32:
    case TW_UINT32:
    case TW_QINT32: return 4;
    case TW_INT16:
    case TW_UINT16:
    case TW_QINT16:
    case TW_QUINT16:
    case TW_HALF:
    case TW_BFLOAT16: return 2;
    default:  // bool, 8-bit and smaller numbers
      return 1;
  }
}

// Returns the name of an element type, for messages.
inline std::string TypeText(uint32_t dtype) {
  if (dtype == TW_INVALID_TYPE) return "no type";
  return dtype < std::size(tw::dtype_names) ? std::string(tw::dtype_names[dtype]) : "element type " + std::to_string(dtype);
}

struct Bytes16 {
  uint64_t half[2];
};

// Calls body(T{}) with a type T of `bytes` bytes: 1, 2, 4, 8 or 16.
template <class F>
void BySize(uint32_t bytes, F&& body) {
  switch (bytes) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    case 8: return body(uint64_t{});
    default: return body(Bytes16{});
  }
}

inline bool SameDims(const tw_view* a, const tw_view* b) {
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; ++i)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

inline char* Bytes(const tw_view* v) { return static_cast<char*>(v->data) + v->offset; }
inline const tw_string& StringAt(const tw_view* v, uint64_t i) { return reinterpret_cast<const tw_string*>(Bytes(v))[i]; }
inline std::string DimsText(const tw_view* v) { return tw::text(v->dims, v->rank); }

// Returns the position of element i, for messages: "[1, 0, 2]".
inline std::string PositionText(const tw_view* v, uint64_t i) {
  std::string s;
  for (int32_t axis = v->rank; axis-- > 0;) {
    s = std::to_string(i % uint64_t(v->dims[axis])) + (s.empty() ? "" : ", ") + s;
    i /= uint64_t(v->dims[axis]);
  }
  return "[" + s + "]";
}

// Returns element i of an integer tensor. REQUIRES: an int32, int64, int16, int8, uint8 or uint16
// tensor.
inline int64_t IndexAt(const tw_view* v, uint64_t i) {
  const char* p = Bytes(v);
  switch (v->dtype) {
    case TW_INT32: return reinterpret_cast<const int32_t*>(p)[i];
    case TW_INT64: return reinterpret_cast<const int64_t*>(p)[i];
    case TW_INT16: return reinterpret_cast<const int16_t*>(p)[i];
    case TW_INT8: return reinterpret_cast<const int8_t*>(p)[i];
    case TW_UINT8: return reinterpret_cast<const uint8_t*>(p)[i];
    case TW_UINT16: return reinterpret_cast<const uint16_t*>(p)[i];
    default: throw tw::Error{TW_UNIMPLEMENTED, "indices of type " + TypeText(v->dtype) + " are not supported; cast them to int64"};
  }
}

// A few numbers, one per axis, held without heap memory.
struct Ints {
  int n = 0;
  int64_t at[kMaxRank];
  int64_t& operator[](int i) { return at[i]; }
  int64_t operator[](int i) const { return at[i]; }
  void push(int64_t v) {
    if (n == kMaxRank) Invalid("more than " + std::to_string(kMaxRank) + " axes");
    at[n++] = v;
  }
};

// Returns the values of a small index tensor of any rank.
inline Ints ReadInts(const tw_view* v, const char* what) {
  if (v->count > uint64_t(kMaxRank))
    Invalid(std::string(what) + " holds " + std::to_string(v->count) + " values, one per axis at most " + std::to_string(kMaxRank));
  Ints r;
  for (uint64_t i = 0; i < v->count; ++i) r.push(IndexAt(v, i));
  return r;
}

// Returns the axis that `axis` names in a tensor of rank `rank`. A negative `axis` counts from the
// end.
inline int Axis(int64_t axis, int rank, const char* what = "axis") {
  if (axis < -rank || axis >= rank)
    Invalid(std::string(what) + " " + std::to_string(axis) + " is not in [" + std::to_string(-rank) + ", " + std::to_string(rank) + ")");
  return int(axis < 0 ? axis + rank : axis);
}

// Returns the product of dims[begin] .. dims[end - 1]. The product does not overflow, because the
// host made the tensor. The exception is an empty tensor: the product of some of its axes may then
// be any number, and must not be used.
inline int64_t Product(const int64_t* dims, int begin, int end) {
  uint64_t n = 1;
  for (int i = begin; i < end; ++i) n *= uint64_t(dims[i]);
  return int64_t(n);
}

// Returns the strides in elements along each axis of a dense tensor with these dims.
inline Ints DenseStrides(const int64_t* dims, int rank) {
  Ints s;
  s.n = rank;
  uint64_t step = 1;  // may be any number for an empty tensor
  for (int i = rank; i-- > 0; step *= uint64_t(dims[i])) s[i] = int64_t(step);
  return s;
}

// Allocates output `out` with these dims if its shape was not known before. Else REQUIRES: the host
// planned the same dims (throws INTERNAL).
template <class T>
void Allocate(const tw::Out<T>& out, const int64_t* dims, int rank) {
  if (out.rank() < 0) {
    tw::check(out.f->host->tensor->allocate(out.f, out.o, dims, uint32_t(rank)));
    return;
  }
  bool same = out.rank() == rank;
  for (int i = 0; same && i < rank; ++i) same = out.dim(i) == dims[i];
  if (!same) throw tw::Error{TW_INTERNAL, "the output was planned as " + DimsText(out.v()) + " but is " + tw::text(dims, rank)};
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_ELEMENT_H_
