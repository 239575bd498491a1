// The amount of memory that this process may use. Threads: any.
#pragma once
#include <cstdint>
#include <string>

namespace thalweg {

// Returns the bytes that this process may use: the machine's memory, or less if a control group or
// the process's own limit (RLIMIT_DATA) is lower.
uint64_t MachineMemory();

// Returns the lowest limit of a process's control groups (versions 1 and 2) and of all their
// visible ancestors, in bytes; UINT64_MAX means no limit.
// groups: text in the format of /proc/self/cgroup. mounts: text in the format of
// /proc/self/mountinfo. root: prefix of every mount path, for tests.
uint64_t ControlGroupMemory(const std::string& groups, const std::string& mounts, const std::string& root = "");

}  // namespace thalweg
