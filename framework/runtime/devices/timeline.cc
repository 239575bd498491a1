#include "framework/runtime/devices/timeline.h"

#include <algorithm>

using thalweg::FromC;
using thalweg::Status;
using thalweg::ToC;

tw_timeline::~tw_timeline() {
  // Nobody is left who could signal, so callbacks that still wait are called with an error.
  if (!waiters_.empty()) {
    tw_status* gone = ToC(thalweg::Error(absl::StatusCode::kUnavailable, "the timeline ended before the value that was waited for"));
    for (const Waiter& w : waiters_) w.done(w.arg, why_ ? why_ : gone);
    (void)FromC(gone);
  }
  (void)FromC(why_);
}

void tw_timeline::Release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void tw_timeline::Signal(uint64_t value) {
  std::vector<Waiter> ready;
  const tw_status* why;
  {
    std::lock_guard lock(mu_);
    if (value <= value_.load(std::memory_order_relaxed)) return;  // the value only grows; a late signal has no effect
    value_.store(value, std::memory_order_release);
    auto later = std::stable_partition(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.value > value; });
    ready.assign(later, waiters_.end());
    waiters_.erase(later, waiters_.end());
    why = why_;  // never changes once set, so it may be read outside the lock
    Retain();    // a callback may release the timeline
    reached_.notify_all();
  }
  std::stable_sort(ready.begin(), ready.end(), [](const Waiter& a, const Waiter& b) { return a.value < b.value; });
  for (const Waiter& w : ready) w.done(w.arg, why);
  Release();
}

void tw_timeline::Fail(Status why) {
  if (why.ok()) why = thalweg::Internal("a timeline failed without saying why");
  tw_status* c = ToC(std::move(why));
  {
    std::lock_guard lock(mu_);
    if (!why_) {
      std::swap(why_, c);
      failed_at_.store(Tick(), std::memory_order_release);
    }
  }
  (void)FromC(c);
}

uint64_t tw_timeline::Tick() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void tw_timeline::When(uint64_t value, Done done, void* arg) {
  const tw_status* why;
  {
    std::lock_guard lock(mu_);
    if (value > value_.load(std::memory_order_relaxed)) {
      waiters_.push_back({value, done, arg});
      return;
    }
    why = why_;
  }
  done(arg, why);
}

Status tw_timeline::Wait(uint64_t value) {
  std::unique_lock lock(mu_);
  reached_.wait(lock, [&] { return value_.load(std::memory_order_relaxed) >= value; });
  return why_ ? why_->status : Status();
}

Status tw_timeline::failure() const {
  std::lock_guard lock(mu_);
  return why_ ? why_->status : Status();
}
