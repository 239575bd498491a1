// The parsed schemas of every op that a runtime knows.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/runtime.h"

namespace thalweg::fuzz {

// What a variant is.
enum class Variant : uint8_t { kList, kDataset, kOptional };

// An input or output. Its type is `dtype`, or is given by an attribute.
struct Argument {
  std::string name, type_attr, list_attr, number_attr;
  uint32_t dtype = 0;
  bool is_ref = false;
  Variant variant = Variant::kList;  // of an input of type variant
  std::string opens;                 // of a handle: the resource type, unless it is a variable
};

struct AttrSchema {
  enum class Role { kValue, kType, kTypes, kNumber };  // a plain value, or a fact about the inputs
  std::string name, kind;
  bool list = false, has_default = false;
  Role role = Role::kValue;
  std::vector<uint32_t> types;     // allowed types
  std::vector<std::string> texts;  // allowed texts; empty: any
};

struct OpSchema {
  std::string name;
  uint32_t hash = 0;  // of the name; inputs use it to select the op
  bool stateful = false, touches = false, has_kernels = false;
  bool differs = false;            // results differ from run to run, as a kernel declares, or from name to name
  bool makes_other = false;        // makes a resource other than a variable, named after its node
  bool calls_program = false;      // calls a function of the program by its token
  bool crosses = false;            // inserted by planning, between devices or processes
  bool only_takes = false;         // takes a variant without making one, so the variant is not a list
  Variant makes = Variant::kList;  // of its outputs of type variant
  std::vector<Argument> inputs;
  std::vector<AttrSchema> attrs;

  // True if the results differ from run to run: the op draws numbers without a state variable, or a
  // kernel declares it.
  bool IsRandom() const;
};

uint32_t HashOf(const std::string& name);

// Returns the schemas sorted by hash.
std::vector<OpSchema> ReadSchemas(tw_runtime* runtime);

}  // namespace thalweg::fuzz
