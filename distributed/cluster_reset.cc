#include "distributed/cluster_reset.h"

#include "distributed/ask_tasks.h"
#include "distributed/messages.h"
#include "distributed/wire.h"
#include "framework/base/shown.h"
#include "framework/runtime/state/container.h"

namespace thalweg::distributed {

StatusOr<uint64_t> ClusterReset(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, const std::string& container,
                                int64_t timeout) {
  RETURN_IF_ERROR(CheckContainerName(container));
  WireWriter fields;
  ResetRequest{container}.Put(&fields);
  ASSIGN_OR_RETURN(const TaskAnswers all, AskTasks(runtime, options, timeout, Method::kReset, fields));
  uint64_t count = 0;
  size_t done = 0;
  Status failed;
  for (size_t i = 0; i < all.answers.size(); ++i) {
    auto answer = all.answers[i].status.ok() ? ResetAnswer::Get(all.answers[i].fields) : StatusOr<ResetAnswer>(all.answers[i].status);
    if (answer.ok()) {
      count += answer->count;
      ++done;
    } else if (failed.ok()) {
      failed =
          Prefix(answer.status(), StrCat("reset of container '", Shown(container.empty() ? kSharedContainer : std::string_view(container)),
                                         "' at ", all.cluster.tasks()[i].title(), ":"));
    }
  }
  if (failed.ok()) return count;
  return Prefix(failed, StrCat(done, " of ", all.answers.size(), " tasks have reset it;"));
}

}  // namespace thalweg::distributed
