// The status that a task reports to observers of a cluster: its steps and the values they wait for,
// its devices, and the traffic from each peer. Traffic counts that traffic. Threads: Traffic any;
// the rest values, no sharing.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/messages.h"
#include "distributed/wire.h"
#include "framework/base/status.h"

namespace thalweg::distributed {

// A running step. Times are nanoseconds.
struct RunStatus {
  uint64_t session = 0, step = 0;
  int64_t age = 0;
  int64_t idle = 0;                                        // since a value last came or went, or since the step began
  uint32_t n_waits = 0;                                    // number of values still to come
  std::vector<std::pair<std::string, std::string>> waits;  // some of them: key, and the title of the sender
};

struct DeviceStatus {
  std::string name;
  uint64_t used = 0, limit = 0;  // bytes; limit 0 if unknown
};

struct PeerStatus {
  std::string title;  // of a task, or "clients"
  uint64_t values = 0, bytes = 0;
};

struct TaskStatus {
  Hello hello;
  int64_t age = 0;      // nanoseconds since it began
  uint64_t memory = 0;  // bytes of the process
  std::vector<DeviceStatus> devices;
  std::vector<PeerStatus> received;
  std::vector<RunStatus> runs;
  std::string Put() const;
  static StatusOr<TaskStatus> Get(std::string_view bytes);
};

class Traffic {
 public:
  void Received(const std::string& title, uint64_t bytes);
  std::vector<PeerStatus> All() const;

 private:
  mutable std::mutex mu_;
  std::map<std::string, PeerStatus> all_;
};

// Bytes of memory that this process uses; 0 if unknown.
uint64_t ProcessMemory();

}  // namespace thalweg::distributed
