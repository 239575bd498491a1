#include "ring_poller.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <system_error>
#include <utility>

namespace thalweg::grpc_transport {

using std::chrono::steady_clock;

std::shared_ptr<RingPoller> RingPoller::Make(int spin_us) {
  auto bell = Doorbell::Make();
  if (!bell) return nullptr;
  std::shared_ptr<RingPoller> poller(new RingPoller(spin_us, std::move(bell)));
  try {
    poller->Begin();
  } catch (const std::system_error&) {  // no thread can be started: messages use streams
    return nullptr;
  }
  return poller;
}

RingPoller::~RingPoller() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    Ring();
  }
  Join();
}

uint32_t RingPoller::Add(std::weak_ptr<void> keep, Listener* listener) {
  std::lock_guard lock(listeners_mu_);
  auto at = std::find_if(listeners_.begin(), listeners_.end(), [](const Entry& e) { return !e.listener; });
  if (at == listeners_.end()) {
    if (listeners_.size() == kRingers) return kRingers;
    at = listeners_.insert(at, Entry());
  }
  *at = {std::move(keep), listener};
  listeners_n_.fetch_add(1);
  words_.store(uint32_t(listeners_.size() + 63) / 64);
  return uint32_t(at - listeners_.begin());
}

void RingPoller::Remove(uint32_t who) {
  std::lock_guard lock(listeners_mu_);
  listeners_[who] = {};
  listeners_n_.fetch_sub(1);
}

// Calls the listeners whose peers have rung. Returns false if none has.
bool RingPoller::Look() {
  bool any = false;
  const uint32_t words = words_.load();
  for (uint32_t word = 0; word < words; ++word) {
    for (uint64_t left = bell_->Take(word); left != 0; left &= left - 1) {
      const uint32_t who = word * 64 + uint32_t(std::countr_zero(left));
      std::shared_ptr<void> keep;
      Listener* listener = nullptr;
      {
        std::lock_guard lock(listeners_mu_);
        if (who < listeners_.size()) {
          listener = listeners_[who].listener;
          keep = listeners_[who].keep.lock();
        }
      }
      any = true;
      try {
        if (keep && listener && listener->Hear()) Tell(who);
      } catch (const std::exception&) {  // its own loss: the other listeners of this word are called all the same
      }
    }
  }
  return any;
}

bool RingPoller::Turn(Time until) {
  if (Look()) return true;
  if (spin_us_ > 0) {
    const auto spun = std::min(until, steady_clock::now() + std::chrono::microseconds(spin_us_));
    do {
      if (Look()) return true;
    } while (steady_clock::now() < spun);
  }
  {
    std::lock_guard lock(mu_);
    if (stop_) return false;
    if (std::exchange(rung_, false)) return true;
    ++waiters_;
    bell_->Settle();
  }
  // A malicious peer may overwrite the doorbell, so every sleep has a limit.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);
  const auto left = until == Time::max() ? kLongest : std::min<std::chrono::nanoseconds>(kLongest, until - steady_clock::now());
  if (left.count() > 0 && !bell_->rung(words_.load())) bell_->Sleep(left);
  {
    std::lock_guard lock(mu_);
    rung_ = false;  // threads that slept when it was set are awake now
    if (--waiters_ == 0) bell_->Stay();
    if (stop_) return false;
  }
  Look();
  return true;
}

void RingPoller::Ring() {
  rung_ = true;
  if (waiters_ > 0) bell_->Wake();
}

}  // namespace thalweg::grpc_transport
