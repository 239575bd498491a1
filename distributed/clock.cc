#include "distributed/clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"

namespace thalweg::distributed {

SystemClock::SystemClock() : thread_(StartThread([this] { Work(); })) {}

SystemClock::~SystemClock() { Stop(); }

void SystemClock::Stop() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  decltype(todo_) dropped;  // destroyed outside the lock, while the objects it refers to still exist
  std::lock_guard lock(mu_);
  dropped.swap(todo_);
  times_.clear();
}

int64_t SystemClock::Now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t SystemClock::At(int64_t ns, std::function<void()> f) {
  std::lock_guard lock(mu_);
  const uint64_t name = ++names_;
  if (stop_) return name;
  todo_.emplace(std::pair(ns, name), std::move(f));
  times_.emplace(name, ns);
  // Every call sets a deadline and forgets it. A deadline later than the thread's next wake-up does
  // not wake the thread.
  if (ns < sleeps_until_) changed_.notify_all();
  return name;
}

void SystemClock::Forget(uint64_t name) {
  std::function<void()> dropped;  // destroyed outside the lock
  std::lock_guard lock(mu_);
  auto it = times_.find(name);
  if (it == times_.end()) return;
  auto entry = todo_.find({it->second, name});
  dropped = std::move(entry->second);
  todo_.erase(entry);
  times_.erase(it);
}

void SystemClock::Work() {
  LeaveSignalsToTheProgram();
  std::unique_lock lock(mu_);
  while (!stop_) {
    if (todo_.empty()) {
      sleeps_until_ = INT64_MAX;
      changed_.wait(lock);
      sleeps_until_ = 0;
      continue;
    }
    const auto first = todo_.begin();
    const int64_t wait = first->first.first - Now();
    if (wait > 0) {
      sleeps_until_ = first->first.first;
      // wait_for adds the wait to the current time, so a time near the largest value would
      // overflow.
      constexpr int64_t kLongest = 3'600'000'000'000;
      changed_.wait_for(lock, std::chrono::nanoseconds(std::min(wait, kLongest)));
      sleeps_until_ = 0;
      continue;
    }
    std::function<void()> f = std::move(first->second);
    times_.erase(first->first.second);
    todo_.erase(first);
    lock.unlock();
    f();
    f = nullptr;
    lock.lock();
  }
}

}  // namespace thalweg::distributed
