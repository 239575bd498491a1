#include "framework/runtime/later_calls.h"

#include <unistd.h>

#include <chrono>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {

LaterCalls& LaterCalls::Get() {
  static LaterCalls* calls = new LaterCalls;  // never destroyed: its thread may still use it while the process ends
  return *calls;
}

// A forked child has neither the thread nor the steps.
void LaterCalls::DropParents() {
  if (process_ == getpid()) return;
  process_ = getpid();
  calls_.clear();
  running_.clear();
  by_time_.clear();
  by_token_.clear();
  keeper_ = false;
}

uint64_t LaterCalls::Add(Call call) {
  DropParents();
  if (call.time && !keeper_) {
    StartThread([this] {
      LeaveSignalsToTheProgram();
      KeepTimes();
    }).detach();
    keeper_ = true;
  }
  const uint64_t id = ++last_;
  const Call& c = calls_.emplace(id, std::move(call)).first->second;
  try {
    if (c.time) by_time_.emplace(c.time, id);
    if (c.token) by_token_.emplace(c.token, id);
  } catch (...) {
    by_time_.erase({c.time, id});
    calls_.erase(id);
    throw;
  }
  if (c.token) c.token->Watch(1);
  if (c.time && by_time_.begin()->second == id) alarm_.notify_one();
  return id;
}

LaterCalls::Call LaterCalls::Take(uint64_t id) {
  auto node = calls_.extract(id);
  Call c = std::move(node.mapped());
  if (c.time) by_time_.erase({c.time, id});
  if (c.token && by_token_.erase({c.token, id})) c.token->Watch(-1);
  if (by_time_.empty() && keeper_) alarm_.notify_one();
  return c;
}

void LaterCalls::Run(uint64_t id, std::unique_lock<std::mutex>* lock) {
  running_.emplace(id, std::this_thread::get_id());
  {
    const Call c = Take(id);
    lock->unlock();
    c.function(c.arg);
  }
  lock->lock();
  running_.erase(id);
  ended_.notify_all();
}

uint64_t LaterCalls::At(int64_t time, Function f, void* arg, std::shared_ptr<const void> pin) {
  std::lock_guard lock(mu_);
  return Add({f, arg, std::move(pin), time > 0 ? time : 1, nullptr});
}

void LaterCalls::WhenInterrupted(const StepBase& step, Function f, void* arg, std::shared_ptr<const void> pin, uint64_t* id) {
  std::unique_lock lock(mu_);
  const uint64_t own = Add({f, arg, std::move(pin), step.deadline, step.cancel});
  *id = own;
  // The token tells later cancellations, because it was watched before it is read here.
  const bool interrupted = !StepInterrupted(step).ok();
  if (interrupted && calls_.count(own)) Run(own, &lock);
}

bool LaterCalls::Forget(uint64_t id) {
  Call forgotten;
  std::unique_lock lock(mu_);
  DropParents();
  if (calls_.count(id)) {
    forgotten = Take(id);
    lock.unlock();  // the plugin may go with its last pin
    return true;
  }
  ended_.wait(lock, [&] {
    const auto it = running_.find(id);
    return it == running_.end() || it->second == std::this_thread::get_id();
  });
  return false;
}

void LaterCalls::Cancelled(const CancelToken* token) {
  std::unique_lock lock(mu_);
  DropParents();
  for (;;) {
    const auto next = by_token_.lower_bound({token, 0});
    if (next == by_token_.end() || next->first != token) return;
    Run(next->second, &lock);
  }
}

void LaterCalls::KeepTimes() {
  std::unique_lock lock(mu_);
  while (!by_time_.empty()) {
    const auto [time, id] = *by_time_.begin();
    if (MonotonicNs() > time) {
      Run(id, &lock);
      continue;
    }
    alarm_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time + 1)));
  }
  keeper_ = false;
}

}  // namespace thalweg
