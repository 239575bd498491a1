#include "framework/runtime/host/function_set.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/local_memory.h"
#include "framework/base/shown.h"
#include "framework/graph/function.h"
#include "framework/graph/node_marks.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

const FoundFunction* Found(const tw_function* fn) { return reinterpret_cast<const FoundFunction*>(fn); }
const Function& Of(const tw_function* fn) { return *Found(fn)->function; }

tw_status* Find(const tw_frame* frame, const char* name, uint64_t len, const tw_function** out_function) {
  return Guard([&]() -> Status {
    FunctionCaller* caller = KernelFrame::Of(frame)->step->functions;
    if (!caller)
      return FailedPrecondition("function '", Shown({name, size_t(len)}), "' is asked for where there are none: outside of a step");
    ASSIGN_OR_RETURN(const FoundFunction* f, caller->FindFunction({name, size_t(len)}));
    *out_function = reinterpret_cast<const tw_function*>(f);
    return Status();
  });
}

uint32_t Args(const tw_function* fn) { return uint32_t(Of(fn).args().size()); }
uint32_t Results(const tw_function* fn) { return uint32_t(Of(fn).results().size()); }
uint32_t ArgType(const tw_function* fn, uint32_t i) { return Of(fn).arg_type(i); }
uint32_t ResultType(const tw_function* fn, uint32_t o) { return Of(fn).result_type(o); }

// A call from C, with its arguments and results as tensors.
struct Called {
  Called(const tw_function* fn, tw_tensor** args, tw_tensor** out)
      : found(Found(fn)), given(Of(fn).args().size(), few.get()), results(Of(fn).results().size(), few.get()), out_results(out) {
    std::fill_n(out, results.size(), nullptr);
    for (size_t i = 0; i < given.size(); ++i) given[i] = Tensor::Adopt(args[i]);
  }
  FunctionCall Record(const tw_frame* frame, bool anywhere) {
    const Node& node = *KernelFrame::Of(frame)->run->node;
    return {found, node.device(), anywhere, given.data(), results.data(), FreesMemory(node)};
  }
  Status HandOver(Status s) {
    for (size_t o = 0; s.ok() && o < results.size(); ++o) out_results[o] = results[o].release();
    return s;
  }

  const FoundFunction* const found;
  LocalMemory<256> few;
  std::pmr::vector<Tensor> given, results;
  tw_tensor** const out_results;
};

Status CallAndWait(const tw_frame* frame, const tw_function* fn, tw_tensor** args, tw_tensor** out_results, bool anywhere) {
  Called called(fn, args, out_results);
  StepBase& step = *KernelFrame::Of(frame)->step;
  return called.HandOver(step.functions->Call(step, called.Record(frame, anywhere)));
}

tw_status* Call(const tw_frame* frame, const tw_function* fn, tw_tensor** args, tw_tensor** out_results) {
  return Guard([&] { return CallAndWait(frame, fn, args, out_results, false); });
}

tw_status* Run(const tw_frame* frame, const tw_function_call* call) {
  if (!call->done) return Guard([&] { return CallAndWait(frame, call->function, call->args, call->out_results, call->anywhere); });
  const auto done = call->done;
  void* const arg = call->arg;
  Status refused;
  try {
    auto called = std::make_shared<Called>(call->function, call->args, call->out_results);
    StepBase& step = *KernelFrame::Of(frame)->step;
    step.functions->Start(step, called->Record(frame, call->anywhere),
                          [called, done, arg](Status s) { done(arg, ToC(called->HandOver(std::move(s)))); });
    return nullptr;
  } catch (...) {  // before the call has begun
    refused = Thrown();
  }
  done(arg, ToC(refused));
  return nullptr;
}

tw_status* Loop(const tw_frame* frame, const tw_function_loop* c, uint64_t* out_iterations) {
  return Guard([&]() -> Status {
    FunctionLoop loop{Found(c->cond),   Found(c->body), KernelFrame::Of(frame)->run->node->device(),
                      c->anywhere != 0, nullptr,        out_iterations};
    *out_iterations = 0;
    LocalMemory<256> few;
    std::pmr::vector<Tensor> values(Of(c->body).args().size(), few.get());
    for (size_t i = 0; i < values.size(); ++i) values[i] = Tensor::Adopt(std::exchange(c->values[i], nullptr));
    loop.values = values.data();
    StepBase& step = *KernelFrame::Of(frame)->step;
    const Status s = step.functions->Loop(step, &loop);
    for (size_t i = 0; s.ok() && i < values.size(); ++i) c->values[i] = values[i].release();
    return s;
  });
}

}  // namespace

const tw_function_api* FunctionSet() {
  static constexpr tw_function_api kSet = {sizeof(tw_function_api), 0, Find, Args, Results, ArgType, ResultType, Call, Run, Loop};
  return &kSet;
}

}  // namespace thalweg
