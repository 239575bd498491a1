// ProfilerRole: the sealed definition of a profiler (see role.h). It has a header of its own, because
// only those that start profilers need it.
#pragma once
#include <memory>

#include "framework/registry/role.h"
#include "thalweg/plugin/profiler.h"

namespace thalweg {

template <>
const std::string_view RoleOf<tw_profiler_def>::kRole;
using ProfilerRole = RoleOf<tw_profiler_def>;

// Seals a definition: required entries are checked, absent optional ones do nothing.
StatusOr<std::unique_ptr<Role>> SealRole(const tw_profiler_def* d);

}  // namespace thalweg
