// What is kept behind handles that lead to no variable: queues, tables, stacks and the like, made and filled for a use that reads one.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/op/use.h"

namespace thalweg::fuzz {

struct Maker;

// Of this type of resources; NULL: unknown here.
const Maker* MakerOf(const std::string& resource);

// Whether it lives as long as the runtime, and so has to be destroyed.
bool Lasts(const Maker& maker);

// Adds what the handle of input `i` leads to, of the types that the use tells, and, unless its state says otherwise, what puts its tensor
// in there. steps: gets the operations that must have run before the use.
tw_output AddKept(tw_graph* graph, const Maker& maker, const Use& use, size_t i, std::vector<const tw_operation*>* steps);

// Whether a message blames the operations that AddKept adds.
bool Blames(const Use& use, const std::string& message);

}  // namespace thalweg::fuzz
