// ThreadPool: the one pool of a runtime, for nodes that are ready and for loops inside kernels. Whoever has work also works on it: the
// pool only adds hands. Workers spin for a short while after work, then sleep. In a child of fork there are no workers: callers do it all.
// Threads: any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg {

class ThreadPool {
 public:
  // Work that several threads may join. Help runs what it can find and returns when there is nothing left to take, true if it did
  // anything; it must not block. An offered Joint may have nothing to give for a while: workers ask again as long as they are awake.
  class Joint {
   public:
    virtual bool Help() = 0;

   protected:
    virtual ~Joint() = default;

   private:
    friend class ThreadPool;
    std::atomic<int32_t> helpers_{0};
    Joint* next_ = nullptr;
    Joint* prev_ = nullptr;
    bool listed_ = false;
  };

  // threads: how many work at once, the caller included; 1: no thread is made and everything runs on the caller.
  explicit ThreadPool(uint32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }
  // Some worker is awake and looking for work right now.
  bool hungry() const { return spinning_.load(std::memory_order_relaxed) > 0; }

  // Lets workers join. big: worth waking a sleeping one (about 50 us); otherwise only those that are awake come. To offer what is offered
  // already says that it has more to give.
  void Offer(Joint* j, bool big);
  // No more joiners; returns when the last helper has left, spinning. The caller must have finished its own part.
  void Withdraw(Joint* j);

  // part(arg, begin, end) over [0, n) in pieces of `grain`; returns when all are done. The caller works too. Pieces are taken in order.
  void Parallel(uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg);
  // Runs f on a thread made for work that blocks (files, enqueues that wait); threads are reused.
  void Blocking(std::function<void()> f);

 private:
  struct BlockingThreads;
  void Work();
  bool HelpSomebody();
  Joint* Take(Joint* last);
  void Add(Joint* j, uint64_t wake);

  bool InChild() const;  // of a fork: the pool's threads are not here

  const uint32_t threads_;
  const uint32_t forks_;  // that the process had behind it when the pool was made
  std::vector<std::thread> workers_;
  std::mutex mu_;  // list, sleepers, stop
  std::condition_variable wake_;
  Joint* head_ = nullptr;  // newest first: inner loops before outer work
  std::atomic<int32_t> listed_{0};
  std::atomic<int32_t> spinning_{0};
  uint64_t offers_ = 0;  // how many there were: nobody goes to sleep on one that it has not seen
  int32_t sleeping_ = 0;
  bool stop_ = false;
  std::shared_ptr<BlockingThreads> blocking_;  // held by its threads too
};

}  // namespace thalweg
