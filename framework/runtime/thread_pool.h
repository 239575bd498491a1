// ThreadPool: the one pool of a runtime, for ready nodes and for loops inside kernels. The thread
// that offers work also works on it; the pool adds helpers, which are its own threads or the
// program's. Its own workers spin for a short while after work, then sleep; the program's threads
// return. A forked child has no workers: callers do all the work. Threads: any.
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

// A step's share of a pool: the number of threads at once, its caller included, and its priority.
// Threads: any.
class ThreadShare {
 public:
  ThreadShare(uint32_t threads, int32_t priority) : threads_(threads), priority_(priority), free_(int64_t(threads) - 1) {}
  uint32_t threads() const { return threads_; }
  int32_t priority() const { return priority_; }
  // Adds one thread beside the caller. Returns false if the share is used up.
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
  // Work that several threads may join. Help runs what it finds and returns when there is nothing
  // left to take or work of a higher priority is offered; it returns true if it did anything. It
  // must not block. An offered Joint may have no work for a while: awake workers ask again. share:
  // NULL means any number of threads and priority 0.
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

  // threads: how many work at once, the caller included; if 1, no thread is made and everything
  // runs on the caller. program: threads of the program to use instead of own ones, at most that
  // many (0: all that it offers).
  explicit ThreadPool(uint32_t threads, const tw_thread_pool* program = nullptr);
  ~ThreadPool();
  // Makes the destructor call the program's `release`. Until this is called, the constructor's
  // caller handles a failure.
  void ReleaseAtEnd();
  ThreadPool(const ThreadPool&) = delete;

  uint32_t threads() const { return threads_; }
  // Returns true if a worker is awake and looking for work.
  bool hungry() const { return spinning_.load(std::memory_order_relaxed) > 0; }
  // Returns true if work of a higher priority is offered.
  bool outranks(int32_t priority) const { return top_.load(std::memory_order_relaxed) > priority; }

  // Lets workers join. hands: how many workers are worth waking (about 50 us each); awake workers
  // join anyway. To offer a Joint again means that it has more work.
  void Offer(Joint* j, uint64_t hands);
  // Ends joining; spins until the last helper has left. The caller must have finished its own part.
  void Withdraw(Joint* j);

  // Runs part(arg, begin, end) over [0, n) in pieces of `grain` elements and returns when all are
  // done. The caller works too. Pieces are taken in order.
  void Parallel(uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg, ThreadShare* share = nullptr);
  // Runs f on a thread for work that blocks (files, enqueues that wait); such threads are reused.
  void Blocking(std::function<void()> f);
  // Gives up a thread of Blocking whose work may never return: until the thread has returned from
  // the work that it does now, the destructor does not wait for it, nor waits on if it has begun to.
  // The rest of that work must touch neither the pool nor what its owner destroys. Other threads are
  // left alone.
  void GiveUp(std::thread::id thread);

  // Work that does not block, but may be continued later if there is nothing to do now. At most
  // `threads` tasks run at once, on the threads of Blocking, in FIFO order.
  struct Task {
    virtual void Go() = 0;  // may delete the task or start it again
   protected:
    virtual ~Task() = default;

   private:
    friend class ThreadPool;
    Task* next_ = nullptr;
  };
  // Returns true if there is a thread for tasks; false means there will be none.
  bool HasThreadForTasks();
  // Enqueues a task. Needs no memory and runs nothing on this thread. REQUIRES: HasThreadForTasks
  // returned true.
  void Start(Task* t);
  // While an object exists, tasks started by this thread wait for its end and then run on this
  // thread. Meant for tasks so short that waking another thread does not pay. A nested object has
  // no effect.
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
  // While an object exists, the task of this thread may block; other tasks run in its place.
  // Outside a task it has no effect.
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

  bool InChild() const;  // the process was forked since, so it has none of the pool's threads

  const uint32_t threads_;
  const uint32_t forks_;  // number of forks when the pool was made
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mu_;             // guards the list, the sleepers and stop_
  Worker* asleep_ = nullptr;  // stack of sleeping workers
  Joint* head_ = nullptr;     // sorted by priority, then newest first: inner loops before outer work
  Joint* tail_ = nullptr;
  std::atomic<int32_t> listed_{0};
  std::atomic<int32_t> top_;  // priority of head_; kNothingOffered if the list is empty
  std::atomic<int32_t> spinning_{0};
  uint64_t offers_ = 0;   // number of offers; a worker does not go to sleep if it has missed one
  int32_t sleeping_ = 0;  // sleeping workers; of the program's threads, those not asked for
  bool stop_ = false;
  Door* door_ = nullptr;                       // entry for the program's threads; NULL: the pool has its own
  std::shared_ptr<BlockingThreads> blocking_;  // shared with its threads
};

}  // namespace thalweg
