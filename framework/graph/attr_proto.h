// Attributes as they are stored: AttrValue the class to and from AttrValue the serialised message. Used by GraphDef import and export,
// and wherever an attribute that no schema knows (an underscore name) is set by value. Threads: values, no sharing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/attr_value.h"
#include "framework/graph/op_schema.h"
#include "framework/io/tensor_proto.h"

namespace thalweg {

// spec says of which kind an empty list is; whether the value is allowed is for CheckAttr to tell. *whole: the class holds all that the
// message says; false for a function with attributes of its own. Errors: INVALID_ARGUMENT for bytes that are no such message, nested too
// deeply, without value, a list of mixed kinds, a placeholder; as TensorFromProto for tensors. They are not prefixed with the name.
StatusOr<AttrValue> ParseAttr(std::string_view message, const AttrSpec& spec, SplatBudget* budget, bool* whole);
// Errors: INVALID_ARGUMENT for a float beyond the range of 32 bits; as TensorToProto for tensors.
StatusOr<std::string> SerializeAttr(const AttrValue& value);

// The attribute `_class`: the names behind "loc:@" go to *names, other entries to *others.
Status ParseColocation(std::string_view message, std::vector<std::string>* names, std::vector<std::string>* others);
StatusOr<std::string> SerializeColocation(const std::vector<std::string>& names, const std::vector<std::string>& others);

}  // namespace thalweg
