// The table of element types: names, sizes, what they are made of.
#pragma once
#include <cstdint>
#include <string_view>

#include "thalweg/types.h"

namespace thalweg {

struct DTypeInfo {
  uint32_t dtype;
  std::string_view name;  // as in schema text: "float", "int32"; "float_ref" for reference forms
  uint32_t bytes;         // of one element
  bool plain;             // bytes that may be copied as they are (not string, resource, variant)
};

// NULL for a number that is no type.
const DTypeInfo* FindDType(uint32_t dtype);
// TW_INVALID_TYPE for an unknown name.
uint32_t DTypeByName(std::string_view name);
// "float", or "type 77" for an unknown number.
std::string_view DTypeName(uint32_t dtype);
// 0 for an unknown number.
uint32_t DTypeBytes(uint32_t dtype);
inline bool IsRef(uint32_t dtype) { return dtype > TW_REF; }
inline uint32_t BaseType(uint32_t dtype) { return dtype > TW_REF ? dtype - TW_REF : dtype; }

}  // namespace thalweg
