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
// Sets of attributes to try: all at their first choice, then each alternative of one alone. With another order of the axes, the lists that
// have an entry for each (`?axes` in op.h) are in that order, too.
// preferred: the element type to begin with; 0: none. Empty: nothing can be made up for a required attribute; *why, unless NULL, names it.
std::vector<Attrs> AttrSets(const OpSchema& op, const Attrs& bound, uint32_t preferred, std::string* why = nullptr);
// Whether the attributes say an order of the axes that is not the default.
bool HasOtherLayout(const OpSchema& op, const Attrs& attrs);

}  // namespace thalweg::conformance
