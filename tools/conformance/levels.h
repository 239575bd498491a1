// The levels of checks, in order. Each function runs the checks of its rules with Run::Check.
#pragma once
#include "tools/conformance/run.h"
#include "tools/conformance/world.h"

namespace thalweg::conformance {

// The real host gets the most checks; the simulated hosts repeat the main ones.
inline Effort EffortOf(const Run& run, const World& world) {
  return run.options().full ? Effort::kFull : world.play().name.empty() ? Effort::kUsual : Effort::kBrief;
}

// Level 0: the file, loading, describing, init. Each check loads the library itself, in its own child.
void CheckLoads(Run& run);
void CheckFile(Run& run);
void CheckInit(Run& run);
// Level 1.
void CheckMemory(Run& run, World& world);
// Level 2. CheckFirstCalls comes first, because a lasting change of the process by a kernel shows only
// at its first call.
void CheckFirstCalls(Run& run, World& world);
void CheckKernels(Run& run, World& world);
void CheckKernelMemory(Run& run, World& world);
void CheckState(Run& run, World& world);
void CheckCases(Run& run, World& world);
void CheckOps(Run& run, World& world);
// Level 3.
void CheckStreams(Run& run, World& world);
void CheckKernelEnds(Run& run, World& world);
void CheckSets(Run& run, World& world);
// Level 4.
void CheckCompilers(Run& run, World& world);
void CheckRewriters(Run& run, World& world);
// Level 5.
void CheckFileSystems(Run& run, World& world);
void CheckTransports(Run& run, World& world);
void CheckCollectives(Run& run, World& world);
void CheckMemberships(Run& run, World& world);
void CheckImporters(Run& run, World& world);
void CheckProfilers(Run& run, World& world);
// Runs the other process of a check: listens with the transport of the scheme, writes its address to
// standard output and waits until it is killed.
int ServePeer(const std::string& file, const std::string& scheme);

}  // namespace thalweg::conformance
