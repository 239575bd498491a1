#include "framework/runtime/host/group_set.h"

#include "framework/runtime/state/groups.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

StatusOr<Groups*> Of(const tw_frame* f) {
  auto* member = dynamic_cast<GroupMember*>(KernelFrame::Of(f)->step->functions);
  if (Groups* g = member ? member->groups() : nullptr) return g;
  return FailedPrecondition("the session is in no group: set its options collective_store, collective_rank and collective_members, or ",
                            "start the program with `thalweg launch`");
}

tw_status* Start(const tw_frame* f, const tw_group_call* c) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Groups * groups, Of(f));
    if (c->operation < TW_GROUP_ALL_REDUCE || c->operation > TW_GROUP_PERMUTE) {
      return InvalidArgument("operation ", c->operation, " is none of TW_GROUP_*");
    }
    return groups->Start(KernelFrame::Of(f), *c);
  });
}

tw_status* Members(const tw_frame* f, uint32_t* out_members, uint32_t* out_rank) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(const Groups* groups, Of(f));
    *out_members = groups->members();
    *out_rank = groups->rank();
    return Status();
  });
}

}  // namespace

const tw_group_api* GroupSet() {
  static constexpr tw_group_api kSet = {TW_SIZED(tw_group_api), Start, Members};
  return &kSet;
}

}  // namespace thalweg
