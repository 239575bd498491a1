#include "connections.h"

#include <system_error>

#include <sys/socket.h>

namespace thalweg::cli::serve {
namespace {
// Accepted connections without a thread. Beyond that they stay in the kernel's queue, where they take no file descriptor.
constexpr size_t kMostWaiting = 64;
}  // namespace

void Connections::Start(std::function<void()> serve) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting || stopping_; });
  waiting_.push_back(std::move(serve));
  try {
    // After Stop, threads end when nothing waits for them. Another one then closes this connection.
    const bool may_add = threads_.size() < most_ || stopping_;
    if (waiting_.size() > free_threads_ && !(may_add && AddThread())) CloseLongestIdle();
  } catch (...) {
    waiting_.pop_back();
    throw;
  }
  changed_.notify_all();
}

// REQUIRES: the lock is held. Returns false if the system gives no more threads; those that there are go on. Throws if there is none.
bool Connections::AddThread() {
  try {
    threads_.emplace_back([this] { Work(); });
    return true;
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
    return false;
  }
}

void Connections::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ++free_threads_;
    changed_.wait(lock, [&] { return !waiting_.empty() || stopping_; });
    --free_threads_;
    if (waiting_.empty()) return;
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    changed_.notify_all();
    lock.unlock();
    serve();
    lock.lock();
  }
}

// REQUIRES: the lock is held. The connection leaves the list when its thread notices.
void Connections::CloseLongestIdle() {
  if (idle_.empty()) return;
  shutdown(idle_.begin()->second, SHUT_RDWR);
  idle_.erase(idle_.begin());
}

Connections::Open::Open(Connections* all, int socket) : all_(all), socket_(socket) {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  all_->open_.insert(socket_);
}

Connections::Open::~Open() {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  all_->open_.erase(socket_);
  if (order_) all_->idle_.erase(order_);
  all_->changed_.notify_all();
}

void Connections::Open::Idle(bool idle) {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  if (order_) all_->idle_.erase(order_);
  order_ = idle ? all_->next_order_++ : 0;
  if (!idle) return;
  all_->idle_.emplace(order_, socket_);
  if (all_->stopping_) shutdown(socket_, SHUT_RDWR);
  if (all_->waiting_.size() > all_->free_threads_ && all_->threads_.size() >= all_->most_) all_->CloseLongestIdle();
}

bool Connections::stopping() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

void Connections::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopping_ = true;
  while (!idle_.empty()) CloseLongestIdle();
  changed_.notify_all();
}

bool Connections::WaitUntilEmpty(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return open_.empty() && waiting_.empty(); });
}

void Connections::Break() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int socket : open_) shutdown(socket, SHUT_RDWR);
}

void Connections::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace thalweg::cli::serve
