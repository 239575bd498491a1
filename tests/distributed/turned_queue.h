// The controls of the plugin grpc_turned, which is the plugin grpc with turned_queue.cc. It holds
// events back and then returns the last one first, as two threads at a completion queue may do; it
// makes an allocation fail; and it offers no shared memory for bodies.
#pragma once
#include <atomic>

namespace thalweg::testing {

// The environment variable that names the controls to the plugin, as "PROCESS ADDRESS".
constexpr const char* kTurnedQueue = "THALWEG_TURNED_QUEUE";

struct TurnedQueue {
  std::atomic<bool> holds{false};
  std::atomic<int> held{0};            // number of events
  std::atomic<bool> no_memory{false};  // the next allocation while the plugin handles an event fails; then it is false again
};

}  // namespace thalweg::testing
