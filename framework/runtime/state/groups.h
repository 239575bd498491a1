// Groups: the groups of collective engines (plugin/collective.h) of which a session is a member. A
// group is made at the first call with its key, together with the other members, and lives as long as
// the session. Kernels reach the Groups of their step through the set `group` of the host table.
//
// GroupMember: what has groups: the FunctionCaller of a step, which is its session.
//
// The life of a call: Start finds the group; the first call makes it on a thread that may block, and
// each call then is one entry of the engine, which signals a timeline; Done completes the kernel's
// token. If the step is cancelled or its deadline passes meanwhile, the group is aborted at all
// members. A group that has failed stays failed: its members no longer agree on what was done.
// Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "framework/base/status.h"
#include "framework/registry/role.h"
#include "framework/runtime/step/frame.h"
#include "thalweg/plugin/group.h"

namespace thalweg {

struct GroupOptions {
  std::string engine;  // empty: shm, or else the first by name that serves the device
  std::string store;   // a folder that the members share
  uint32_t rank = 0, members = 0;
  int64_t timeout = 0;  // nanoseconds for each operation, and for the members to come
};

class Groups {
 public:
  Groups(Runtime* runtime, GroupOptions options);
  ~Groups();
  Groups(const Groups&) = delete;

  // Completes the token of the frame if it returns OK.
  Status Start(KernelFrame* f, const tw_group_call& c);
  uint32_t members() const { return options_.members; }
  uint32_t rank() const { return options_.rank; }
  // Fails all calls, present and later ones.
  void Stop(const Status& why);
  // Leaves all groups. A second call has no effect. REQUIRES: no call is under way, and Stop was called
  // if there may be later ones.
  void Leave();

 private:
  struct Group;
  struct Call;
  Status CheckCall(const KernelFrame& f, const tw_group_call& c, uint32_t members) const;
  StatusOr<std::shared_ptr<const CollectiveRole>> EngineFor(const Device& device) const;
  uint64_t Session();
  void Make(Call* call);
  Status Join(Call* call);
  Status FindRoot(Call* call);
  Status MakeParts(Call* call);
  static void TakePart(const Call& call);
  void Launch(Call* call);
  void Done(Call* call, Status s);
  void Abort(const Group& group, const Status& why);
  static void Interrupted(void* call);

  Runtime* const runtime_;
  const GroupOptions options_;
  std::mutex mu_;  // guards the groups' fields, stop_ and session_
  std::map<std::string, std::unique_ptr<Group>, std::less<>> groups_;
  Status stop_;
  uint64_t session_ = 0;  // number of this session among those of this store and rank; 0: not known yet
};

class GroupMember {
 public:
  virtual Groups* groups() = 0;  // NULL: it is in none

 protected:
  ~GroupMember() = default;
};

}  // namespace thalweg
