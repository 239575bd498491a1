#include "tools/conformance/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "framework/base/dtype.h"
#include "framework/graph/builder.h"

namespace thalweg::conformance {
namespace {

double FromHalf(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const double sign = h & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return exponent ? sign * std::ldexp(1024 + mantissa, exponent - 25) : sign * std::ldexp(mantissa, -24);
}

double FromBfloat16(uint16_t b) {
  const uint32_t bits = uint32_t{b} << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

template <class T>
std::vector<double> Each(const Tensor& t, uint64_t per_element = 1) {
  const T* p = t.as<T>();
  return std::vector<double>(p, p + t.count() * per_element);
}

// Returns the tolerance between two numbers of a type, as a fraction of the largest; 0: they must
// be equal.
double Tolerance(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: return 3e-5;
    case TW_DOUBLE:
    case TW_COMPLEX128: return 1e-10;
    case TW_HALF: return 6e-3;
    case TW_BFLOAT16: return 4e-2;
    default: return 0;
  }
}

bool Close(double a, double b, double within) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= within;
}

double Largest(const std::vector<double>& v) {
  double most = 1;
  for (double x : v) {
    if (std::isfinite(x)) most = std::max(most, std::fabs(x));
  }
  return most;
}

}  // namespace

std::vector<double> NumbersOf(const Tensor& t) {
  switch (t.dtype()) {
    case TW_FLOAT: return Each<float>(t);
    case TW_DOUBLE: return Each<double>(t);
    case TW_INT32: return Each<int32_t>(t);
    case TW_UINT8:
    case TW_BOOL: return Each<uint8_t>(t);
    case TW_INT16: return Each<int16_t>(t);
    case TW_INT8: return Each<int8_t>(t);
    case TW_INT64: return Each<int64_t>(t);
    case TW_UINT16: return Each<uint16_t>(t);
    case TW_UINT32: return Each<uint32_t>(t);
    case TW_UINT64: return Each<uint64_t>(t);
    case TW_COMPLEX64: return Each<float>(t, 2);
    case TW_COMPLEX128: return Each<double>(t, 2);
    case TW_HALF:
    case TW_BFLOAT16: {
      std::vector<double> out;
      for (uint64_t i = 0; i < t.count(); ++i) {
        out.push_back(t.dtype() == TW_HALF ? FromHalf(t.as<uint16_t>()[i]) : FromBfloat16(t.as<uint16_t>()[i]));
      }
      return out;
    }
    default: return {};
  }
}

StatusOr<Tensor> TensorOf(uint32_t dtype, const Shape& shape, double (*fill)(uint64_t i)) {
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, shape));
  if (dtype == TW_STRING) {
    for (uint64_t i = 0; i < t.count(); ++i) RETURN_IF_ERROR(t.SetString(i, StrCat("s", int64_t(fill(i)))));
    return t;
  }
  const auto all = [&](auto* to) {
    for (uint64_t i = 0; i < t.count(); ++i) to[i] = std::remove_pointer_t<decltype(to)>(fill(i));
    return t;
  };
  switch (dtype) {  // common types, without ScalarTensor
    case TW_FLOAT: return all(t.as<float>());
    case TW_DOUBLE: return all(t.as<double>());
    case TW_INT32: return all(t.as<int32_t>());
    case TW_INT64: return all(t.as<int64_t>());
    default: break;
  }
  const DTypeInfo* info = FindDType(dtype);
  if (!info || !info->plain) return Unimplemented("no value can be made up for ", DTypeName(dtype));
  for (uint64_t i = 0; i < t.count(); ++i) {
    ASSIGN_OR_RETURN(Tensor one, ScalarTensor(dtype, fill(i)));
    std::memcpy(t.as<char>() + i * info->bytes, one.data(), info->bytes);
  }
  return t;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == TW_STRING) {
    for (uint64_t i = 0; i < a.count(); ++i) {
      if (a.str(i) != b.str(i)) return false;
    }
    return true;
  }
  if (a.dtype() == TW_VARIANT || a.dtype() == TW_RESOURCE) {  // objects are opaque, and each host has its own
    for (uint64_t i = 0; i < a.count(); ++i) {
      if (!a.as<Handle*>()[i] != !b.as<Handle*>()[i]) return false;
    }
    return true;
  }
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::string Differs(const Tensor& got, const Tensor& want, std::optional<double> tolerance) {
  if (got.dtype() != want.dtype()) return StrCat("it is ", DTypeName(got.dtype()), " instead of ", DTypeName(want.dtype()));
  if (!(got.shape() == want.shape())) return StrCat("its shape is ", got.shape().text(), " instead of ", want.shape().text());
  const std::vector<double> a = NumbersOf(got), b = NumbersOf(want);
  if (b.empty()) return SameBits(got, want) ? "" : "its elements differ";
  const double within = tolerance.value_or(Tolerance(want.dtype())) * Largest(b);
  for (size_t i = 0; i < b.size(); ++i) {
    if (!Close(a[i], b[i], within)) return StrCat("element ", i, " of ", b.size(), " is ", a[i], " instead of ", b[i]);
  }
  return "";
}

}  // namespace thalweg::conformance
