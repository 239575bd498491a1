// How much memory there is. Threads: any.
#pragma once
#include <cstdint>
#include <string>

namespace thalweg {

// Bytes that this process may use at most: the machine's, or fewer where a control group or its own limit (RLIMIT_DATA) says so.
uint64_t MachineMemory();

// The least that the control groups of a process allow, versions 1 and 2: its own groups and all that they lie in, as far as they can be
// seen; UINT64_MAX: any number of bytes. groups: as /proc/self/cgroup has them; mounts: as /proc/self/mountinfo; root: put before every
// path of a mount, for tests.
uint64_t ControlGroupMemory(const std::string& groups, const std::string& mounts, const std::string& root = "");

}  // namespace thalweg
