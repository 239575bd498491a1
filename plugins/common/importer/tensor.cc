#include "tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

namespace thalweg::importer {
namespace {

float FromHalf(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const float sign = (h & 0x8000) ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

uint16_t ToHalf(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::fabs(v);
  if (std::isnan(v)) return static_cast<uint16_t>(sign | 0x7e00);
  if (a >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = a == 0 ? -24 : std::ilogb(a);
  if (exponent < -14) exponent = -14;
  const double units = std::nearbyint(std::ldexp(a, 10 - exponent));   // ties to even, in units of the last place
  const auto bits = static_cast<int>(units) + (exponent + 14) * 1024;  // a carry moves to the next exponent
  return static_cast<uint16_t>(sign | bits);
}

uint16_t ToBfloat16(double v) {
  const auto f = static_cast<float>(v);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  if (std::isnan(f)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float FromBfloat16(uint16_t h) {
  const uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

// A real number outside the type becomes the nearest one inside, NaN zero; integers lose their upper bits.
template <class To, class From>
To Whole(From v) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(v)) return 0;
    if (v <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (v >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(v);
}

// Elements in a file need not be aligned.
template <class T>
T At(const Tensor& t, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(t.data()) + static_cast<uint64_t>(i) * sizeof v, sizeof v);
  return v;
}

template <class From>
void Put(uint32_t dtype, void* to, int64_t at, From v) {
  switch (dtype) {
    case TW_FLOAT: static_cast<float*>(to)[at] = static_cast<float>(v); break;
    case TW_DOUBLE: static_cast<double*>(to)[at] = static_cast<double>(v); break;
    case TW_HALF: static_cast<uint16_t*>(to)[at] = ToHalf(static_cast<double>(v)); break;
    case TW_BFLOAT16: static_cast<uint16_t*>(to)[at] = ToBfloat16(static_cast<double>(v)); break;
    case TW_INT8: static_cast<int8_t*>(to)[at] = Whole<int8_t>(v); break;
    case TW_UINT8: static_cast<uint8_t*>(to)[at] = Whole<uint8_t>(v); break;
    case TW_INT16: static_cast<int16_t*>(to)[at] = Whole<int16_t>(v); break;
    case TW_UINT16: static_cast<uint16_t*>(to)[at] = Whole<uint16_t>(v); break;
    case TW_INT32: static_cast<int32_t*>(to)[at] = Whole<int32_t>(v); break;
    case TW_UINT32: static_cast<uint32_t*>(to)[at] = Whole<uint32_t>(v); break;
    case TW_INT64: static_cast<int64_t*>(to)[at] = Whole<int64_t>(v); break;
    case TW_UINT64: static_cast<uint64_t*>(to)[at] = Whole<uint64_t>(v); break;
    case TW_BOOL: static_cast<uint8_t*>(to)[at] = v != 0; break;
    case TW_COMPLEX64: static_cast<float*>(to)[2 * at] = static_cast<float>(v); break;
    case TW_COMPLEX128: static_cast<double*>(to)[2 * at] = static_cast<double>(v); break;
    default: throw Error{TW_UNIMPLEMENTED, std::string("no constants are computed of type ") + DtypeName(dtype)};
  }
}

template <class To>
To Get(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case TW_FLOAT: return static_cast<To>(At<float>(t, i));
    case TW_DOUBLE: return static_cast<To>(At<double>(t, i));
    case TW_HALF: return static_cast<To>(FromHalf(At<uint16_t>(t, i)));
    case TW_BFLOAT16: return static_cast<To>(FromBfloat16(At<uint16_t>(t, i)));
    case TW_INT8:
    case TW_INT4:
    case TW_INT2: return static_cast<To>(At<int8_t>(t, i));
    case TW_UINT8:
    case TW_UINT4:
    case TW_UINT2:
    case TW_BOOL: return static_cast<To>(At<uint8_t>(t, i));
    case TW_INT16: return static_cast<To>(At<int16_t>(t, i));
    case TW_UINT16: return static_cast<To>(At<uint16_t>(t, i));
    case TW_INT32: return static_cast<To>(At<int32_t>(t, i));
    case TW_UINT32: return static_cast<To>(At<uint32_t>(t, i));
    case TW_INT64: return static_cast<To>(At<int64_t>(t, i));
    case TW_UINT64: return static_cast<To>(At<uint64_t>(t, i));
    default: throw Error{TW_INVALID_ARGUMENT, std::string("a number is needed here, not ") + DtypeName(t.dtype())};
  }
}

}  // namespace

Tensor::Tensor(uint32_t dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)), count_(CountOf(dims_)) {
  if (dtype == TW_STRING) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count_));
    data_ = strings_.get();
    return;
  }
  const uint64_t size = bytes();
  // operator new aligns for every element type; one byte more gives empty tensors an address of their own.
  std::shared_ptr<uint8_t[]> made(new uint8_t[size + 1]());
  data_ = made.get();
  keep_ = made;
}

Tensor::Tensor(uint32_t dtype, Dims dims, const void* data, std::shared_ptr<const void> keep)
    : dtype_(dtype), dims_(std::move(dims)), count_(CountOf(dims_)), data_(data), keep_(std::move(keep)) {}

Tensor Tensor::Vector(uint32_t dtype, const std::vector<int64_t>& values) {
  Tensor made(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) Put(dtype, made.mutable_data(), static_cast<int64_t>(i), values[i]);
  return made;
}

Tensor Tensor::Vector(uint32_t dtype, const std::vector<double>& values) {
  Tensor made(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) Put(dtype, made.mutable_data(), static_cast<int64_t>(i), values[i]);
  return made;
}

Tensor Tensor::Scalar(uint32_t dtype, double value) {
  Tensor made(dtype, {});
  Put(dtype, made.mutable_data(), 0, value);
  return made;
}

Tensor Tensor::String(Dims dims, std::vector<std::string> values) {
  Tensor made;
  made.dtype_ = TW_STRING;
  made.dims_ = std::move(dims);
  made.count_ = CountOf(made.dims_);
  made.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  made.data_ = made.strings_.get();
  return made;
}

uint64_t Tensor::bytes() const { return static_cast<uint64_t>(count_) * ElementBytes(dtype_); }

int64_t Tensor::integer(int64_t i) const { return Get<int64_t>(*this, i); }
double Tensor::real(int64_t i) const { return Get<double>(*this, i); }

std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count_; ++i) all.push_back(integer(i));
  return all;
}

std::vector<double> Tensor::reals() const {
  std::vector<double> all;
  for (int64_t i = 0; i < count_; ++i) all.push_back(real(i));
  return all;
}

Tensor Tensor::Reshaped(Dims dims) const {
  if (CountOf(dims) != count_) {
    throw Error{TW_INVALID_ARGUMENT, "a constant of shape " + Text(dims_) + " cannot have shape " + Text(dims)};
  }
  Tensor made = *this;
  made.dims_ = std::move(dims);
  return made;
}

uint32_t ElementBytes(uint32_t dtype) {
  switch (dtype) {
    case TW_BOOL:
    case TW_INT8:
    case TW_UINT8:
    case TW_INT4:
    case TW_UINT4:
    case TW_INT2:
    case TW_UINT2:
    case TW_FLOAT8_E4M3FN:
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E5M2:
    case TW_FLOAT8_E5M2FNUZ: return 1;
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_INT16:
    case TW_UINT16: return 2;
    case TW_FLOAT:
    case TW_INT32:
    case TW_UINT32: return 4;
    case TW_DOUBLE:
    case TW_INT64:
    case TW_UINT64:
    case TW_COMPLEX64: return 8;
    case TW_COMPLEX128: return 16;
    default: return 0;
  }
}

const char* DtypeName(uint32_t dtype) {
  static constexpr const char* kNames[] = {"no type",
                                           "float",
                                           "double",
                                           "int32",
                                           "uint8",
                                           "int16",
                                           "int8",
                                           "string",
                                           "complex64",
                                           "int64",
                                           "bool",
                                           "qint8",
                                           "quint8",
                                           "qint32",
                                           "bfloat16",
                                           "qint16",
                                           "quint16",
                                           "uint16",
                                           "complex128",
                                           "half",
                                           "resource",
                                           "variant",
                                           "uint32",
                                           "uint64",
                                           "float8_e5m2",
                                           "float8_e4m3fn",
                                           "float8_e4m3fnuz",
                                           "float8_e4m3b11fnuz",
                                           "float8_e5m2fnuz",
                                           "int4",
                                           "uint4",
                                           "int2",
                                           "uint2"};
  return dtype < sizeof kNames / sizeof kNames[0] ? kNames[dtype] : "an unknown type";
}

bool IsInteger(uint32_t dtype) {
  switch (dtype) {
    case TW_INT8:
    case TW_INT16:
    case TW_INT32:
    case TW_INT64:
    case TW_UINT8:
    case TW_UINT16:
    case TW_UINT32:
    case TW_UINT64:
    case TW_INT4:
    case TW_UINT4:
    case TW_INT2:
    case TW_UINT2: return true;
    default: return false;
  }
}

bool IsFloating(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16; }

int64_t CountOf(const Dims& dims) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t d : dims) {
    if (d < 0) throw Error{TW_INVALID_ARGUMENT, "the shape " + Text(dims) + " has a negative size"};
    empty |= d == 0;
  }
  if (empty) return 0;
  for (const int64_t d : dims) {
    // 2^58 elements of 16 bytes are 2^62 bytes.
    if (count > (int64_t{1} << 58) / d) throw Error{TW_RESOURCE_EXHAUSTED, "the shape " + Text(dims) + " is too large"};
    count *= d;
  }
  return count;
}

std::string Text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) text += ", ";
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}

}  // namespace thalweg::importer
