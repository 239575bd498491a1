#include "thalweg/host_function.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/runtime/host_functions.h"

namespace {

thalweg::HostCall* Of(tw_host_call* call) { return reinterpret_cast<thalweg::HostCall*>(call); }
const thalweg::HostCall* Of(const tw_host_call* call) { return reinterpret_cast<const thalweg::HostCall*>(call); }

}  // namespace

tw_status* tw_host_function_register(tw_runtime* runtime, const char* token, tw_host_function function, void* user) {
  NEED(token);
  NEED(function);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    return of->Common<thalweg::HostFunctions>()->Add(token, function, user);
  });
}

tw_status* tw_host_function_unregister(tw_runtime* runtime, const char* token) {
  NEED(token);
  return thalweg::Enter([&]() -> thalweg::Status {
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    return of->Common<thalweg::HostFunctions>()->Remove(token, std::nullopt, &of->pool()).status();
  });
}

tw_status* tw_host_function_unregister_within(tw_runtime* runtime, const char* token, int64_t wait_ns, uint32_t* out_inside) {
  NEED(token);
  if (out_inside) *out_inside = 0;
  return thalweg::Enter([&]() -> thalweg::Status {
    if (wait_ns < 0) return thalweg::InvalidArgument("wait_ns is ", wait_ns, "; use 0 to wait for no thread");
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    const std::chrono::nanoseconds wait(std::min(wait_ns, int64_t{1} << 62));  // now plus this fits into 64 bits
    ASSIGN_OR_RETURN(const size_t inside, of->Common<thalweg::HostFunctions>()->Remove(token, wait, &of->pool()));
    if (out_inside) *out_inside = uint32_t(inside);
    return thalweg::Status();
  });
}

const char* tw_host_call_operation(const tw_host_call* call) { return call ? Of(call)->node().c_str() : ""; }

uint32_t tw_host_call_input_count(const tw_host_call* call) { return call ? uint32_t(Of(call)->inputs().size()) : 0; }

uint32_t tw_host_call_output_count(const tw_host_call* call) { return call ? uint32_t(Of(call)->output_types().size()) : 0; }

uint32_t tw_host_call_output_dtype(const tw_host_call* call, uint32_t i) {
  return i < tw_host_call_output_count(call) ? Of(call)->output_types()[i] : 0;
}

tw_tensor* tw_host_call_input(const tw_host_call* call, uint32_t i) {
  return i < tw_host_call_input_count(call) ? Of(call)->inputs()[i].get() : nullptr;
}

uint32_t tw_host_call_cancelled(const tw_host_call* call) { return call && Of(call)->over() ? 1 : 0; }

void tw_host_call_finish(tw_host_call* call, tw_tensor* const* outputs, uint32_t n) {
  if (!call) return;
  try {
    std::vector<thalweg::Tensor> given(n);
    for (uint32_t i = 0; outputs && i < n; ++i) {
      if (outputs[i]) given[i] = thalweg::Tensor::Share(outputs[i]);
    }
    Of(call)->Finish(given);
  } catch (...) {  // no memory for the list
    Of(call)->Fail(thalweg::Thrown());
  }
}

void tw_host_call_fail(tw_host_call* call, uint32_t code, const char* message, uint64_t cookie) {
  if (!call) return;
  const bool known = code > TW_OK && code <= TW_UNAUTHENTICATED;
  try {
    auto s = thalweg::Error(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, thalweg::TextOrEmpty(message));
    Of(call)->Fail(thalweg::WithCookie(std::move(s), cookie));
  } catch (...) {
    Of(call)->Fail(thalweg::Thrown());
  }
}
