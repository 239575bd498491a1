#include "framework/runtime/host/timeline_set.h"

#include <memory>

#include "framework/runtime/devices/timeline.h"
#include "framework/runtime/step/async_calls.h"

namespace thalweg {
namespace {

tw_status* MakeTimeline(const tw_host*, tw_timeline** out) {
  return Guard([&]() -> Status {
    *out = new tw_timeline;
    return Status();
  });
}

void EndCall(void* arg, const tw_status* why) {
  const std::unique_ptr<tw_token> token(static_cast<tw_token*>(arg));
  AsyncCalls::Get().Complete(*token, why ? why->status : Status());
}

tw_status* CompleteAt(const tw_frame* f, tw_timeline* line, uint64_t value) {
  return Guard([&]() -> Status {
    if (!f->token) return FailedPrecondition("the call has no token: complete_at is for asynchronous kernels");
    if (!line) return InvalidArgument("there is no timeline to wait for");
    auto token = std::make_unique<tw_token>(f->token);
    line->When(value, EndCall, token.get());  // if it throws, the line does not have the call
    (void)token.release();                    // EndCall frees it, perhaps already
    return Status();
  });
}

constexpr tw_timeline_set kTimelineSet = {TW_SIZED(tw_timeline_set), MakeTimeline, CompleteAt};

}  // namespace

const tw_timeline_set* TimelineSet() { return &kTimelineSet; }

}  // namespace thalweg
