// Process groups of this machine.
#pragma once

#include <set>

#include <sys/types.h>

namespace thalweg::cli {

// Those with a process that has not ended: kill(-group, 0) finds zombies, too.
std::set<pid_t> LivingGroups();

}  // namespace thalweg::cli
