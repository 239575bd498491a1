// Members: a task or a client as a member of a cluster whose membership service (plugin/membership.h) knows who is alive. A task has a key
// there with its incarnation, which goes with its lease; whoever wants to know watches those keys. Membership: the same for as long as
// somebody lives, whatever becomes of a lease. Threads: any.
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
  // where: "scheme:address/cluster", as a cluster's "membership" says. name: of the member. credentials: a folder, of which the service's
  // plugin takes what it needs; empty: none. lost: the lease has ended, and with it the member's key; called once, from a thread of the
  // plugin's, and never after the destructor.
  // Errors: INVALID_ARGUMENT for a wrong text; NOT_FOUND for a scheme that no plugin serves; those of joining.
  struct Config {
    std::string where, name, credentials;
    int64_t patience = 10'000'000'000;  // nanoseconds for the service to answer each question
  };
  static StatusOr<std::unique_ptr<Members>> Join(Runtime* runtime, const Config& config, std::function<void()> lost);
  ~Members();
  // The task is alive, until the member goes.
  Status Announce(const TaskId& task, uint64_t incarnation);
  // Hears of every task that is alive, with its incarnation, and with 0 of one that no longer is, one at a time, from a thread of the
  // plugin's. Once.
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

// A member that joins again whenever its lease has ended: a service that was away comes back, and what it knew of the member is gone.
class Membership {
 public:
  // each: what every member of these says and hears, such as Announce or Watch; called by Start, and later, before the last member goes, so
  // that what both say stays, from threads that may block; one at a time. Where it fails, it is tried again, with the same
  // member unless that is lost.
  Membership(Runtime* runtime, Members::Config config, std::function<Status(Members*)> each)
      : runtime_(runtime), config_(std::move(config)), each_(std::move(each)) {}
  ~Membership() { Stop(); }
  // Joins. Once. Errors: those of Join and each.
  Status Start();
  // Leaves; nothing is called any more when it returns. Again: no effect.
  void Stop();
  // The service counts on this member, and its word reaches it, as far as is known.
  bool joined() const;

 private:
  StatusOr<std::unique_ptr<Members>> Join(const Members::Config& config);
  void Lost(uint64_t which);
  void JoinAgain();

  Runtime* const runtime_;
  const Members::Config config_;
  const std::function<Status(Members*)> each_;
  std::mutex member_mu_;                    // before mu_; nothing that is called back takes it
  std::unique_ptr<Members> member_, next_;  // next: has joined, and what it says was not answered yet
  uint64_t next_is_ = 0;                    // which of those that joined
  mutable std::mutex mu_;
  std::condition_variable changed_;
  uint64_t joins_ = 0, joined_ = 0, lost_ = 0;  // how often it began to; which of those was good last; and lost
  bool joining_ = false;                        // again
  bool stopping_ = false;
};

}  // namespace thalweg::distributed
