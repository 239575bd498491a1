// Formats the registry's facts about ops.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "json_value.h"

namespace thalweg::cli {

// "Pad(input: T, paddings: Tpaddings) -> (output: T)".
std::string SignatureText(const JsonValue& op);
// Returns the kind of an input or output: "T", "N of T", "variable", "float".
std::string ArgumentKind(const JsonValue& argument);
// Returns the kind of an attribute: "int, at least 1", "one of SAME, VALID", "list of int".
std::string AttrKind(const JsonValue& attr);
// Returns the default: "3", "\"NHWC\"", "[1, 1]"; "" if there is none.
std::string DefaultText(const JsonValue& attr);
// Returns the attributes that cannot be inferred from the inputs and that callers must give.
std::vector<const JsonValue*> GivenAttrs(const JsonValue& op);
// Returns "yes", "none: why" or "missing".
std::string GradientText(const JsonValue& op);

// The allowed element types of a type attribute, and those with kernels: "T: half, float", "kernels
// on CPU: all".
struct TypeFacts {
  std::string attr, allowed;
  std::vector<std::pair<std::string, std::string>> kernels;  // {device, types}
};
// with_plugins: also names the plugin of each kernel.
std::vector<TypeFacts> TypesOf(const JsonValue& op, bool with_plugins);
// Returns the devices with kernels of an op without type attributes: "CPU", "CPU
// (org.thalweg.cpu)".
std::vector<std::string> KernelPlaces(const JsonValue& op, bool with_plugins);

}  // namespace thalweg::cli
