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

// Sets the type attributes that the kernel's spec fixes. Returns false if the spec contradicts itself.
bool BindTypes(const OpSchema& op, const KernelSpec& k, Attrs* attrs);
// Returns sets of attributes to try: first all attributes at their first choice, then sets in which one
// attribute has an alternative. If a set changes the order of the axes, its lists with an entry for
// each axis (`?axes` in op.h) are in that order too.
// preferred: the element type to begin with; 0: none. The result is empty if no value can be generated
// for a required attribute; *why, unless `why` is NULL, then names the attribute.
std::vector<Attrs> AttrSets(const OpSchema& op, const Attrs& bound, uint32_t preferred, std::string* why = nullptr);
// Returns true if the attributes set an order of the axes that is not the default.
bool HasOtherLayout(const OpSchema& op, const Attrs& attrs);

}  // namespace thalweg::conformance
