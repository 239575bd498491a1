// Empties a container of state on every task of a cluster, from a program that need not be one of
// them. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

// Returns the number of resources that the containers of that name held together. container: empty
// means the default one of the tasks. timeout: nanoseconds. Errors: as for a session with
// options.target; the error of the first task that failed, naming it, after all others have reset.
StatusOr<uint64_t> ClusterReset(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, const std::string& container,
                                int64_t timeout);

}  // namespace thalweg::distributed
