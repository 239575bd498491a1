#include "poller.h"

#include <utility>

#include "handover.h"

namespace thalweg::grpc_transport {

// gRPC has no event that a program may send itself. But an empty batch on a call completes at once,
// even on a call that leads nowhere.
Poller::Poller(int spin_us) : spin_us_(spin_us), queue_(grpc_completion_queue_create_for_next(nullptr)) {
  bell_.poller = this;
  bell_.channel = grpc_lame_client_channel_create("", GRPC_STATUS_UNAVAILABLE, "");
  bell_.call = grpc_channel_create_call(bell_.channel, nullptr, GRPC_PROPAGATE_DEFAULTS, queue_, grpc_slice_from_static_string("/"),
                                        nullptr, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
  Begin();
}

Poller::~Poller() {
  grpc_call_unref(bell_.call);
  grpc_channel_destroy(bell_.channel);
  grpc_completion_queue_shutdown(queue_);
  Join();
  grpc_completion_queue_destroy(queue_);
}

grpc_event Poller::Next(gpr_timespec until) {
  if (spin_us_ > 0) {
    const gpr_timespec look = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(spin_us_, GPR_TIMESPAN));
    do {
      const grpc_event e = grpc_completion_queue_next(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), nullptr);
      if (e.type != GRPC_QUEUE_TIMEOUT) return e;
    } while (gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), look) < 0);
  }
  return grpc_completion_queue_next(queue_, until, nullptr);
}

bool Poller::Turn(Time until) {
  gpr_timespec at = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (until != Time::max()) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now());
    at = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
  }
  const grpc_event e = Next(at);
  if (e.type == GRPC_QUEUE_SHUTDOWN) return false;
  if (e.type != GRPC_OP_COMPLETE) return true;
  Get(e.tag);
  static_cast<Event*>(e.tag)->Happen(e.success != 0);
  return true;
}

void Poller::Ring() {
  if (std::exchange(bell_.rings, true)) return;
  Give(&bell_);
  grpc_call_start_batch(bell_.call, nullptr, 0, &bell_, nullptr);
}

}  // namespace thalweg::grpc_transport
