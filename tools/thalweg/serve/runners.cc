#include "runners.h"

#include <system_error>
#include <utility>

namespace thalweg::cli::serve {

Runners::~Runners() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Runners::Start(std::function<void()> run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(run));
  if (waiting_.size() > free_threads_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (...) {
      if (threads_.empty()) {
        waiting_.pop_back();
        throw;
      }
    }
  }
  changed_.notify_one();
}

void Runners::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ++free_threads_;
    changed_.wait(lock, [&] { return !waiting_.empty() || stopping_; });
    --free_threads_;
    if (waiting_.empty()) return;
    std::function<void()> run = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    run();
    run = nullptr;  // without the lock: the last reference to a model may take long
    lock.lock();
  }
}

}  // namespace thalweg::cli::serve
