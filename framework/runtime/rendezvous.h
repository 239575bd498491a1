// Rendezvous: where the parts of one step that run in different processes hand values to each other. Nodes `_Send` and `_Recv` reach the
// one of their step through the set `rendezvous` of the host table. Threads: any.
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
  // value: in host memory; empty: dead, since it comes from a branch that was not taken. iteration: of the loops that the node is in, "3",
  // "1.4": the outermost first; "": it is in none. Each key once in an iteration of a step.
  virtual Status Send(std::string_view key, std::string_view iteration, Tensor value) = 0;
  // done: called once, maybe before this returns; the tensor is empty after a failure, and where the value is dead.
  virtual void Receive(std::string_view key, std::string_view iteration, Received done) = 0;
  // A node of the step has failed here: whoever waits for the others need not wait any longer. Calls no `done` itself, for the step may
  // hold a lock.
  virtual void StepFailed(const Status& why) = 0;
};

}  // namespace thalweg
