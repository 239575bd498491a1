// How much stack is left. Threads: any.
#pragma once
#include <cstddef>

namespace thalweg {

// Bytes between the caller and the end of its thread's stack.
size_t StackLeft();

}  // namespace thalweg
