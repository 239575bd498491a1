// Collects the status of the tasks of a cluster, from a program that need not be one of them.
// Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

// Returns JSON; tw_cluster_status describes it. Connects to the task at options.target, then to all
// others at once; a task that does not answer in time is listed with the reason. timeout:
// nanoseconds, for both together. Errors: as for a session with that target.
StatusOr<std::string> ClusterStatus(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout);

}  // namespace thalweg::distributed
