// Converts attributes between the class AttrValue and the serialised message AttrValue. Used by
// GraphDef import and export, and to set attributes that no schema has (underscore names) by value.
// Threads: values, no sharing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/attr_value.h"
#include "framework/graph/op_schema.h"
#include "framework/proto/tensor_proto.h"

namespace thalweg {

// Parses an attribute. spec gives the kind of an empty list; CheckAttr checks whether the value is
// allowed. *whole: true if the class holds everything in the message; false for a function with
// attributes of its own. INVALID_ARGUMENT for bytes that are not such a message, too deep nesting,
// a missing value, a list of mixed kinds, a placeholder; as TensorFromProto for tensors. Errors do
// not name the attribute.
StatusOr<AttrValue> ParseAttr(std::string_view message, const AttrSpec& spec, SplatBudget* budget, bool* whole);
// INVALID_ARGUMENT for a float beyond the range of 32 bits; as TensorToProto for tensors.
StatusOr<std::string> SerializeAttr(const AttrValue& value);

// Parse and write the attribute `_class`. names: the entries that begin with "loc:@", without it.
// others: all other entries.
Status ParseColocation(std::string_view message, std::vector<std::string>* names, std::vector<std::string>* others);
StatusOr<std::string> SerializeColocation(const std::vector<std::string>& names, const std::vector<std::string>& others);

}  // namespace thalweg
