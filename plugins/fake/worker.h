// The thread of a device: takes what is next in one queue or another, in an order that nobody may rely on.
// Threads: any.
#ifndef THALWEG_PLUGINS_FAKE_WORKER_H_
#define THALWEG_PLUGINS_FAKE_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace thalweg::fake {

class Worker;

// Something that is reached once: by a queue, by a timeline. Whoever waits for it has joined it before.
class Gate {
 public:
  void Join(std::shared_ptr<Worker> worker);
  void Open(std::string failure = {}, uint32_t code = 0);
  bool open() const { return open_.load(std::memory_order_acquire); }
  void Pass() const;  // throws the failure. REQUIRES: open

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::atomic<bool> open_{false};
  uint32_t code_ = 0;
  std::string failure_;
};

// Items in order. Guarded by the worker's lock.
struct Queue {
  struct Item {
    std::function<void()> run;
    std::shared_ptr<Gate> gate;  // it waits for this; NULL: for nothing
  };
  std::deque<Item> items;
  bool running = false;
  bool ready() const { return !running && !items.empty() && (!items.front().gate || items.front().gate->open()); }
};

class Worker {
 public:
  void Start();  // the thread, if it is not there
  void Stop();   // when all queues are gone
  void Add(Queue* queue);
  void Remove(Queue* queue);  // when all of it has run
  void Put(Queue* queue, Queue::Item item);
  void Wake();

 private:
  void Work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Queue*> queues_;
  bool stopping_ = false;
  std::mt19937 random_;
  std::thread thread_;
};

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_WORKER_H_
