// How much memory there is. Threads: any.
#pragma once
#include <cstdint>

namespace thalweg {

// Bytes that this process may use at most: the machine's, or fewer where its control group says so.
uint64_t MachineMemory();

}  // namespace thalweg
