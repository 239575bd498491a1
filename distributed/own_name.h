// OwnName: whom a task's credentials name. A task that shows those of another member starts all the same, and is refused by others, who do
// not say why; so it calls itself first, as others would. Threads: any.
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
  // A call that nobody else can make brings this name with it.
  OwnName();
  // Of a Hello that has come in: if it is the own one, its peer is who this task has proven to be.
  void Heard(std::string_view fields, const Incoming& request);
  // Calls the task at its own address. self: its address and incarnation. Answers FAILED_PRECONDITION naming both where its name is another
  // member's; *warning says why it could not be found out, or stays empty.
  Status Check(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options, const TaskId& task, const Destination& self,
               Clock* clock, std::string* warning);

 private:
  const std::string secret_;
  std::mutex mu_;
  std::string name_;  // empty: nothing was heard, or the transport tells none from another
};

}  // namespace thalweg::distributed
