#include "worker.h"

#include <algorithm>
#include <utility>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::fake {

void Gate::Join(std::shared_ptr<Worker> worker) {
  std::lock_guard lock(mutex_);
  workers_.push_back(std::move(worker));
}

void Gate::Open(std::string failure, uint32_t code) {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    code_ = code;
    open_.store(true, std::memory_order_release);
    workers = workers_;
  }
  for (const auto& w : workers) w->Wake();
}

void Gate::Pass() const {
  if (code_) throw tw::Error{code_, failure_};
}

void Worker::Start() {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
}

void Worker::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::Add(Queue* queue) {
  std::lock_guard lock(mutex_);
  queues_.push_back(queue);
}

void Worker::Remove(Queue* queue) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue->items.empty() && !queue->running; });
  queues_.erase(std::find(queues_.begin(), queues_.end(), queue));
}

void Worker::Put(Queue* queue, Queue::Item item) {
  std::lock_guard lock(mutex_);
  queue->items.push_back(std::move(item));
  changed_.notify_all();
}

void Worker::Wake() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Worker::Work() {
  std::vector<Queue*> ready;
  std::unique_lock lock(mutex_);
  for (;;) {
    ready.clear();
    std::copy_if(queues_.begin(), queues_.end(), std::back_inserter(ready), [](Queue* q) { return q->ready(); });
    if (ready.empty()) {
      if (stopping_) return;
      changed_.wait(lock);
      continue;
    }
    Queue* queue = ready[random_() % ready.size()];
    Queue::Item item = std::move(queue->items.front());
    queue->items.pop_front();
    queue->running = true;
    lock.unlock();
    item.run();
    item = {};
    lock.lock();
    queue->running = false;
    if (queue->items.empty()) changed_.notify_all();
  }
}

}  // namespace thalweg::fake
