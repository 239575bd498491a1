// Resolves what a node spec leaves open: attributes inferred from inputs, defaulted, checked; argument ranges and types.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

struct ResolvedNode {
  std::vector<AttrValue> attrs;         // in schema order
  std::vector<uint32_t> types;          // inputs, then outputs, flat
  std::vector<uint32_t> in_at, out_at;  // empty where they are the schema's
};

// Attributes by name, put into the order of the schema; those that are not given stay empty. Names that it lacks are INVALID_ARGUMENT.
StatusOr<std::vector<AttrValue>> InSchemaOrder(const OpSchema& op, std::map<std::string, AttrValue> given);

// inputs: their types, flat. given: attributes in schema order. Errors are not prefixed.
StatusOr<ResolvedNode> ResolveNode(const OpSchema& op, std::span<const uint32_t> inputs, std::vector<AttrValue> given);

}  // namespace thalweg
