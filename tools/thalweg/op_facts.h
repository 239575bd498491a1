// The registry's facts about ops, in words.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "json_value.h"

namespace thalweg::cli {

// "Pad(input: T, paddings: Tpaddings) -> (output: T)".
std::string SignatureText(const JsonValue& op);
// Of an input or output: "T", "N of T", "variable", "float".
std::string ArgumentKind(const JsonValue& argument);
// Of an attribute: "int, at least 1", "one of SAME, VALID", "list of int".
std::string AttrKind(const JsonValue& attr);
// "3", "\"NHWC\"", "[1, 1]"; "" where there is none.
std::string DefaultText(const JsonValue& attr);
// Attributes that inputs do not tell: those that people give.
std::vector<const JsonValue*> GivenAttrs(const JsonValue& op);
// "yes", "none: why", "missing".
std::string GradientText(const JsonValue& op);

// Which element types each type attribute may be, and for which of them there are kernels: "T: half, float", "kernels on CPU: all".
struct TypeFacts {
  std::string attr, allowed;
  std::vector<std::pair<std::string, std::string>> kernels;  // where, which
};
// with_plugins: says whose kernels they are.
std::vector<TypeFacts> TypesOf(const JsonValue& op, bool with_plugins);
// Where an op without type attributes has kernels: "CPU", "CPU (org.thalweg.cpu)".
std::vector<std::string> KernelPlaces(const JsonValue& op, bool with_plugins);

}  // namespace thalweg::cli
