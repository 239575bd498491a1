#include "tests/distributed/turned_queue.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include <grpc/grpc.h>
#include <grpc/support/time.h>

namespace {

using thalweg::testing::TurnedQueue;

// Returns NULL in another process, which only probes the plugin.
TurnedQueue* Control() {
  static TurnedQueue* const control = [] {
    const char* text = std::getenv(thalweg::testing::kTurnedQueue);
    long process = 0;
    void* at = nullptr;
    const bool ours = text && std::sscanf(text, "%ld %p", &process, &at) == 2 && process == long(getpid());
    return ours ? static_cast<TurnedQueue*>(at) : nullptr;
  }();
  return control;
}

std::mutex mu;
std::vector<grpc_event> held;
thread_local bool handles = false;  // this thread handles an event

grpc_event Handled(grpc_event e) {
  handles = e.type == GRPC_OP_COMPLETE;
  return e;
}

}  // namespace

// The linker substitutes the __wrap_ functions in the plugin for the originals, which keep the
// prefix __real_.
extern "C" {

grpc_event __real_grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved);
grpc_event __wrap_grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  TurnedQueue* control = Control();
  if (!control) return __real_grpc_completion_queue_next(queue, deadline, reserved);
  handles = false;
  for (;;) {
    {
      std::lock_guard lock(mu);
      if (!control->holds && !held.empty()) {
        const grpc_event last = held.back();
        held.pop_back();
        --control->held;
        return Handled(last);
      }
    }
    const gpr_timespec soon = gpr_time_add(gpr_now(deadline.clock_type), gpr_time_from_millis(5, GPR_TIMESPAN));
    const bool is_last = gpr_time_cmp(deadline, soon) <= 0;
    const grpc_event e = __real_grpc_completion_queue_next(queue, is_last ? deadline : soon, reserved);
    if (e.type == GRPC_QUEUE_TIMEOUT && !is_last) continue;
    if (e.type != GRPC_OP_COMPLETE || !control->holds) return Handled(e);
    std::lock_guard lock(mu);
    held.push_back(e);
    ++control->held;
  }
}

void* __real__Znwm(size_t bytes);
void* __wrap__Znwm(size_t bytes) {
  if (handles && Control() && Control()->no_memory.exchange(false)) throw std::bad_alloc();
  return __real__Znwm(bytes);
}

int __wrap_memfd_create(const char*, unsigned) { return -1; }

}  // extern "C"
