#include "poller.h"

#include <algorithm>
#include <utility>

#include "handover.h"

namespace thalweg::grpc_transport {
namespace {

constexpr auto kRest = std::chrono::microseconds(400);
constexpr auto kBusy = std::chrono::milliseconds(10);  // several threads wait at once: the own one wakes them
constexpr uint64_t kLongest = 1'000'000'000;           // nanoseconds of a loan

}  // namespace

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

// gRPC has no event that a program may send itself, but a call says at once when nothing is to be done for it, even one that goes nowhere.
Poller::Poller(int spin_us) : spin_us_(spin_us), queue_(grpc_completion_queue_create_for_next(nullptr)) {
  bell_.poller = this;
  bell_.channel = grpc_lame_client_channel_create("", GRPC_STATUS_UNAVAILABLE, "");
  bell_.call = grpc_channel_create_call(bell_.channel, nullptr, GRPC_PROPAGATE_DEFAULTS, queue_, grpc_slice_from_static_string("/"),
                                        nullptr, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
  thread_ = QuietThread([this] { Run(); });
}

Poller::~Poller() {
  grpc_call_unref(bell_.call);
  grpc_channel_destroy(bell_.channel);
  grpc_completion_queue_shutdown(queue_);
  thread_.join();
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

// False: nothing more will come.
bool Poller::Take(grpc_event e) {
  if (e.type == GRPC_QUEUE_SHUTDOWN) return false;
  if (e.type != GRPC_OP_COMPLETE) return true;
  Get(e.tag);
  static_cast<Event*>(e.tag)->Happen(e.success != 0);
  return true;
}

void Poller::Run() {
  do {
    StepAside();
  } while (Take(Next(gpr_inf_future(GPR_CLOCK_MONOTONIC))));
}

void Poller::StepAside() {
  std::unique_lock lock(mu_);
  if (lent_ && asked_) Ring();  // this thread may have heard the bell that was for the other
  aside_ = true;
  for (uint64_t seen = 0;;) {
    if (!lent_ && (refused_ || std::chrono::steady_clock::now() - left_ >= kRest)) break;
    Expire(&lock, false);
    if (lent_ && seen == lends_ && deferred_.empty()) {
      sleeps_ = true;
      changed_.wait(lock, [this] { return !lent_ || !deferred_.empty(); });
      sleeps_ = false;
      continue;
    }
    seen = lends_;
    changed_.wait_for(lock, kRest);
  }
  aside_ = refused_ = false;
  Expire(&lock, true);
}

// The lock is let go meanwhile.
void Poller::Expire(std::unique_lock<std::mutex>* lock, bool now) {
  if (deferred_.empty()) return;
  auto all = std::exchange(deferred_, {});
  lock->unlock();
  std::erase_if(all, [now](const auto& entry) { return entry.second->Expire(now); });
  lock->lock();
  for (auto& entry : all) deferred_.push_back(std::move(entry));
}

bool Poller::MayDefer() {
  std::lock_guard lock(mu_);
  return aside_ && lent_ && lent_id_ == std::this_thread::get_id();
}

void Poller::Defer(std::shared_ptr<void> keep, Chore* chore) {
  bool wake;
  {
    std::lock_guard lock(mu_);
    deferred_.emplace_back(std::move(keep), chore);
    wake = sleeps_;
  }
  if (wake) changed_.notify_all();
}

bool Poller::Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  const auto until =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(int64_t(std::min<uint64_t>(ns, kLongest)), GPR_TIMESPAN));
  std::unique_lock lock(mu_);
  const auto now = std::chrono::steady_clock::now();
  if (lent_) {
    refused_ = true;
    refused_at_ = now;
  }
  if (refused_ || now - refused_at_ < kBusy) return false;
  lent_ = true;
  lent_id_ = std::this_thread::get_id();
  ++lends_;
  // Also where an event throws: else nobody would take the next one.
  struct Back {
    Poller& p;
    std::unique_lock<std::mutex>& lock;
    ~Back() {
      if (!lock.owns_lock()) lock.lock();
      p.lent_ = p.asked_ = false;
      p.left_ = std::chrono::steady_clock::now();
      const bool wake = p.sleeps_ || p.refused_;
      lock.unlock();
      if (wake) p.changed_.notify_all();
    }
  } back{*this, lock};
  while (!over(arg) && gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), until) < 0) {
    asked_ = false;
    lock.unlock();
    Take(Next(until));
    lock.lock();
  }
  return true;
}

void Poller::Wake() {
  std::lock_guard lock(mu_);
  if (!lent_) return;
  asked_ = true;
  Ring();
}

// REQUIRES: mu_.
void Poller::Ring() {
  if (std::exchange(bell_.rings, true)) return;
  Give(&bell_);
  grpc_call_start_batch(bell_.call, nullptr, 0, &bell_, nullptr);
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
