#include "poller.h"

#include <utility>

#include <grpc/support/time.h>

#include "handover.h"

namespace thalweg::grpc_transport {

NoSignals::NoSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}
NoSignals::~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread QuietThread(std::function<void()> f) {
  const NoSignals quiet;
  return std::thread(std::move(f));
}

// ---- Poller ----

Poller::Poller(int spin_us) : spin_us_(spin_us), queue_(grpc_completion_queue_create_for_next(nullptr)) {
  thread_ = QuietThread([this] { Run(); });
}

Poller::~Poller() {
  grpc_completion_queue_shutdown(queue_);
  thread_.join();
  grpc_completion_queue_destroy(queue_);
}

grpc_event Poller::Next() {
  if (spin_us_ > 0) {
    const gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(spin_us_, GPR_TIMESPAN));
    do {
      const grpc_event e = grpc_completion_queue_next(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), nullptr);
      if (e.type != GRPC_QUEUE_TIMEOUT) return e;
    } while (gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), until) < 0);
  }
  return grpc_completion_queue_next(queue_, gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
}

void Poller::Run() {
  for (;;) {
    const grpc_event e = Next();
    if (e.type == GRPC_QUEUE_SHUTDOWN) return;
    if (e.type != GRPC_OP_COMPLETE) continue;
    Get(e.tag);
    static_cast<Event*>(e.tag)->Happen(e.success != 0);
  }
}

// ---- Chores ----

Chores::Chores() {
  thread_ = QuietThread([this] { Run(); });
}

void Chores::Add(std::function<void()> f) {
  std::lock_guard lock(mu_);
  todo_.push_back(std::move(f));
  changed_.notify_one();
}

void Chores::Stop() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Chores::Run() {
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !todo_.empty(); });
    if (todo_.empty()) return;
    auto f = std::move(todo_.front());
    todo_.pop_front();
    lock.unlock();
    f();
    f = nullptr;
    lock.lock();
  }
}

}  // namespace thalweg::grpc_transport
