#include "framework/runtime/state/touched_resources.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/state/waiting_calls.h"

namespace thalweg {

TouchedResources& TouchedResources::Get() {
  static TouchedResources* all = new TouchedResources;  // never destroyed: its thread may still use it while the process ends
  return *all;
}

void TouchedResources::Begin() {
  std::lock_guard lock(mu_);
  if (process_ != getpid()) {  // a forked child has neither the thread nor the calls
    if (process_) first_ = nullptr, calls_ = 0;
    StartThread([this] {
      LeaveSignalsToTheProgram();
      Work();
    }).detach();
    process_ = getpid();
  }
  ++calls_;
}

void TouchedResources::End() {
  std::lock_guard lock(mu_);
  if (--calls_ == 0) changed_.notify_one();
}

void TouchedResources::Add(Resource* at) {
  std::lock_guard lock(mu_);
  if (process_ != getpid() || at->listed_as_touched) return;
  at->Retain();
  at->listed_as_touched = true;
  at->next_touched = std::exchange(first_, at);
  changed_.notify_one();
}

void TouchedResources::Work() {
  std::unique_lock lock(mu_);
  while (first_ || calls_ > 0) {
    if (!first_) {
      changed_.wait(lock);
      continue;
    }
    Resource* at = std::exchange(first_, first_->next_touched);
    at->listed_as_touched = false;
    lock.unlock();
    WaitingCalls::Get().Updated(at);
    at->Release();
    lock.lock();
  }
  process_ = 0;
}

}  // namespace thalweg
