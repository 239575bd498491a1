// The arguments and results of a FunctionDef, whose types and numbers may depend on attributes of
// the function. Threads: values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Views point into the FunctionDef.
struct StoredArg {
  std::string_view name;
  uint32_t type = 0;                                        // 0: given by an attribute
  std::string_view type_attr, number_attr, type_list_attr;  // "": none
  HandleInfo handle;                                        // dtype and shape behind a handle
  bool many() const { return !number_attr.empty() || !type_list_attr.empty(); }
};

struct FunctionSignature {
  std::string_view name;
  std::vector<StoredArg> args, results;
  std::vector<std::string_view> attrs;
  std::map<std::string, std::string, std::less<>> defaults;  // of attributes; serialised AttrValues
  bool stateful = false;

  // INVALID_ARGUMENT for damaged bytes or a missing name.
  static StatusOr<FunctionSignature> Read(std::string_view function_def);
  // Returns the attribute values of a call: the given ones, and defaults for the others.
  // INVALID_ARGUMENT names an attribute that has neither.
  StatusOr<AttrMessages> Attributes(const AttrMessages& given) const;
};

// Returns the types of the values that an argument or result stands for. INVALID_ARGUMENT for an
// attribute of the wrong kind.
StatusOr<std::vector<uint32_t>> TypesOf(const StoredArg& arg, const AttrMessages& attrs);

// Replaces placeholders in an AttrValue message by values, also within functions that have
// attributes. INVALID_ARGUMENT for a placeholder without a value.
StatusOr<std::string> Substituted(std::string_view message, const AttrMessages& attrs);

// A function named by an AttrValue message, with the values for its attributes.
struct NamedFunction {
  std::string name;
  AttrMessages attrs;
};
StatusOr<std::vector<NamedFunction>> FunctionsOf(std::string_view message);

}  // namespace thalweg
