// What a test does to the plugin grpc_turned, which is the plugin grpc and turned_queue.cc: it holds back what happens, then gives the last
// first, as two threads at a completion queue may; and it takes memory away. Without memory of its own to share bodies by.
#pragma once
#include <atomic>

namespace thalweg::testing {

// The plugin finds it by the environment, as "PROCESS ADDRESS".
constexpr const char* kTurnedQueue = "THALWEG_TURNED_QUEUE";

struct TurnedQueue {
  std::atomic<bool> holds{false};
  std::atomic<int> held{0};            // events
  std::atomic<bool> no_memory{false};  // for what the plugin asks for next while it handles an event; false again afterwards
};

}  // namespace thalweg::testing
