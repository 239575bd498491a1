#include "framework/runtime/function_set.h"

#include <algorithm>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/function.h"
#include "framework/runtime/frame.h"

namespace thalweg {
namespace {

const Function& Of(const tw_function* fn) { return *reinterpret_cast<const Function*>(fn); }

tw_status* Find(const tw_frame* frame, const char* name, uint64_t len, const tw_function** out_function) {
  return Guard([&]() -> Status {
    FunctionCaller* caller = KernelFrame::Of(frame)->step->functions;
    if (!caller)
      return FailedPrecondition("function '", Shown({name, size_t(len)}), "' is asked for where there are none: outside of a step");
    ASSIGN_OR_RETURN(const Function* f, caller->FindFunction({name, size_t(len)}));
    *out_function = reinterpret_cast<const tw_function*>(f);
    return Status();
  });
}

uint32_t Args(const tw_function* fn) { return uint32_t(Of(fn).args().size()); }
uint32_t Results(const tw_function* fn) { return uint32_t(Of(fn).results().size()); }
uint32_t ArgType(const tw_function* fn, uint32_t i) { return Of(fn).arg_type(i); }
uint32_t ResultType(const tw_function* fn, uint32_t o) { return Of(fn).result_type(o); }

tw_status* Call(const tw_frame* frame, const tw_function* fn, tw_tensor** args, tw_tensor** out_results) {
  const Function& f = Of(fn);
  std::fill_n(out_results, f.results().size(), nullptr);
  return Guard([&]() -> Status {
    const StepBase& step = *KernelFrame::Of(frame)->step;
    std::vector<Tensor> given(f.args().size()), results(f.results().size());
    for (size_t i = 0; i < given.size(); ++i) {
      given[i] = Tensor::Adopt(args[i]);
    }
    RETURN_IF_ERROR(step.functions->Call(step, f, given.data(), results.data()));
    for (size_t o = 0; o < results.size(); ++o) out_results[o] = results[o].release();
    return Status();
  });
}

}  // namespace

const tw_function_api* FunctionSet() {
  static constexpr tw_function_api kSet = {sizeof(tw_function_api), 0, Find, Args, Results, ArgType, ResultType, Call};
  return &kSet;
}

}  // namespace thalweg
