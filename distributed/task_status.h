// What a task says of itself to whoever watches a cluster: its steps and what they wait for, its devices, and what came to it from whom.
// Traffic counts the last. Threads: Traffic any; the rest values, no sharing.
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

// A step that runs. Times are nanoseconds.
struct RunStatus {
  uint64_t session = 0, step = 0;
  int64_t age = 0;
  int64_t idle = 0;                                        // since a value came or went, or it began
  uint32_t n_waits = 0;                                    // values that are still to come
  std::vector<std::pair<std::string, std::string>> waits;  // some of them: key, and the title of who makes it
};

struct DeviceStatus {
  std::string name;
  uint64_t used = 0, limit = 0;  // bytes; limit 0: none is known
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

// Bytes of memory that this process has; 0: not known.
uint64_t ProcessMemory();

}  // namespace thalweg::distributed
