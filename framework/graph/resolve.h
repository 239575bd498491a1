// Resolves what a node spec leaves open: attributes inferred from inputs, defaulted, checked; argument ranges and types.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

struct ResolvedNode {
  std::vector<AttrValue> attrs;  // in schema order
  std::vector<uint32_t> types;   // inputs, then outputs, flat
  std::vector<uint32_t> in_at, out_at;
};

// inputs: their types, flat. given: attributes by name; names that the schema lacks are INVALID_ARGUMENT. Errors are not prefixed.
StatusOr<ResolvedNode> ResolveNode(const OpSchema& op, const std::vector<uint32_t>& inputs, std::map<std::string, AttrValue> given);

}  // namespace thalweg
