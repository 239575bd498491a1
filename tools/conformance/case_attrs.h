// Generates attributes for test cases of an op from its schema.
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/registry/kernel_spec.h"

namespace thalweg::conformance {

using Attrs = std::map<std::string, AttrValue>;

// Binds the type attributes that the kernel's spec says. False: the spec cannot be met.
bool BindTypes(const OpSchema& op, const KernelSpec& k, Attrs* attrs);
// Sets of attributes to try: all at their first choice, then each alternative of one alone.
// preferred: the element type to begin with; 0: none.
std::vector<Attrs> AttrSets(const OpSchema& op, const Attrs& bound, uint32_t preferred);

}  // namespace thalweg::conformance
