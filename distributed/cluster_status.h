// What the tasks of a cluster say of themselves, gathered by a program that need not be one of them. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

// JSON; see tw_cluster_status for what it holds. Reaches the task at options.target, then all others at once; those that do not answer in
// time are told with the reason. timeout: nanoseconds, of both together. Errors: as of a session with that target.
StatusOr<std::string> ClusterStatus(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout);

}  // namespace thalweg::distributed
