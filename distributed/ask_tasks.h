// One question to all tasks of a cluster, from a program that need not be one of them. Threads: any.
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

// Reaches the task at options.target, learns the cluster from it, then asks all tasks at once, and waits for them. timeout: nanoseconds, of
// all of it together. Errors: as of a session with that target; a task that does not answer is told by its own status alone.
StatusOr<TaskAnswers> AskTasks(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout, Method method,
                               const WireWriter& fields);

}  // namespace thalweg::distributed
