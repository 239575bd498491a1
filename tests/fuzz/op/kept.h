// Resources other than variables (queues, tables, stacks, ...), made and filled for a use that
// reads one.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/op/use.h"

namespace thalweg::fuzz {

struct Maker;

// Returns the maker of this resource type; NULL if there is none.
const Maker* MakerOf(const std::string& resource);

// Returns true if the resource lives as long as the runtime, and must be destroyed explicitly.
bool Lasts(const Maker& maker);

// Adds the resource for the handle of input `i`, with the types that the use gives, and, unless the
// input's state says otherwise, an op that puts its tensor in. steps: receives the operations that
// must run before the use.
tw_output AddKept(tw_graph* graph, const Maker& maker, const Use& use, size_t i, std::vector<const tw_operation*>* steps);

// Returns true if a message blames the operations that AddKept adds.
bool Blames(const Use& use, const std::string& message);

}  // namespace thalweg::fuzz
