// Who lets go of a plan's values, and which nodes have nothing to do but to call their kernel. Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Fills in readers and held_in. REQUIRES: kinds of values, and which are fetched.
void CountReaders(Plan* plan);

// Fills in which nodes are simple. REQUIRES: CountReaders; the engine and the nodes' order are chosen.
void MarkSimple(Plan* plan);

}  // namespace thalweg
