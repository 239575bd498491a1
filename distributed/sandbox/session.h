// A session of this program whose graph runs in a sandbox: it starts a task in this process that
// has no other client.
// Threads: any.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "distributed/cluster_session.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

// Same as ClusterSession::Create, for options with `sandbox`. Errors: INVALID_ARGUMENT if a target
// is given too; those of SandboxProcess::Start.
StatusOr<std::shared_ptr<ClusterSession>> CreateSandboxed(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                          std::vector<std::string> texts);

}  // namespace thalweg::distributed
