#include "endings.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tools/thalweg/command.h"

namespace thalweg::cli::serve {
namespace {

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

Endings::Endings(End end) : end_(std::move(end)) {
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { Watch(); });
}

Endings::~Endings() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
    if (!came_) pthread_kill(thread_.native_handle(), SIGTERM);  // wakes the thread, which blocks the signal and takes it by sigwait
  }
  thread_.join();
}

void Endings::Watch() {
  const sigset_t signals = EndSignals();
  int signal = 0;
  sigwait(&signals, &signal);
  std::unique_lock<std::mutex> lock(mutex_);
  if (over_) return;
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // in this thread, so a second signal ends the process
  if (!started_) {
    end_(signal == SIGTERM ? "SIGTERM" : "SIGINT");
    Leave();
  }
  came_ = true;
  changed_.notify_all();
  // Lives on, so that a second signal finds a thread that does not block it.
  changed_.wait(lock, [this] { return over_; });
}

Endings::Scope::Scope(Endings* all, End end) : all_(all), outer_(std::move(end)) {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  std::swap(all_->end_, outer_);
}

Endings::Scope::~Scope() {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  std::swap(all_->end_, outer_);
}

void Endings::Started() {
  const std::lock_guard<std::mutex> lock(mutex_);
  started_ = true;
}

void Endings::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return came_; });
}

void Endings::Leave() {
  std::fflush(stdout);
  std::_Exit(kGood);
}

}  // namespace thalweg::cli::serve
