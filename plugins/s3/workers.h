// Workers: the threads of the plugin, which upload parts and read ahead; and Slots, which bound what
// is under way. Threads: any.
#ifndef THALWEG_PLUGINS_S3_WORKERS_H_
#define THALWEG_PLUGINS_S3_WORKERS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg::s3 {

class Workers {
 public:
  // most: threads, which start when they are first needed.
  explicit Workers(uint32_t most) : most_(most) {}
  // Runs what is queued, then joins. REQUIRES: this process is not a child that was forked since.
  ~Workers();
  Workers(const Workers&) = delete;
  // Queues a task, which must not throw. Returns false if no thread can be started; the task is then
  // not run.
  bool Offer(std::function<void()> task);
  // Calls body(0) to body(n - 1) on the threads and on this one, and returns when all are done.
  // Rethrows the first exception; the calls that have not begun by then are left out.
  void ForAll(uint64_t n, const std::function<void(uint64_t)>& body);

 private:
  void Run();

  const uint32_t most_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mu_
  std::vector<std::thread> threads_;         // guarded by mu_
  uint32_t idle_ = 0;                        // guarded by mu_
  bool ends_ = false;                        // guarded by mu_
};

// So many things at most are under way.
class Slots {
 public:
  explicit Slots(uint32_t n) : free_(n) {}
  void Take() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
  }
  void Give() {
    std::lock_guard lock(mu_);
    ++free_;
    changed_.notify_one();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  uint32_t free_;  // guarded by mu_
};

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_WORKERS_H_
