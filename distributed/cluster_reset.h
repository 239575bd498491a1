// Emptying a container of state on every task of a cluster, by a program that need not be one of them. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

// Answers how many things the containers of that name held together. container: empty: the tasks' default one. timeout: nanoseconds.
// Errors: as of a session with options.target; of the first task that did not do it, naming it, after all others have.
StatusOr<uint64_t> ClusterReset(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, const std::string& container,
                                int64_t timeout);

}  // namespace thalweg::distributed
