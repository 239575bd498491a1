#include "tests/fuzz/op/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "thalweg/types.h"

namespace thalweg::fuzz {
namespace {

template <class T>
std::vector<double> Wide(const tw_tensor& t) {
  const uint64_t n = tw_tensor_bytes(&t) / sizeof(T);
  const T* data = static_cast<const T*>(tw_tensor_data(&t));
  return std::vector<double>(data, data + n);
}

double OfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

double OfBfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return f;
}

std::vector<double> Wide16(const tw_tensor& t, double (*widen)(uint16_t)) {
  const auto* data = static_cast<const uint16_t*>(tw_tensor_data(&t));
  std::vector<double> out(tw_tensor_count(&t));
  std::transform(data, data + out.size(), out.begin(), widen);
  return out;
}

// Returns the real numbers of a tensor, with the parts of complex numbers separately; none for
// other types. ulp: the ulp of 1.
std::vector<double> Reals(const tw_tensor& t, double* ulp) {
  switch (tw_tensor_dtype(&t)) {
    case TW_FLOAT:
    case TW_COMPLEX64: *ulp = 0x1p-23; return Wide<float>(t);
    case TW_DOUBLE:
    case TW_COMPLEX128: *ulp = 0x1p-52; return Wide<double>(t);
    case TW_HALF: *ulp = 0x1p-10; return Wide16(t, OfHalf);
    case TW_BFLOAT16: *ulp = 0x1p-7; return Wide16(t, OfBfloat16);
    default: *ulp = 0; return {};
  }
}

bool SameShape(const tw_tensor& a, const tw_tensor& b) {
  return tw_tensor_dtype(&a) == tw_tensor_dtype(&b) && tw_tensor_rank(&a) == tw_tensor_rank(&b) &&
         std::equal(tw_tensor_dims(&a), tw_tensor_dims(&a) + tw_tensor_rank(&a), tw_tensor_dims(&b));
}

bool HasBytes(uint32_t dtype) { return dtype != TW_STRING && dtype != TW_RESOURCE && dtype != TW_VARIANT; }

// The bits of a half or bfloat16. kExponent: the mask of the exponent.
template <uint16_t kExponent>
struct Bits16 {
  uint16_t bits;
  bool operator==(const Bits16&) const { return (bits & 0x7fff) <= kExponent; }  // false for NaN
};

// Returns true for equal bits, or two NaNs.
template <class T>
bool SameReals(const void* a, const void* b, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, static_cast<const char*>(a) + i, sizeof x);
    std::memcpy(&y, static_cast<const char*>(b) + i, sizeof y);
    if (std::memcmp(&x, &y, sizeof x) != 0 && (x == x || y == y)) return false;
  }
  return true;
}

bool SameBytes(uint32_t dtype, const void* a, const void* b, uint64_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return true;
  switch (dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: return SameReals<float>(a, b, bytes);
    case TW_DOUBLE:
    case TW_COMPLEX128: return SameReals<double>(a, b, bytes);
    case TW_HALF: return SameReals<Bits16<0x7c00>>(a, b, bytes);
    case TW_BFLOAT16: return SameReals<Bits16<0x7f80>>(a, b, bytes);
    default: return false;
  }
}

}  // namespace

std::string Difference(const Tensor& a, const Tensor& b) {
  if (!a || !b) return !a && !b ? "" : "one of the values is not there";
  const uint32_t dtype = tw_tensor_dtype(a.get());
  if (dtype != tw_tensor_dtype(b.get())) return "the types differ";
  if (!SameShape(*a, *b)) return "the shapes differ";
  if (dtype == TW_STRING) {
    for (uint64_t i = 0; i < tw_tensor_count(a.get()); ++i) {
      const auto* x = static_cast<const tw_string*>(tw_tensor_data(a.get())) + i;
      const auto* y = static_cast<const tw_string*>(tw_tensor_data(b.get())) + i;
      if (std::string_view(x->data, x->size) != std::string_view(y->data, y->size))
        return "the texts differ at element " + std::to_string(i);
    }
  }
  if (!HasBytes(dtype)) return "";
  const bool same = SameBytes(dtype, tw_tensor_data(a.get()), tw_tensor_data(b.get()), tw_tensor_bytes(a.get()));
  return same ? "" : "the elements differ";
}

std::string Far(const tw_tensor& a, const tw_tensor& b) {
  if (!SameShape(a, b)) return "has another type or shape";
  if (tw_tensor_count(&a) == 0 || !HasBytes(tw_tensor_dtype(&a))) return "";
  double ulp = 0;
  const std::vector<double> x = Reals(a, &ulp), y = Reals(b, &ulp);
  if (x.empty()) return std::memcmp(tw_tensor_data(&a), tw_tensor_data(&b), tw_tensor_bytes(&a)) ? "has other elements" : "";
  // The error of a sum that cancels is relative to its unknown terms; assumes at least the
  // magnitude of the inputs.
  constexpr double kRoundings = 512, kInputs = 16;
  double most = kInputs;
  for (double v : x) most = std::isfinite(v) ? std::max(most, std::abs(v)) : most;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same && !(std::abs(x[i] - y[i]) <= kRoundings * ulp * most)) {
      return "has " + std::to_string(y[i]) + " instead of " + std::to_string(x[i]) + " at " + std::to_string(i);
    }
  }
  return "";
}

}  // namespace thalweg::fuzz
