#include "framework/runtime/host_functions.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/later_calls.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {

// ---- Functions ----

Status HostFunction::Enter() noexcept {
  try {
    std::lock_guard lock(mu_);
    if (closed_) {
      return FailedPrecondition(
          "the program unregistered the function before this call began; "
          "unregister it after the steps that call it");
    }
    inside_.push_back(std::this_thread::get_id());
    return Status();
  } catch (...) {
    return Thrown();
  }
}

// for_good: the thread never returns to its pool, which gives it up.
void HostFunction::Leave(ThreadPool* for_good) noexcept {
  std::lock_guard lock(mu_);
  const auto at = std::find(inside_.begin(), inside_.end(), std::this_thread::get_id());
  if (at == inside_.end()) return;  // Close gave it up; the pool may be gone
  // Under the lock, so that Close does not return before the pool knows: its caller may then destroy
  // the pool.
  if (for_good) for_good->GiveUp(*at);
  inside_.erase(at);
  left_.notify_all();
}

void HostFunction::Run(HostCall* call, ThreadPool* pool) noexcept {
  Status s = call->over() ? Error(absl::StatusCode::kCancelled, "the step has ended") : Enter();
  if (!s.ok()) return call->Fail(std::move(s));
#ifdef __GLIBCXX__
  try {
    body_(user_, reinterpret_cast<tw_host_call*>(call));
  } catch (const abi::__forced_unwind&) {
    // Somebody ends this thread inside the body: Python does so to each thread that wants its lock
    // after the interpreter has ended. The frames below this one are not made for that, and this
    // exception cannot be dropped, so the thread stands still.
    Leave(pool);
    for (;;) ::pause();
  }
#else
  body_(user_, reinterpret_cast<tw_host_call*>(call));
#endif
  Leave(nullptr);
}

// A forked child does not have the threads that were in the body.
size_t HostFunction::Close(std::optional<std::chrono::nanoseconds> most, ThreadPool* pool) {
  const auto me = std::this_thread::get_id();
  std::unique_lock lock(mu_);
  closed_ = true;
  if (!origin_.here()) return 0;
  const auto is_empty = [&] { return std::all_of(inside_.begin(), inside_.end(), [&](std::thread::id id) { return id == me; }); };
  if (!most) {
    left_.wait(lock, is_empty);
  } else if (!left_.wait_for(lock, *most, is_empty)) {
    // Under the lock, so that none of them returns to the pool before the pool knows.
    for (std::thread::id id : inside_) {
      if (id != me) pool->GiveUp(id);
    }
    return std::erase_if(inside_, [&](std::thread::id id) { return id != me; });
  }
  return 0;
}

Status HostFunctions::Add(std::string_view token, HostFunction::Body body, void* user) {
  if (token.empty()) return InvalidArgument("the token of a host function is empty; choose a text that no other function has");
  std::lock_guard lock(mu_);
  const auto [at, is_new] = functions_.try_emplace(std::string(token), nullptr);
  if (!is_new) return AlreadyExists("a host function has the token '", Shown(token), "' already; unregister it, or choose another token");
  try {
    at->second = std::make_shared<HostFunction>(body, user);
  } catch (...) {
    functions_.erase(at);
    throw;
  }
  return Status();
}

StatusOr<size_t> HostFunctions::Remove(std::string_view token, std::optional<std::chrono::nanoseconds> most, ThreadPool* pool) {
  std::shared_ptr<HostFunction> removed;
  {
    std::lock_guard lock(mu_);
    const auto at = functions_.find(token);
    if (at == functions_.end()) return NotFound("no host function has the token '", Shown(token), "'");
    removed = std::move(at->second);
    functions_.erase(at);
  }
  return removed->Close(most, pool);
}

StatusOr<std::shared_ptr<HostFunction>> HostFunctions::Find(std::string_view token) const {
  std::lock_guard lock(mu_);
  const auto at = functions_.find(token);
  if (at != functions_.end()) return at->second;
  return FailedPrecondition("no function of this process has the token '", Shown(token),
                            "': functions of the program are not stored with a graph; register the function under this token "
                            "(tw_host_function_register), or build the graph in this process");
}

// ---- Calls ----

HostCall::HostCall(const tw_frame* frame)
    : frame_(frame), step_(KernelFrame::Of(frame)->step), token_(frame->token), node_(KernelFrame::Of(frame)->run->node->name()) {
  const uint32_t* types = KernelFrame::Of(frame)->run->types + frame->n_in;
  output_types_.assign(types, types + frame->n_out);
}

Status HostCall::KeepInputs() {
  inputs_.reserve(frame_->n_in);
  for (uint32_t i = 0; i < frame_->n_in; ++i) {
    tw_tensor* kept = nullptr;
    RETURN_IF_ERROR(FromC(frame_->host->tensor->keep(frame_, i, &kept)));
    inputs_.push_back(Tensor::Adopt(kept));
  }
  return Status();
}

Status HostCall::Start(Runtime* runtime, std::shared_ptr<HostFunction> function, const tw_frame* frame) {
  if (!frame->token) return FailedPrecondition("the kernel is not asynchronous, so it cannot call a function of the program");
  std::unique_ptr<HostCall> made(new HostCall(frame));
  RETURN_IF_ERROR(made->KeepInputs());
  HostCall* call = made.get();
  ThreadPool* pool = &runtime->pool();
  std::function<void()> work = [function = std::move(function), call, pool] { function->Run(call, pool); };
  LaterCalls::Get().WhenInterrupted(*call->step_, Interrupted, call, nullptr, &call->watch_);
  made.release();  // whoever ends the call destroys the object
  try {
    pool->Blocking(std::move(work));
  } catch (...) {  // no memory to hand it over
    call->Fail(Thrown());
  }
  return Status();
}

// While this runs, End waits in Forget before it completes the token or destroys the object; so both
// the object and the step are alive.
void HostCall::Interrupted(void* arg) {
  auto* call = static_cast<HostCall*>(arg);
  Status why = StepInterrupted(*call->step_);
  if (why.ok()) why = Error(absl::StatusCode::kCancelled, "the step was cancelled");
  if (!call->over_.exchange(true)) AsyncCalls::Get().Complete(call->token_, std::move(why));
}

void HostCall::End(Status s, const std::vector<Tensor>& outputs) noexcept {
  const std::unique_ptr<HostCall> own(this);
  const bool was_over = over_.exchange(true);
  LaterCalls::Get().Forget(watch_);
  if (was_over) return;
  try {
    if (s.ok()) s = Give(outputs);
  } catch (...) {
    s = Thrown();
  }
  inputs_.clear();  // before the step can end
  AsyncCalls::Get().Complete(token_, std::move(s));
}

Status HostCall::Give(const std::vector<Tensor>& outputs) const {
  if (outputs.size() != output_types_.size()) {
    return InvalidArgument("the function of the program gave ", outputs.size(), " outputs, but 'Tout' has ", output_types_.size());
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    Tensor t = outputs[o];
    if (!t) return InvalidArgument("the function of the program gave no tensor for output ", o);
    if (t.dtype() != output_types_[o]) {
      return InvalidArgument("the function of the program gave ", DTypeName(t.dtype()), " for output ", o, ", but 'Tout' says ",
                             DTypeName(output_types_[o]));
    }
    if (Device* holder = HoldingDevice(*t.get())) {
      ASSIGN_OR_RETURN(t, holder->ToHost(t));
    }
    RETURN_IF_ERROR(FromC(frame_->host->tensor->give(frame_, o, t.get())));
  }
  return Status();
}

}  // namespace thalweg
