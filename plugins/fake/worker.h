// The thread of a device. It takes the next item of any queue; callers must not rely on the order
// between queues. Threads: any.
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

// A condition that is reached once, by a queue or by a timeline. A worker must join it before it
// waits for it.
class Gate {
 public:
  void Join(std::shared_ptr<Worker> worker);
  void Open(std::string failure = {}, uint32_t code = 0);
  bool open() const { return open_.load(std::memory_order_acquire); }
  void Pass() const;  // throws the failure, if any. REQUIRES: open

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::atomic<bool> open_{false};
  uint32_t code_ = 0;
  std::string failure_;
};

// Items in order. The worker's lock guards the queue.
struct Queue {
  struct Item {
    std::function<void()> run;
    std::shared_ptr<Gate> gate;  // the item waits for this gate; NULL: it does not wait
  };
  std::deque<Item> items;
  bool running = false;
  bool ready() const { return !running && !items.empty() && (!items.front().gate || items.front().gate->open()); }
};

class Worker {
 public:
  void Start();  // starts the thread, unless it runs
  void Stop();   // after all queues were removed
  void Add(Queue* queue);
  void Remove(Queue* queue);  // returns after all its items have run
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
