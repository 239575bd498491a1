// ThreadPool: the one pool of a runtime, for nodes that are ready and for loops inside kernels. Whoever has work also works on it: the
// pool only adds hands, its own threads or the program's. Workers spin for a short while after work, then sleep (the program's return).
// In a child of fork there are no workers: callers do it all. Threads: any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "thalweg/thread_pool.h"

namespace thalweg {

// What one step may have of a pool: how many threads at once, its caller included, and how early it is served. Threads: any.
class ThreadShare {
 public:
  ThreadShare(uint32_t threads, int32_t priority) : threads_(threads), priority_(priority), free_(int64_t(threads) - 1) {}
  uint32_t threads() const { return threads_; }
  int32_t priority() const { return priority_; }
  // One more thread beside the caller; false: all are at work.
  bool Join() {
    int64_t free = free_.load(std::memory_order_relaxed);
    while (free > 0 && !free_.compare_exchange_weak(free, free - 1, std::memory_order_relaxed)) {
    }
    return free > 0;
  }
  void Leave() { free_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const uint32_t threads_;
  const int32_t priority_;
  std::atomic<int64_t> free_;
};

class ThreadPool {
 public:
  // Work that several threads may join. Help runs what it can find and returns when there is nothing left to take or something of a
  // higher priority is offered, true if it did anything; it must not block. An offered Joint may have nothing to give for a while: workers
  // ask again as long as they are awake. share: NULL: any number of threads, priority 0.
  class Joint {
   public:
    explicit Joint(ThreadShare* share) : share_(share), priority_(share ? share->priority() : 0) {}
    virtual bool Help() = 0;

   protected:
    virtual ~Joint() = default;
    int32_t priority() const { return priority_; }

   private:
    friend class ThreadPool;
    ThreadShare* const share_;
    const int32_t priority_;
    std::atomic<int32_t> helpers_{0};
    Joint* next_ = nullptr;
    Joint* prev_ = nullptr;
    bool listed_ = false;
  };

  // threads: how many work at once, the caller included; 1: no thread is made and everything runs on the caller.
  // program: threads of the program's instead of the pool's own, at most so many (0: all that it offers).
  explicit ThreadPool(uint32_t threads, const tw_thread_pool* program = nullptr);
  ~ThreadPool();
  // The program's `release` is called at the end. Until then it is the maker's who hears of a failure.
  void ReleaseAtEnd();
  ThreadPool(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }
  // Some worker is awake and looking for work right now.
  bool hungry() const { return spinning_.load(std::memory_order_relaxed) > 0; }
  // Work of a higher priority is offered.
  bool outranks(int32_t priority) const { return top_.load(std::memory_order_relaxed) > priority; }

  // Lets workers join. hands: how many it is worth waking (about 50 us each); those that are awake come anyway. To offer what is offered
  // already says that it has more to give.
  void Offer(Joint* j, uint64_t hands);
  // No more joiners; returns when the last helper has left, spinning. The caller must have finished its own part.
  void Withdraw(Joint* j);

  // part(arg, begin, end) over [0, n) in pieces of `grain`; returns when all are done. The caller works too. Pieces are taken in order.
  void Parallel(uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg, ThreadShare* share = nullptr);
  // Runs f on a thread made for work that blocks (files, enqueues that wait); threads are reused.
  void Blocking(std::function<void()> f);

  // Work that does not block, but may go on at another time where there is nothing to do for now. As many as `threads` run at once, on the
  // threads of Blocking, first come first served.
  struct Task {
    virtual void Go() = 0;  // may delete the task, or start it again
   protected:
    virtual ~Task() = default;

   private:
    friend class ThreadPool;
    Task* next_ = nullptr;
  };
  // A thread for tasks is there; false: there will be none.
  bool HasThreadForTasks();
  // Takes no memory, and runs nothing on this thread. REQUIRES: HasThreadForTasks was true.
  void Start(Task* t);
  // While there is one, tasks that this thread starts wait for its end, and then run on this thread: for those that are over so soon that
  // it is not worth waking another. Inside another one it means nothing.
  class TasksHere {
   public:
    TasksHere();
    ~TasksHere();
    TasksHere(const TasksHere&) = delete;

   private:
    friend class ThreadPool;
    static thread_local TasksHere* current;
    Task* first_ = nullptr;
    Task** last_ = &first_;
  };
  // While there is one, a task of this thread may block: others go on in its place. Elsewhere it means nothing.
  class MayBlock {
   public:
    MayBlock();
    ~MayBlock();
    MayBlock(const MayBlock&) = delete;
  };

 private:
  struct BlockingThreads;
  struct Door;
  struct Worker;
  void Work(Worker* self);
  void Visit();
  bool Look(std::unique_lock<std::mutex>* lock, uint32_t* turn);
  bool HelpSomebody(uint32_t* turn);
  Joint* Take(Joint* last, uint32_t* turn);
  Joint* First(uint32_t* turn);
  static void Leave(Joint* j);
  void Add(Joint* j, uint64_t wake);
  void Insert(Joint* j);

  bool InChild() const;  // of a fork: the pool's threads are not here

  const uint32_t threads_;
  const uint32_t forks_;  // that the process had behind it when the pool was made
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mu_;             // list, sleepers, stop
  Worker* asleep_ = nullptr;  // the last to fall asleep first
  Joint* head_ = nullptr;     // by priority, then newest first: inner loops before outer work
  Joint* tail_ = nullptr;
  std::atomic<int32_t> listed_{0};
  std::atomic<int32_t> top_;  // priority of head_; below all others: nothing is offered
  std::atomic<int32_t> spinning_{0};
  uint64_t offers_ = 0;   // how many there were: nobody goes to sleep on one that it has not seen
  int32_t sleeping_ = 0;  // workers; of the program's threads, those that are not asked for
  bool stop_ = false;
  Door* door_ = nullptr;                       // for the program's threads; NULL: the pool has its own
  std::shared_ptr<BlockingThreads> blocking_;  // held by its threads too
};

}  // namespace thalweg
