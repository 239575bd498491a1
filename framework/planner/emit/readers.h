// Finds the readers that release a plan's values, and the nodes that have nothing to do but to call
// their kernel. Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Sets readers and held_in. REQUIRES: the kinds of values, and which values are fetched.
void CountReaders(Plan* plan);

// Marks the simple nodes. REQUIRES: CountReaders; the engine and the nodes' order are chosen.
void MarkSimple(Plan* plan);

}  // namespace thalweg
