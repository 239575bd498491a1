// Process groups of this machine.
#pragma once

#include <set>

#include <sys/types.h>

namespace thalweg::cli {

// Returns the groups with a process that is not a zombie; kill(-group, 0) also succeeds for
// zombies.
std::set<pid_t> LivingGroups();

}  // namespace thalweg::cli
