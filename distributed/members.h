// Members: a task or a client as a member of a cluster whose membership service (plugin/membership.h) knows who is alive. A task has a key
// there with its incarnation, which goes with its lease; whoever wants to know watches those keys. Threads: any.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "distributed/cluster.h"
#include "framework/registry/role.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {

class Members {
 public:
  // where: "scheme:address/cluster", as a cluster's "membership" says. name: of the member. credentials: a folder, of which the service's
  // plugin takes what it needs; empty: none. lost: the lease has ended, and with it the member's key; called once, from a thread of the
  // plugin's, and never after the destructor.
  // Errors: INVALID_ARGUMENT for a wrong text; NOT_FOUND for a scheme that no plugin serves; those of joining.
  static StatusOr<std::unique_ptr<Members>> Join(Runtime* runtime, const std::string& where, const std::string& name,
                                                 const std::string& credentials, std::function<void()> lost);
  ~Members();
  // The task is alive, until the member goes.
  Status Announce(const TaskId& task, uint64_t incarnation);
  // Hears of every task that is alive, with its incarnation, and with 0 of one that no longer is, one at a time, from a thread of the
  // plugin's. Once.
  Status Watch(std::function<void(const TaskId& task, uint64_t incarnation)> changed);

 private:
  Members(std::shared_ptr<const MembershipRole> role, std::function<void()> lost) : role_(std::move(role)), lost_(std::move(lost)) {}
  void Changed(const tw_change& c);

  const std::shared_ptr<const MembershipRole> role_;
  const std::function<void()> lost_;
  std::function<void(const TaskId& task, uint64_t incarnation)> changed_;
  void *member_ = nullptr, *watch_ = nullptr;
};

}  // namespace thalweg::distributed
