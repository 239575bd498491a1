// Resolves the open parts of a node spec: infers, defaults and checks attributes, and computes
// argument ranges and types. Threads: any.
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
  std::vector<uint32_t> in_at, out_at;  // empty: same as the schema's
};

// Orders attributes as in the schema; missing ones stay empty. INVALID_ARGUMENT for a name that the
// schema does not have.
StatusOr<std::vector<AttrValue>> InSchemaOrder(const OpSchema& op, std::map<std::string, AttrValue> given);

// inputs: flat types. given: attributes in schema order. Errors do not name the node.
StatusOr<ResolvedNode> ResolveNode(const OpSchema& op, std::span<const uint32_t> inputs, std::vector<AttrValue> given);

}  // namespace thalweg
