// The stack space that is left. Threads: any.
#pragma once
#include <cstddef>

namespace thalweg {

// Returns the bytes between the caller's frame and the end of its thread's stack.
size_t StackLeft();

}  // namespace thalweg
