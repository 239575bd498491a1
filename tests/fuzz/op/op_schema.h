// The schemas of every op that a runtime knows, taken apart.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/runtime.h"

namespace thalweg::fuzz {

// An input or output. What it says of its type: `dtype`, or the attribute that tells it.
struct Argument {
  std::string name, type_attr, list_attr, number_attr;
  uint32_t dtype = 0;
  bool is_ref = false;
  std::string opens;  // of a handle: the type of resources, if it is no variable
};

struct AttrSchema {
  enum class Role { kValue, kType, kTypes, kNumber };  // what it is, or what it tells about the inputs
  std::string name, kind;
  bool list = false, has_default = false;
  Role role = Role::kValue;
  std::vector<uint32_t> types;     // that it may be
  std::vector<std::string> texts;  // that it may be; empty: any
};

struct OpSchema {
  std::string name;
  uint32_t hash = 0;  // of the name: how inputs name the op
  bool stateful = false, touches = false, has_kernels = false;
  bool differs = false;      // from run to run, as a kernel says of its results
  bool makes_other = false;  // something by its node's name that is no variable
  bool crosses = false;      // planning makes it, between devices or processes
  bool only_takes = false;   // a variant, of which it makes nothing: so that is no list
  std::vector<Argument> inputs;
  std::vector<AttrSchema> attrs;

  // Its results differ from run to run: it draws numbers, and no variable holds them; or a kernel says so.
  bool IsRandom() const;
};

uint32_t HashOf(const std::string& name);

// In the order of their hashes.
std::vector<OpSchema> ReadSchemas(tw_runtime* runtime);

}  // namespace thalweg::fuzz
