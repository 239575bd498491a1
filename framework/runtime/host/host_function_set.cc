#include "framework/runtime/host/host_function_set.h"

#include "framework/runtime/host_functions.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

StatusOr<Runtime*> Of(const tw_host* h) {
  if (!h->self) return FailedPrecondition("the runtime is gone");
  return static_cast<Runtime*>(h->self);
}

tw_status* Find(const tw_host* h, const char* token, uint64_t len) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Runtime * runtime, Of(h));
    return runtime->Common<HostFunctions>()->Find({token, size_t(len)}).status();
  });
}

tw_status* Start(const tw_frame* f, const char* token, uint64_t len) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Runtime * runtime, Of(f->host));
    ASSIGN_OR_RETURN(auto function, runtime->Common<HostFunctions>()->Find({token, size_t(len)}));
    return HostCall::Start(runtime, std::move(function), f);
  });
}

}  // namespace

const tw_host_function_api* HostFunctionSet() {
  static constexpr tw_host_function_api kSet = {TW_SIZED(tw_host_function_api), Find, Start};
  return &kSet;
}

}  // namespace thalweg
