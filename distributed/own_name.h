// OwnName: the name in a task's credentials. A task that uses the credentials of another member
// starts all the same, but other tasks refuse it without a reason; so it first calls itself as
// others would. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "distributed/clock.h"
#include "distributed/cluster.h"
#include "distributed/messenger.h"

namespace thalweg::distributed {

class OwnName {
 public:
  // Chooses a secret that only the task's own call contains.
  OwnName();
  // Takes an incoming Hello: if it contains the secret, its peer is the name that this task has
  // proven.
  void Heard(std::string_view fields, const Incoming& request);
  // Calls the task at its own address. self: its address and incarnation. Returns
  // FAILED_PRECONDITION naming both members if the name is another member's. *warning: the reason
  // if the name could not be found out; else empty.
  Status Check(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options, const TaskId& task, const Destination& self,
               Clock* clock, std::string* warning);

 private:
  const std::string secret_;
  std::mutex mu_;
  std::string name_;  // empty: nothing was heard, or the transport does not identify peers
};

}  // namespace thalweg::distributed
