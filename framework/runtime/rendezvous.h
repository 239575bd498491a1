// Rendezvous: exchanges values between the parts of one step that run in different processes. The
// nodes `_Send` and `_Recv` reach the rendezvous of their step through the set `rendezvous` of the
// host table. Threads: any.
#pragma once
#include <functional>
#include <string_view>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Rendezvous {
 public:
  using Received = std::function<void(Status, Tensor)>;
  virtual ~Rendezvous() = default;
  // Sends a value under a key, once per iteration of a step. value: in host memory; empty for a
  // dead value, from a branch that was not taken. iteration: numbers of the loops around the node,
  // outermost first: "3", "1.4"; "" outside loops.
  virtual Status Send(std::string_view key, std::string_view iteration, Tensor value) = 0;
  // `done` is called once, possibly before this returns. The tensor is empty after a failure and
  // for a dead value.
  virtual void Receive(std::string_view key, std::string_view iteration, Received done) = 0;
  // Reports that a node of the step has failed here, so that peers stop waiting. Must not call a
  // `done` itself, because the step may hold a lock.
  virtual void StepFailed(const Status& why) = 0;
};

}  // namespace thalweg
