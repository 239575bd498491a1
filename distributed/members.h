// Members: a task or a client as a member of a cluster whose membership service
// (plugin/membership.h) tracks who is alive. A task has a key there with its incarnation, which is
// bound to its lease; interested members watch those keys. Membership: a member that lives on even
// if a lease ends. Threads: any.
#pragma once
#include <condition_variable>
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
  // where: "scheme:address/cluster", as in a cluster's "membership". name: of the member.
  // credentials: a folder from which the service's plugin takes what it needs; empty if there is
  // none. lost: the lease has ended, and with it the member's key; called once, from a thread of
  // the plugin, and never after the destructor.
  // Errors: INVALID_ARGUMENT for a wrong text; NOT_FOUND for a scheme that no plugin serves; those
  // of joining.
  struct Config {
    std::string where, name, credentials;
    int64_t patience = 10'000'000'000;  // nanoseconds for the service to answer each request
  };
  static StatusOr<std::unique_ptr<Members>> Join(Runtime* runtime, const Config& config, std::function<void()> lost);
  ~Members();
  // Announces the task as alive, until the member is destroyed.
  Status Announce(const TaskId& task, uint64_t incarnation);
  // Calls `changed` for every live task with its incarnation, and with 0 for a task that is no
  // longer alive; one call at a time, from a thread of the plugin. REQUIRES: called once.
  Status Watch(std::function<void(const TaskId& task, uint64_t incarnation)> changed);

 private:
  Members(std::shared_ptr<const MembershipRole> role, int64_t patience, std::function<void()> lost)
      : role_(std::move(role)), patience_(patience), lost_(std::move(lost)) {}
  void Changed(const tw_change& c);

  const std::shared_ptr<const MembershipRole> role_;
  const int64_t patience_;
  const std::function<void()> lost_;
  std::function<void(const TaskId& task, uint64_t incarnation)> changed_;
  void *member_ = nullptr, *watch_ = nullptr;
};

// A member that joins again whenever its lease has ended: a service that restarts has forgotten the
// member.
class Membership {
 public:
  // each: announces or watches on behalf of every new member (Announce, Watch). It is called by
  // Start, and on every later join before the old member is destroyed, so that nothing announced
  // lapses; from threads that may block, one at a time. If it fails, it is tried again, with the
  // same member unless that is lost.
  Membership(Runtime* runtime, Members::Config config, std::function<Status(Members*)> each)
      : runtime_(runtime), config_(std::move(config)), each_(std::move(each)) {}
  ~Membership() { Stop(); }
  // Joins. REQUIRES: called once. Errors: those of Join and each.
  Status Start();
  // Leaves the cluster; no callback runs after it returns. A second call has no effect.
  void Stop();
  // Returns true if, as far as is known, the service counts this member as alive and its events
  // arrive.
  bool joined() const;

 private:
  StatusOr<std::unique_ptr<Members>> Join(const Members::Config& config);
  void Lost(uint64_t which);
  void JoinAgain();

  Runtime* const runtime_;
  const Members::Config config_;
  const std::function<Status(Members*)> each_;
  std::mutex member_mu_;                    // taken before mu_; no callback takes it
  std::unique_ptr<Members> member_, next_;  // next_: has joined, but `each` has not succeeded for it yet
  uint64_t next_is_ = 0;                    // number of that join
  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint64_t joins_ = 0, joined_ = 0, lost_ = 0;  // the number of joins begun; the last good one; the last one lost
  bool joining_ = false;                        // joining again
  bool stopping_ = false;
};

}  // namespace thalweg::distributed
