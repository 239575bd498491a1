// The table of element types: their names, sizes and whether they are plain bytes. Threads: any.
#pragma once
#include <cstdint>
#include <string_view>

#include "thalweg/types.h"

namespace thalweg {

struct DTypeInfo {
  uint32_t dtype;
  std::string_view name;  // as in schema text: "float", "int32"; "float_ref" for reference forms
  uint32_t bytes;         // size of one element
  bool plain;             // may be copied byte by byte (not string, resource, variant)
};

// Returns NULL if the number is not a type.
const DTypeInfo* FindDType(uint32_t dtype);
// Returns TW_INVALID_TYPE for an unknown name.
uint32_t DTypeByName(std::string_view name);
// Returns a name such as "float", or "unknown type" for an unknown number.
std::string_view DTypeName(uint32_t dtype);
// Returns 0 for an unknown number.
uint32_t DTypeBytes(uint32_t dtype);
inline bool IsRef(uint32_t dtype) { return dtype > TW_REF; }
inline uint32_t BaseType(uint32_t dtype) { return dtype > TW_REF ? dtype - TW_REF : dtype; }

}  // namespace thalweg
