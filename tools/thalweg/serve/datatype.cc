#include "datatype.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "thalweg/tensor.h"

namespace thalweg::cli::serve {
namespace {

struct Named {
  const char* name;
  uint32_t dtype;
};
constexpr Named kNames[] = {{"BOOL", TW_BOOL},  {"UINT8", TW_UINT8}, {"UINT16", TW_UINT16}, {"UINT32", TW_UINT32}, {"UINT64", TW_UINT64},
                            {"INT8", TW_INT8},  {"INT16", TW_INT16}, {"INT32", TW_INT32},   {"INT64", TW_INT64},   {"FP16", TW_HALF},
                            {"FP32", TW_FLOAT}, {"FP64", TW_DOUBLE}, {"BYTES", TW_STRING},  {"BF16", TW_BFLOAT16}};

}  // namespace

std::string DatatypeName(uint32_t dtype) {
  for (const Named& n : kNames) {
    if (n.dtype == dtype) return n.name;
  }
  std::string name = tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "unknown";
  for (char& c : name) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return name;
}

uint32_t FindDatatype(std::string_view name) {
  for (const Named& n : kNames) {
    if (n.name == name) return n.dtype;
  }
  return TW_INVALID_TYPE;
}

bool IsCarried(uint32_t dtype) { return FindDatatype(DatatypeName(dtype)) == dtype && dtype != TW_INVALID_TYPE; }

std::string DimsText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + (dims[i] < 0 ? "?" : std::to_string(dims[i]));
  return text + "]";
}

std::string DimsText(const tw_shape& shape) {
  return shape.rank < 0 ? "any shape" : DimsText(std::vector<int64_t>(shape.dims, shape.dims + shape.rank));
}

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float HalfToFloat(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value;
  if (exponent == 31) {
    value = fraction ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(float(fraction), -24);
  } else {
    value = std::ldexp(float(fraction | 1024), exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

uint16_t FloatToHalf(float value) {
  const uint16_t sign = uint16_t(std::signbit(value) ? 0x8000 : 0);
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;  // the first value that rounds to infinity
  int exponent = 0;
  std::frexp(size, &exponent);  // size = [0.5, 1) * 2^exponent
  // A half has 11 bits of precision above 2^-14 and steps of 2^-24 below. nearbyint rounds ties to even.
  const int step = std::max(exponent - 11, -24);
  const auto units = uint32_t(std::nearbyint(std::ldexp(size, -step)));
  // With units in [1024, 2048] the carry of 2048 goes into the exponent by itself.
  return uint16_t(sign | (step == -24 && units < 1024 ? units : uint32_t(step + 24) * 1024 + units));
}

}  // namespace thalweg::cli::serve
