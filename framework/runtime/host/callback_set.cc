#include "framework/runtime/host/callback_set.h"

#include "framework/runtime/host/host_table.h"
#include "framework/runtime/later_calls.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

Status CheckFunction(const void* f, std::string_view name) { return f ? Status() : InvalidArgument("'", name, "' is NULL"); }

tw_status* Schedule(const tw_host* h, void (*work)(void*), void* arg) {
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(CheckFunction(reinterpret_cast<const void*>(work), "work"));
    if (!h->self) return FailedPrecondition("the runtime is gone");
    static_cast<Runtime*>(h->self)->pool().Blocking([work, arg, pin = PinOf(h)] { work(arg); });
    return Status();
  });
}

tw_status* At(const tw_host* h, int64_t time, void (*work)(void*), void* arg, uint64_t* out_id) {
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(CheckFunction(reinterpret_cast<const void*>(work), "work"));
    *out_id = LaterCalls::Get().At(time, work, arg, PinOf(h));
    return Status();
  });
}

tw_status* WhenCancelled(const tw_frame* f, void (*stop)(void*), void* arg, uint64_t* out_id) {
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(CheckFunction(reinterpret_cast<const void*>(stop), "stop"));
    if (!f->token) return FailedPrecondition("the call has no token: when_cancelled is for asynchronous kernels");
    LaterCalls::Get().WhenInterrupted(*KernelFrame::Of(f)->step, stop, arg, PinOf(f->host), out_id);
    return Status();
  });
}

uint32_t Forget(const tw_host*, uint64_t id) { return LaterCalls::Get().Forget(id); }

constexpr tw_callback_api kApi = {TW_SIZED(tw_callback_api), Schedule, At, WhenCancelled, Forget};

}  // namespace

const tw_callback_api* CallbackSet() { return &kApi; }

}  // namespace thalweg
