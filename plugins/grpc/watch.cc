#include "watch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "../common/thread.h"

namespace thalweg::grpc_transport {
namespace {

using std::chrono::steady_clock;
constexpr auto kRest = std::chrono::microseconds(400);
constexpr auto kBusy = std::chrono::milliseconds(10);  // several threads wait at once: the own one wakes them
constexpr uint64_t kLongest = 1'000'000'000;           // most nanoseconds of a loan
constexpr auto kSoon = std::chrono::milliseconds(1);

// Starts a thread that receives no signals.
std::thread QuietThread(std::function<void()> f) {
  const NoSignals quiet;
  return common::StartThread(std::move(f));
}

}  // namespace

NoSignals::NoSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}
NoSignals::~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

// ---- Watch ----

void Watch::Begin() {
  thread_ = QuietThread([this] { Run(); });
}

void Watch::Run() {
  do {
    StepAside();
  } while (Turn(Time::max()));
}

void Watch::StepAside() {
  std::unique_lock lock(mu_);
  if (lent_ && asked_) Ring();  // this thread may have taken an event that was for the other
  aside_ = true;
  for (uint64_t seen = 0;;) {
    if (!lent_ && (refused_ || steady_clock::now() - left_ >= kRest)) break;
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

// Releases the lock meanwhile.
void Watch::Expire(std::unique_lock<std::mutex>* lock, bool now) {
  if (deferred_.empty()) return;
  auto all = std::exchange(deferred_, {});
  lock->unlock();
  std::erase_if(all, [now](const auto& entry) { return entry.second->Expire(now); });
  lock->lock();
  for (auto& entry : all) deferred_.push_back(std::move(entry));
}

bool Watch::MayDefer() {
  std::lock_guard lock(mu_);
  return aside_ && lent_ && lent_id_ == std::this_thread::get_id();
}

void Watch::Defer(std::shared_ptr<void> keep, Chore* chore) {
  bool wake;
  {
    std::lock_guard lock(mu_);
    deferred_.emplace_back(std::move(keep), chore);
    wake = sleeps_;
  }
  if (wake) changed_.notify_all();
}

bool Watch::Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  const auto until = steady_clock::now() + std::chrono::nanoseconds(std::min(ns, kLongest));
  std::unique_lock lock(mu_);
  const auto now = steady_clock::now();
  if (lent_) {
    refused_ = true;
    refused_at_ = now;
  }
  if (refused_ || now - refused_at_ < kBusy) return false;
  lent_ = true;
  lent_id_ = std::this_thread::get_id();
  ++lends_;
  // Also if a handler throws: else no thread would handle the next events.
  struct Back {
    Watch& w;
    std::unique_lock<std::mutex>& lock;
    ~Back() {
      if (!lock.owns_lock()) lock.lock();
      w.lent_ = w.asked_ = false;
      w.left_ = steady_clock::now();
      const bool wake = w.sleeps_ || w.refused_;
      lock.unlock();
      if (wake) w.changed_.notify_all();
    }
  } back{*this, lock};
  while (!over(arg) && steady_clock::now() < until) {
    asked_ = false;
    lock.unlock();
    Turn(until);
    lock.lock();
  }
  return true;
}

void Watch::Wake() {
  std::lock_guard lock(mu_);
  if (!lent_) return;
  asked_ = true;
  Ring();
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

void Chores::AddSoon(std::function<void()> f) {
  std::lock_guard lock(mu_);
  soon_.push_back(std::move(f));
  if (soon_at_ != steady_clock::time_point::max()) return;  // the thread looks soon
  soon_at_ = steady_clock::now() + kSoon;
  changed_.notify_one();
}

void Chores::Every(std::chrono::milliseconds apart, std::function<void()> f) {
  std::lock_guard lock(mu_);
  again_ = std::move(f);
  apart_ = apart;
  next_ = std::chrono::steady_clock::now() + apart;
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
    std::function<void()> f;
    const auto now = steady_clock::now();
    if (now >= soon_at_ || (stop_ && !soon_.empty())) {
      // While work keeps coming, it looks every millisecond, so that nobody has to wake it.
      soon_at_ = soon_.empty() ? steady_clock::time_point::max() : now + kSoon;
      for (auto& one : soon_) todo_.push_back(std::move(one));
      soon_.clear();
    }
    if (!todo_.empty()) {
      f = std::move(todo_.front());
      todo_.pop_front();
    } else if (stop_) {
      return;
    } else if (now >= next_) {
      next_ = now + apart_;
      f = again_;
    } else {
      const auto until = std::min(next_, soon_at_);
      if (until == steady_clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, until);
      }
      continue;
    }
    lock.unlock();
    try {
      f();
    } catch (const std::exception&) {  // lost work would be waited for elsewhere
    }
    f = nullptr;
    lock.lock();
  }
}

}  // namespace thalweg::grpc_transport
