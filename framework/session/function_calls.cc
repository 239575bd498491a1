// Calls of functions from inside a step: a session implements FunctionCaller, and its callables run
// as parts of the caller's step.
#include <algorithm>

#include "framework/base/shown.h"
#include "framework/base/stack.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "framework/session/session.h"

namespace thalweg {

constexpr size_t kStackOfCall = 512 << 10;  // stack bytes that a function call may use before it makes the next call

// Returns true if other nodes of the step may fail while one of its kernels calls a function.
static bool MayFailElsewhere(const StepBase& step) {
  const auto* state = dynamic_cast<const StepState*>(&step);
  return !state || state->plan().counted;
}

Status Callable::ReadyInside(const StepBase& step, std::string_view function, const Tensor* feeds, Inside* in) {
  ASSIGN_OR_RETURN(in->state, ReadyState(feeds, &in->found));
  StepState* state = in->state.get();
  state->cancel = step.cancel;
  state->deadline = step.deadline;
  state->share = step.share;
  state->depth = step.depth + 1;
  state->rendezvous = step.rendezvous;
  if (step.trace) in->trace = StepTrace::BeginCall(step.trace, function);
  state->trace = in->trace.get();
  return Status();
}

Status Callable::BeginInside(const StepBase& step, std::string_view function, Tensor* feeds, Inside* in) {
  RETURN_IF_ERROR(ReadyInside(step, function, feeds, in));
  StepState* state = in->state.get();
  state->Take(feeds);
  if (state->plan().async && MayFailElsewhere(step)) WaitingCalls::Get().Nest(state, &step);
  return Status();
}

Status Callable::EndInside(Inside* in, Status s) {
  if (in->state->plan().async) WaitingCalls::Get().Unnest(in->state.get());
  in->state->trace = nullptr;
  if (!in->state->broken() && !in->frees) plans_.GiveBack(in->found.entry, std::move(in->state));
  in->state.reset();  // a state that is not kept must be freed while the session exists
  return s;
}

Status Callable::RunInside(const StepBase& step, const FunctionCall& call) {
  Inside in;
  in.frees = call.frees;
  RETURN_IF_ERROR(BeginInside(step, call.function().name(), call.args, &in));
  return EndInside(&in, RunStep(in.state.get(), nullptr, call.results));
}

void Callable::StartInside(const StepBase& step, const FunctionCall& call, StepDone done) {
  auto in = std::make_shared<Inside>();
  in->frees = call.frees;
  if (Status s = BeginInside(step, call.function().name(), call.args, in.get()); !s.ok()) return done(std::move(s));
  StepState* state = in->state.get();
  if (!state->plan().async) return done(EndInside(in.get(), RunStep(state, nullptr, call.results)));
  StartStep(state, nullptr, call.results, [this, in = std::move(in), done = std::move(done)](Status s) {
    s = EndInside(in.get(), std::move(s));
    in->trace.reset();
    done(std::move(s));
  });
}

StatusOr<const FoundFunction*> Session::FindFunction(std::string_view name) {
  {
    std::shared_lock lock(functions_mu_);
    if (auto it = functions_.find(name); it != functions_.end()) return &it->second;
  }
  ASSIGN_OR_RETURN(auto f, graph_->functions()->Find(name));
  auto callable = std::make_unique<Callable>(this, *f, "", std::vector<Device*>());
  std::unique_lock lock(functions_mu_);
  return &functions_.try_emplace(f->name(), Called{{f}, std::move(callable), {}}).first->second;
}

// Returns where a function's nodes that name no device run: on the call's device, completed by the
// place of the calling step.
static std::string DeviceOf(const StepBase& step, std::string_view device) {
  const std::string outer = step.place ? *step.place : "";
  if (device.empty()) return outer;
  auto own = ParseDeviceSpec(device), inherited = ParseDeviceSpec(outer);
  if (!own.ok() || !inherited.ok()) return std::string(device);
  const auto both = MergeDeviceSpecs(*own, *inherited);
  return both.ok() ? both->text() : own->text();
}

// Arguments are used in the memory that holds them, so there is a plan for each combination of
// holders.
Callable* Session::CallableOf(const StepBase& step, const FunctionCall& call) {
  std::vector<Device*> devices;
  const size_t n = call.function().args().size();
  for (size_t i = 0; i < n; ++i) {
    Device* holder = call.args[i] ? HoldingDevice(*call.args[i].get()) : nullptr;
    if (holder && devices.empty()) devices.resize(n);
    if (holder) devices[i] = holder;
  }
  const bool placed = !call.device.empty() || (step.place && !step.place->empty());
  const auto& known = static_cast<const Called&>(*call.found);  // the entry and its callable live as long as the session
  if (!placed && devices.empty()) return known.callable.get();
  std::pair key(DeviceOf(step, call.device), std::move(devices));
  std::unique_lock lock(functions_mu_);
  std::unique_ptr<Callable>& callable = known.elsewhere[key];
  if (!callable) callable = std::make_unique<Callable>(this, *known.function, key.first, key.second);
  return callable.get();
}

Status Session::BeginCall(StepBase& step, const FunctionCall& call, Callable** callable) {
  if (step.depth >= options_.max_call_depth || StackLeft() < kStackOfCall) {
    return ResourceExhausted("function '", Shown(call.function().name()), "': ", step.depth, " calls lie within each other, and ",
                             step.depth >= options_.max_call_depth ? "the session option 'max_call_depth' allows no more"
                                                                   : "the thread's stack has no room for more",
                             "; does the recursion come to an end?");
  }
  *callable = CallableOf(step, call);
  const size_t n = call.function().args().size();
  const bool shares =
      std::any_of(call.args, call.args + n, [](const Tensor& t) { return t && (t.dtype() == TW_VARIANT || HoldingDevice(*t.get())); });
  Carrier* carrier = shares ? step.carrier() : nullptr;
  return carrier ? carrier->Settle() : Status();
}

// Finishes a call: copies results to host memory, unless the caller accepts any memory.
static Status EndCall(const FunctionCall& call, Status s) {
  const size_t n = call.function().results().size();
  for (size_t o = 0; s.ok() && !call.anywhere && o < n; ++o) {
    Device* holder = HoldingDevice(*call.results[o].get());
    auto on_host = holder ? holder->ToHost(call.results[o]) : StatusOr<Tensor>(call.results[o]);
    s = on_host.status();
    if (on_host.ok()) call.results[o] = *std::move(on_host);
  }
  for (size_t o = 0; !s.ok() && o < n; ++o) call.results[o].reset();
  return s.ok() ? s : OutOfCall(std::move(s));
}

Status Session::Call(StepBase& step, const FunctionCall& call) {
  Callable* callable = nullptr;
  RETURN_IF_ERROR(BeginCall(step, call, &callable));
  return EndCall(call, callable->RunInside(step, call));
}

void Session::Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) {
  Callable* callable = nullptr;
  if (Status s = BeginCall(step, call, &callable); !s.ok()) return done(std::move(s));
  callable->StartInside(step, call, [call, done = std::move(done)](Status s) { done(EndCall(call, std::move(s))); });
}

}  // namespace thalweg
