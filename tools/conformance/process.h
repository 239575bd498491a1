// The resources that the process holds at the moment, for checks that an operation leaves none
// behind.
#pragma once
#include <cstdint>
#include <string>

namespace thalweg::conformance {

struct ProcessState {
  int64_t threads = 0, files = 0, children = 0, mappings = 0, heap = 0;
};
ProcessState ReadProcess();
int64_t ReadHeap();  // its heap alone, which takes less time
// Waits, half a second at most, until no more threads are there than that: an ended thread stays listed for a moment.
int64_t SettledThreads(int64_t expected);
// "2 threads and 1 open file more than before"; empty where nothing was added.
std::string Added(const ProcessState& before, const ProcessState& after);

}  // namespace thalweg::conformance
