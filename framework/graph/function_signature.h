// What a FunctionDef says of its arguments and results, whose types and numbers may be attributes of the function. Threads: values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Views lead into the FunctionDef.
struct StoredArg {
  std::string_view name;
  uint32_t type = 0;                                        // 0: an attribute says it
  std::string_view type_attr, number_attr, type_list_attr;  // "": none
  HandleInfo handle;                                        // what a handle leads to
  bool many() const { return !number_attr.empty() || !type_list_attr.empty(); }
};

struct FunctionSignature {
  std::string_view name;
  std::vector<StoredArg> args, results;
  std::vector<std::string_view> attrs;
  std::map<std::string, std::string, std::less<>> defaults;  // of attributes: AttrValue messages
  bool stateful = false;

  // Errors: INVALID_ARGUMENT for damaged bytes, or without a name.
  static StatusOr<FunctionSignature> Read(std::string_view function_def);
  // Of what a call says the values of its attributes, and the defaults of others. INVALID_ARGUMENT naming one that has none.
  StatusOr<AttrMessages> Attributes(const AttrMessages& given) const;
};

// The types of the values that an argument or result stands for. Errors: INVALID_ARGUMENT for an attribute that is none of the kind.
StatusOr<std::vector<uint32_t>> TypesOf(const StoredArg& arg, const AttrMessages& attrs);

// An AttrValue message with values for its placeholders, also within functions with attributes of their own. INVALID_ARGUMENT for a
// placeholder that has none.
StatusOr<std::string> Substituted(std::string_view message, const AttrMessages& attrs);

// The functions that an AttrValue message names, with the values that it has for their attributes.
struct NamedFunction {
  std::string name;
  AttrMessages attrs;
};
StatusOr<std::vector<NamedFunction>> FunctionsOf(std::string_view message);

}  // namespace thalweg
