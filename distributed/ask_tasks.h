// Sends one request to all tasks of a cluster, from a program that need not be one of them.
// Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/messages.h"
#include "framework/base/status.h"
#include "framework/runtime/runtime.h"
#include "framework/session/options.h"

namespace thalweg::distributed {

struct TaskAnswers {
  struct Answer {
    Status status;
    std::string fields, body;
  };
  ClusterSpec cluster;
  std::vector<Answer> answers;  // one for each of the cluster's tasks, in their order
};

// Connects to the task at options.target, reads the cluster from it, then asks all tasks at once
// and waits for the answers. timeout: nanoseconds, for all of it together. Errors: as for a session
// with that target. If a task does not answer, only its own status is an error.
StatusOr<TaskAnswers> AskTasks(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout, Method method,
                               const WireWriter& fields);

}  // namespace thalweg::distributed
