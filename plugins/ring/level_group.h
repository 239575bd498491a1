// LevelGroup: one member of a group of the engine `levels`. The members of a host fold their values in
// shared memory, and the first of them, the leader, exchanges them with the leaders of other hosts.
// README.md describes the three groups and the life of a call.
// Threads: the constructor, the destructor, Start and Abort from any; operations run on a thread of
// the member; Broken is called on the hub's thread.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "../common/call_thread.h"
#include "../shm/group.h"
#include "group.h"
#include "hosts.h"

namespace thalweg::ring {

class LevelGroup {
 public:
  // Waits for the other members. Throws tw::Error, tw::Raised.
  LevelGroup(std::shared_ptr<Hub> hub, const tw_group_config& config);
  ~LevelGroup();
  LevelGroup(const LevelGroup&) = delete;

  // Returns true in the child of a fork, where the group can do nothing and must not be destroyed.
  bool forked() const { return process_ != getpid(); }
  // Enqueues an operation. Throws tw::Error for one that cannot be executed.
  void Start(common::Operation operation, const tw_collective_call& call);
  // Fails the operations that are enqueued or running, here and at the other members.
  void Abort(const tw_status* why);

 private:
  using Call = common::CollectiveCall;
  class Store;
  class Waiter;
  // Each member sends a greeting to the others at the start.
  struct Greeting {
    HostKey host;
    uint64_t number;  // random; that of member 0 is a part of the keys of the parts
    uint64_t levels;  // 0: the setting is off
  };
  int64_t Now() const { return host_->run->now(host_); }

  // level_group.cc: joining
  std::vector<Greeting> Greet(const Settings& settings);
  void JoinParts(const std::shared_ptr<Hub>& hub, const tw_group_config& c, uint64_t number);
  void CheckWanted() noexcept;
  void LeaveParts();

  // Calls and failures:
  Failed Run(const Call& w) noexcept;
  // Executes an operation of the group of all or of the leaders. Returns its failure.
  Failed RunOn(Group* group, Call c) noexcept;
  // Calls f when all members have called the task, and waits until the others know that this member
  // is done. Returns the failure of the group of all, if it has failed, as it does if f throws.
  Failed Guarded(Call guard, const std::function<void()>& f) noexcept;
  void FailAll(const Failed& how) noexcept;
  // Returns a failure whose text is the name of this member and `what`.
  Failed Own(uint32_t code, const char* what) const noexcept;
  void Broken(const Failed& why) noexcept;

  // levels.cc: operations
  void Execute(const Call& w);
  void Reduce(const Call& w);
  void ReduceInFloat(const Call& w);
  void ReduceScatter(const Call& w);
  void Broadcast(const Call& w);
  void Gather(const Call& w);
  // One step of an operation, on values of one type. They throw tw::Error.
  struct Step {
    common::Operation operation;
    uint32_t dtype;
    uint64_t element, count;  // bytes of an element; elements of the input, of a broadcast: of the output
    const char* in;
    char* out;
    uint32_t reduce = 0, root = 0;
  };
  static Call CallOf(const Step& s);
  void OnHost(const Step& s, int64_t late = 0);  // REQUIRES: local_. late: nanoseconds after the operation's deadline
  void BetweenLeaders(const Step& s);            // REQUIRES: leads()
  // Gives the values of the leader to the other members of the host.
  void Spread(uint32_t dtype, uint64_t element, uint64_t count, char* values);
  bool leads() const { return place() == 0; }
  uint32_t place() const { return hosts_.place[rank_]; }
  const std::vector<uint32_t>& own_host() const { return hosts_.ranks[hosts_.host[rank_]]; }

  const tw_host* const host_;
  const uint32_t rank_, members_;
  const int64_t patience_;  // nanoseconds for an operation; 0: no limit
  const pid_t process_ = getpid();
  Hosts hosts_;
  bool flat_ = false;       // all operations are of the group of all
  Store* store_ = nullptr;  // while the group is made
  uint64_t number_ = 0;     // of the last operation
  uint64_t told_ = 0;       // of the operation that runs
  int64_t deadline_ = 0;    // of the operation that runs

  std::mutex mu_;                      // guards the pointers, because Broken uses what they point to
  std::unique_ptr<shm::Group> local_;  // NULL: this member is alone on its host, or the group is flat
  std::unique_ptr<Group> leaders_;     // NULL: this member is no leader, or there is one host
  std::unique_ptr<Group> all_;         // NULL: all members are on one host; destroyed before what its callback uses
  common::CallThread calls_;           // last, because its thread uses the other fields
};

}  // namespace thalweg::ring
