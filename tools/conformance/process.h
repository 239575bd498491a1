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
int64_t ReadHeap();  // reads only the heap, which is faster
// Waits, half a second at most, until the process has at most `expected` threads, because an ended
// thread stays listed for a moment. Returns the number of threads.
int64_t SettledThreads(int64_t expected);
// Returns a text such as "2 threads and 1 open file more than before"; empty if nothing was added.
std::string Added(const ProcessState& before, const ProcessState& after);

}  // namespace thalweg::conformance
