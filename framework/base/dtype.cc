#include "framework/base/dtype.h"

namespace thalweg {
namespace {

constexpr DTypeInfo kTypes[] = {
    {TW_FLOAT, "float", 4, true},
    {TW_DOUBLE, "double", 8, true},
    {TW_INT32, "int32", 4, true},
    {TW_UINT8, "uint8", 1, true},
    {TW_INT16, "int16", 2, true},
    {TW_INT8, "int8", 1, true},
    {TW_STRING, "string", sizeof(tw_string), false},
    {TW_COMPLEX64, "complex64", 8, true},
    {TW_INT64, "int64", 8, true},
    {TW_BOOL, "bool", 1, true},
    {TW_QINT8, "qint8", 1, true},
    {TW_QUINT8, "quint8", 1, true},
    {TW_QINT32, "qint32", 4, true},
    {TW_BFLOAT16, "bfloat16", 2, true},
    {TW_QINT16, "qint16", 2, true},
    {TW_QUINT16, "quint16", 2, true},
    {TW_UINT16, "uint16", 2, true},
    {TW_COMPLEX128, "complex128", 16, true},
    {TW_HALF, "half", 2, true},
    {TW_RESOURCE, "resource", sizeof(void*), false},
    {TW_VARIANT, "variant", sizeof(void*), false},
    {TW_UINT32, "uint32", 4, true},
    {TW_UINT64, "uint64", 8, true},
    {TW_FLOAT8_E5M2, "float8_e5m2", 1, true},
    {TW_FLOAT8_E4M3FN, "float8_e4m3fn", 1, true},
    {TW_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1, true},
    {TW_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1, true},
    {TW_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1, true},
    {TW_INT4, "int4", 1, true},
    {TW_UINT4, "uint4", 1, true},
    {TW_INT2, "int2", 1, true},
    {TW_UINT2, "uint2", 1, true},
};
// Names of the reference forms, in the same order.
constexpr std::string_view kRefNames[] = {
    "float_ref",
    "double_ref",
    "int32_ref",
    "uint8_ref",
    "int16_ref",
    "int8_ref",
    "string_ref",
    "complex64_ref",
    "int64_ref",
    "bool_ref",
    "qint8_ref",
    "quint8_ref",
    "qint32_ref",
    "bfloat16_ref",
    "qint16_ref",
    "quint16_ref",
    "uint16_ref",
    "complex128_ref",
    "half_ref",
    "resource_ref",
    "variant_ref",
    "uint32_ref",
    "uint64_ref",
    "float8_e5m2_ref",
    "float8_e4m3fn_ref",
    "float8_e4m3fnuz_ref",
    "float8_e4m3b11fnuz_ref",
    "float8_e5m2fnuz_ref",
    "int4_ref",
    "uint4_ref",
    "int2_ref",
    "uint2_ref",
};
constexpr uint32_t kCount = sizeof(kTypes) / sizeof(kTypes[0]);
static_assert(kCount == TW_UINT2 && sizeof(kRefNames) / sizeof(kRefNames[0]) == kCount);

}  // namespace

const DTypeInfo* FindDType(uint32_t dtype) {
  uint32_t base = BaseType(dtype);
  // The table is in the order of the type numbers, which have no gaps.
  return base >= 1 && base <= kCount ? &kTypes[base - 1] : nullptr;
}

uint32_t DTypeByName(std::string_view name) {
  for (uint32_t i = 0; i < kCount; ++i) {
    if (kTypes[i].name == name) return kTypes[i].dtype;
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    if (kRefNames[i] == name) return kTypes[i].dtype + TW_REF;
  }
  return TW_INVALID_TYPE;
}

std::string_view DTypeName(uint32_t dtype) {
  const DTypeInfo* info = FindDType(dtype);
  if (!info) return "unknown type";
  return IsRef(dtype) ? kRefNames[info->dtype - 1] : info->name;
}

uint32_t DTypeBytes(uint32_t dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info ? info->bytes : 0;
}

}  // namespace thalweg
