// AddEngine: registers a collective engine (thalweg/plugin/collective.h) for host memory.
// Threads: as the role says.
#ifndef THALWEG_PLUGINS_COMMON_COLLECTIVE_ENGINE_H_
#define THALWEG_PLUGINS_COMMON_COLLECTIVE_ENGINE_H_

#include <string_view>

#include "collective_call.h"

namespace thalweg::common {

// The entries of an engine. Engine has the type Member, a member of a group, and the functions
//   static Member* Create(const tw_host* host, void* user, const tw_group_config& config);  may throw
//   static void Destroy(Member* member);
// Member has the functions
//   void Start(Operation operation, const tw_collective_call& call);  may throw
//   void Abort(const tw_status* why);
template <class Engine>
struct EngineEntries {
  using Member = typename Engine::Member;

  static tw_status* Create(const tw_host* h, void* user, const tw_group_config* c, void** out_group) {
    return tw::guard(h, [&] { *out_group = Engine::Create(h, user, *c); });
  }
  static void Destroy(const tw_host*, void* group) { Engine::Destroy(static_cast<Member*>(group)); }
  static void Abort(const tw_host*, void* group, const tw_status* why) { static_cast<Member*>(group)->Abort(why); }
  template <Operation kOperation>
  static tw_status* Start(const tw_host* h, void* group, const tw_collective_call* c) {
    return tw::guard(h, [&] { static_cast<Member*>(group)->Start(kOperation, *c); });
  }
};

// user: is given to Engine::Create.
template <class Engine>
tw_status* AddEngine(tw_registrar* r, std::string_view name, void* user) {
  using Entries = EngineEntries<Engine>;
  tw_collective_def d = {};
  d.size = sizeof d;
  d.name = name.data();
  d.name_len = name.size();
  d.kind = "CPU";
  d.kind_len = 3;
  d.user = user;
  d.create = Entries::Create;
  d.destroy = Entries::Destroy;
  d.abort = Entries::Abort;
  d.all_reduce = Entries::template Start<Operation::kAllReduce>;
  d.broadcast = Entries::template Start<Operation::kBroadcast>;
  d.all_gather = Entries::template Start<Operation::kAllGather>;
  d.reduce_scatter = Entries::template Start<Operation::kReduceScatter>;
  d.all_to_all = Entries::template Start<Operation::kAllToAll>;
  d.permute = Entries::template Start<Operation::kPermute>;
  return tw_add_collective(r, &d);
}

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_COLLECTIVE_ENGINE_H_
