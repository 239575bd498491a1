// HostFunctions: functions of the program that nodes of a runtime's graphs call by their tokens.
// HostCall is one such call: it starts on a thread that may block, and the program ends it on any
// thread. Threads: any.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/origin.h"
#include "framework/base/status.h"
#include "framework/tensor/tensor.h"
#include "thalweg/plugin/kernel.h"

struct tw_host_call;

namespace thalweg {

class HostCall;
class Runtime;
class ThreadPool;
struct StepBase;

class HostFunction {
 public:
  // Must end the call, then or later, with HostCall::Finish or Fail.
  using Body = void (*)(void* user, tw_host_call* call);
  HostFunction(Body body, void* user) : body_(body), user_(user) {}
  // Runs the body on this thread, unless the function is closed or nobody waits for the call any
  // more; the call is then ended here. pool: the one of this thread. Does not return if the body ends
  // the thread.
  void Run(HostCall* call, ThreadPool* pool) noexcept;
  // No thread enters the body afterwards. Waits until no other thread is in it, at most for `most`;
  // without `most`, for ever. Gives up the threads that still are in it, and returns their number.
  size_t Close(std::optional<std::chrono::nanoseconds> most, ThreadPool* pool);

 private:
  Status Enter() noexcept;
  void Leave(ThreadPool* for_good) noexcept;

  const Body body_;
  void* const user_;
  const Origin origin_;
  std::mutex mu_;  // guards the members below
  std::condition_variable left_;
  bool closed_ = false;
  std::vector<std::thread::id> inside_;  // without the threads that were given up
};

class HostFunctions {
 public:
  // Errors: INVALID_ARGUMENT for an empty token; ALREADY_EXISTS.
  Status Add(std::string_view token, HostFunction::Body body, void* user);
  // Removes and closes the function. Returns the number of threads that were given up; pool: theirs.
  // NOT_FOUND.
  StatusOr<size_t> Remove(std::string_view token, std::optional<std::chrono::nanoseconds> most, ThreadPool* pool);
  // FAILED_PRECONDITION if no function has the token.
  StatusOr<std::shared_ptr<HostFunction>> Find(std::string_view token) const;

 private:
  mutable std::mutex mu_;  // guards functions_
  std::map<std::string, std::shared_ptr<HostFunction>, std::less<>> functions_;
};

// If the step is cancelled or its deadline passes, the node ends at once. The object lives on until
// the program ends the call, too, and touches neither step nor runtime any more.
class HostCall {
 public:
  // Starts the call of an asynchronous kernel whose inputs are in host memory and which gives all of
  // its outputs. Completes the frame's token, unless it returns an error.
  static Status Start(Runtime* runtime, std::shared_ptr<HostFunction> function, const tw_frame* frame);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& output_types() const { return output_types_; }
  const std::string& node() const { return node_; }
  // Returns true if the step does not wait for the outputs any more.
  bool over() const { return over_.load(); }
  // Each ends the call and destroys the object. Finish fails the node if the outputs do not fit it.
  void Finish(const std::vector<Tensor>& outputs) noexcept { End(Status(), outputs); }
  void Fail(Status s) noexcept { End(std::move(s), {}); }

 private:
  explicit HostCall(const tw_frame* frame);
  Status KeepInputs();
  void End(Status s, const std::vector<Tensor>& outputs) noexcept;
  Status Give(const std::vector<Tensor>& outputs) const;
  static void Interrupted(void* call);

  const tw_frame* const frame_;  // valid while the call is not over, like step_
  const StepBase* const step_;
  const tw_token token_;
  const std::string node_;
  std::vector<uint32_t> output_types_;
  std::vector<Tensor> inputs_;
  uint64_t watch_ = 0;  // of LaterCalls
  std::atomic<bool> over_{false};
};

}  // namespace thalweg
