// The collective engine "ring": members of several hosts, over TCP.
#include <memory>
#include <mutex>

#include "group.h"

using thalweg::common::Operation;
using thalweg::ring::Group;
using thalweg::ring::Hub;
using thalweg::ring::SettingsOf;

namespace {

// The hub of a runtime exists while there are groups.
class Instance {
 public:
  Instance() = default;
  ~Instance() { LeaveToParent(); }
  Instance(const Instance&) = delete;

  std::shared_ptr<Hub> hub(const tw_host* h) {
    std::lock_guard lock(mu_);
    LeaveToParent();
    if (!hub_) hub_ = std::make_shared<Hub>(h, SettingsOf(h));
    return hub_;
  }
  // A group has ended. Holds the lock while the hub ends, because the next one may need its port.
  void Release() {
    std::lock_guard lock(mu_);
    if (hub_.use_count() == 1) hub_.reset();
  }

 private:
  // In the child of a fork, keeps the hub's memory: its destructor would wait for a thread that does
  // not exist here.
  void LeaveToParent() {
    if (hub_ && hub_->forked()) new std::shared_ptr<Hub>(std::move(hub_));
  }

  std::mutex mu_;  // guards hub_
  std::shared_ptr<Hub> hub_;
};

struct Member {
  Instance* instance;
  std::unique_ptr<Group> group;
};

tw_status* Create(const tw_host* h, void* user, const tw_group_config* c, void** out_group) {
  auto* instance = static_cast<Instance*>(user);
  tw_status* s = tw::guard(h, [&] {
    auto member = std::make_unique<Member>();
    member->instance = instance;
    member->group = std::make_unique<Group>(instance->hub(h), *c);
    *out_group = member.release();
  });
  if (s) instance->Release();
  return s;
}

void Destroy(const tw_host*, void* group) {
  auto* member = static_cast<Member*>(group);
  if (member->group->forked()) return;  // its memory stays, because its sockets are the parent's
  Instance* instance = member->instance;
  delete member;
  instance->Release();
}

void Abort(const tw_host*, void* group, const tw_status* why) { static_cast<Member*>(group)->group->Abort(why); }

template <Operation kOperation>
tw_status* Start(const tw_host* h, void* group, const tw_collective_call* c) {
  return tw::guard(h, [&] { static_cast<Member*>(group)->group->Start(kOperation, *c); });
}

tw_status* Init(const tw_host* h, tw_registrar* r, void** out_instance) {
  return tw::guard(h, [&] {
    auto instance = std::make_unique<Instance>();
    tw_collective_def d = {};
    d.size = sizeof d;
    d.name = "ring";
    d.name_len = 4;
    d.kind = "CPU";
    d.kind_len = 3;
    d.user = instance.get();
    d.create = Create;
    d.destroy = Destroy;
    d.abort = Abort;
    d.all_reduce = Start<Operation::kAllReduce>;
    d.broadcast = Start<Operation::kBroadcast>;
    d.all_gather = Start<Operation::kAllGather>;
    d.reduce_scatter = Start<Operation::kReduceScatter>;
    d.all_to_all = Start<Operation::kAllToAll>;
    tw::check(tw_add_collective(r, &d));
    *out_instance = instance.release();
  });
}

void Shutdown(const tw_host*, void* instance) { delete static_cast<Instance*>(instance); }

}  // namespace

TW_PLUGIN_WITH("org.thalweg.ring", "0.1.0", Init, Shutdown)
