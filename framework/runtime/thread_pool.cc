#include "framework/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

#include <sys/prctl.h>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "framework/runtime/pause.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

// Number of forks between the first process that used a pool and this one. A child must not use its
// parent's condition variables: they remember waiters that do not exist there.
std::atomic<uint32_t> forks{0};
uint32_t CountForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;  // fails only for lack of memory; children then behave as without this
  return forks.load(std::memory_order_relaxed);
}

// How long an idle thread for blocking calls is kept.
constexpr auto kIdle = std::chrono::seconds(1);

// How long a worker looks for more work before it sleeps. Waking costs about as much, so longer
// spinning cannot pay.
constexpr auto kSpin = std::chrono::microseconds(50);

uint32_t UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return uint32_t(CPU_COUNT(&set));
  uint32_t n = std::thread::hardware_concurrency();  // more CPUs than fit into a cpu_set_t
  return n ? n : 1;
}

constexpr int32_t kNothingOffered = INT32_MIN;

// If there is a choice of priorities, one in so many searches of a worker begins with the lowest,
// so that no work starves.
constexpr uint32_t kTurns = 8;

// A loop in pieces; each thread takes the next number and runs that piece.
class Loop final : public ThreadPool::Joint {
 public:
  using Part = void (*)(void* arg, uint64_t begin, uint64_t end);
  Loop(const ThreadPool& pool, ThreadShare* share, uint64_t n, uint64_t grain, uint64_t pieces, Part part, void* arg)
      : Joint(share), pool_(pool), n_(n), grain_(grain), pieces_(pieces), part_(part), arg_(arg) {}

  // Checks the counter before incrementing it, so that late helpers cannot overflow it.
  bool DoPiece() {
    if (next_.load(std::memory_order_relaxed) >= pieces_) return false;
    uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= pieces_) return false;
    uint64_t begin = i * grain_;
    part_(arg_, begin, n_ - begin < grain_ ? n_ : begin + grain_);
    return true;
  }

  bool Help() override {
    if (!DoPiece()) return false;
    while (!pool_.outranks(priority()) && DoPiece()) {
    }
    return true;
  }

 private:
  const ThreadPool& pool_;
  const uint64_t n_, grain_, pieces_;
  const Part part_;
  void* const arg_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

// A thread of the pool with the condition variable on which it sleeps.
struct ThreadPool::Worker {
  std::thread thread;
  std::mutex mu;
  std::condition_variable wake;
  bool called = false;
  bool moved = false;       // kept off one CPU until it is awake
  cpu_set_t usual, others;  // if `moved`: its usual CPUs, and those until it is awake
  Worker* next = nullptr;

  // REQUIRES: the caller took it from the list of sleepers.
  void Call() {
    {
      std::lock_guard lock(mu);
      KeepOff(sched_getcpu());
      called = true;
    }
    wake.notify_one();
  }

  void Sleep() {
    std::unique_lock lock(mu);
    wake.wait(lock, [&] { return called; });
    called = false;
    if (std::exchange(moved, false)) Return();
  }

 private:
  // Keeps the thread off the waker's CPU. Linux in a virtual machine may take a CPU that was idle
  // for a while for one that the host has taken away; it then puts the woken thread on the CPU of
  // the waker, where the two wait for each other for milliseconds. REQUIRES: mu is held.
  void KeepOff(int cpu) {
    if (cpu < 0 || cpu >= CPU_SETSIZE || Filtered()) return;
    if (pthread_getaffinity_np(thread.native_handle(), sizeof usual, &usual) != 0) return;
    others = usual;
    CPU_CLR(cpu, &others);
    moved = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread.native_handle(), sizeof others, &others) == 0;
  }

  // Restores the usual CPUs, unless somebody else has changed the set meanwhile.
  void Return() {
    cpu_set_t now;
    if (pthread_getaffinity_np(pthread_self(), sizeof now, &now) != 0 || !CPU_EQUAL(&now, &others)) return;
    pthread_setaffinity_np(pthread_self(), sizeof usual, &usual);
  }

  // Returns true behind a seccomp filter, which may end the process for a system call that it does
  // not know.
  static bool Filtered() {
    static const bool filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
    return filtered;
  }
};

// Threads for blocking calls and for tasks. There are as many idle threads as there is work for, so
// that no work waits for a blocking call. The thread that fell asleep last takes the next work, so
// threads from a burst stay asleep and end.
struct ThreadPool::BlockingThreads : std::enable_shared_from_this<BlockingThreads> {
  explicit BlockingThreads(size_t tasks) : most(tasks) {}

  // A sleeping thread; the object is on its own stack.
  struct Sleeper {
    std::condition_variable wake;
    bool called = false;
    Sleeper* below = nullptr;
  };

  const size_t most;  // tasks at once
  std::mutex mu;
  std::deque<std::function<void()>> todo;
  Task* first = nullptr;  // list of tasks
  Task** last = &first;
  size_t waiting = 0;  // tasks in the list
  size_t working = 0;  // tasks that run and do not block
  std::list<std::thread> threads;
  std::list<std::thread> ended;           // threads that have ended and must be joined
  std::vector<std::thread::id> given_up;  // threads for whose work the destructor does not wait
  std::vector<std::thread::id> over;      // threads that left the list of work after stop
  std::condition_variable fewer;          // signalled after stop if given_up or over grows
  Sleeper* top = nullptr;                 // the last to fall asleep
  size_t idle = 0;
  bool stop = false;
  static thread_local BlockingThreads* in_task;
  static thread_local uint32_t may_block;  // number of MayBlock objects around the task of this thread

  static bool Has(const std::vector<std::thread::id>& list, std::thread::id thread) {
    return std::find(list.begin(), list.end(), thread) != list.end();
  }

  // Joins the threads after stop, and detaches those that are given up, also if that happens while
  // this waits. REQUIRES: mu is held.
  void JoinAll(std::unique_lock<std::mutex>* lock) {
    for (std::thread& t : threads) {
      const std::thread::id id = t.get_id();
      // A runtime's last owner may release it on one of the runtime's own threads, which then ends
      // after it.
      if (id == std::this_thread::get_id()) {
        t.detach();
        continue;
      }
      fewer.wait(*lock, [&] { return Has(given_up, id) || Has(over, id); });
      if (Has(given_up, id)) {
        t.detach();
        continue;
      }
      lock->unlock();
      t.join();
      lock->lock();
    }
  }

  // Returns how many threads there is work for, beside those that are working. REQUIRES: mu is
  // held.
  size_t Wanted() const { return todo.size() + std::min(waiting, working < most ? most - working : 0); }

  // Wakes an idle thread, and adds one if there are too few; a new thread counts as idle from the
  // start. Returns false if there is no thread at all. REQUIRES: mu is held.
  bool Summon() {
    if (idle < Wanted()) AddThread();
    CallOne();
    return !threads.empty();
  }

  // REQUIRES: mu is held.
  void CallOne() {
    if (!top) return;
    Sleeper* s = std::exchange(top, top->below);
    s->called = true;
    s->wake.notify_one();
  }

  void AddThread() {
    try {
      threads.emplace_back();
      const auto at = std::prev(threads.end());
      try {
        *at = StartThread([own = shared_from_this(), at] { own->Work(at); });
      } catch (...) {
        threads.erase(at);
        throw;
      }
      ++idle;
    } catch (const std::exception&) {
      // No more threads: an existing one takes the work when it is free.
    }
  }

  void Work(std::list<std::thread>::iterator self) {
    LeaveSignalsToTheProgram();
    std::unique_lock lock(mu);
    for (;; ++idle) {
      while (!stop && Wanted() == 0) {
        if (!Sleep(&lock) && End(self, &lock)) return;
      }
      --idle;
      if (!todo.empty()) {
        auto f = std::move(todo.front());
        todo.pop_front();
        lock.unlock();
        f();
        f = nullptr;  // destroying its captures may call back into the pool
        lock.lock();
        if (!given_up.empty() && std::erase(given_up, std::this_thread::get_id()) > 0 && stop) break;  // the pool may be gone
      } else if (first) {
        RunFirst(&lock);
      } else {
        break;  // work that was handed in before the end is still done
      }
    }
    over.push_back(std::this_thread::get_id());
    fewer.notify_all();
  }

  // Returns false if no work came in the time for which an idle thread is kept.
  bool Sleep(std::unique_lock<std::mutex>* lock) {
    Sleeper me;
    me.below = std::exchange(top, &me);
    if (threads.size() == 1) {
      me.wake.wait(*lock, [&] { return me.called; });
      return true;
    }
    if (me.wake.wait_for(*lock, kIdle, [&] { return me.called; })) return true;
    Sleeper** at = &top;
    while (*at != &me) at = &(*at)->below;
    *at = me.below;
    return false;
  }

  // Ends the thread, unless it is the last: Start must not need a new one. Joins the threads that
  // ended before; the next one joins this one.
  bool End(std::list<std::thread>::iterator self, std::unique_lock<std::mutex>* lock) {
    if (stop || Wanted() > 0 || threads.size() == 1) return false;
    std::list<std::thread> before;
    before.swap(ended);
    ended.splice(ended.end(), threads, self);
    --idle;
    lock->unlock();
    for (std::thread& t : before) t.join();
    return true;
  }

  void RunFirst(std::unique_lock<std::mutex>* lock) {
    Task* t = std::exchange(first, first->next_);
    if (!first) last = &first;
    --waiting;
    ++working;
    lock->unlock();
    in_task = this;
    t->Go();
    in_task = nullptr;
    lock->lock();
    --working;
  }
};
thread_local ThreadPool::BlockingThreads* ThreadPool::BlockingThreads::in_task = nullptr;
thread_local uint32_t ThreadPool::BlockingThreads::may_block = 0;

// The entry for the program's threads. It outlives the pool until the last requested thread has
// come; it then leads nowhere.
struct ThreadPool::Door {
  const tw_thread_pool program;
  std::atomic<uint64_t> refs{1};  // the pool's, and one per requested thread
  std::mutex mu;
  std::condition_variable left;
  ThreadPool* pool;  // NULL: the pool is gone
  bool release = false;
  uint32_t inside = 0;

  Door(const tw_thread_pool& p, ThreadPool* to) : program(p), pool(to) {}
  // The thread is inside `schedule`, of any pool. It must not help then, because it may hold what
  // the work waits for.
  static thread_local bool asking;

  void Ask() {
    refs.fetch_add(1, std::memory_order_relaxed);
    const bool before = std::exchange(asking, true);
    program.schedule(program.user, &Enter, this);
    asking = before;
  }

  static void Enter(void* arg) {
    auto* door = static_cast<Door*>(arg);
    ThreadPool* pool;
    {
      std::lock_guard lock(door->mu);
      pool = door->pool;
      if (pool) ++door->inside;
    }
    if (pool) {
      pool->Visit();
      std::lock_guard lock(door->mu);
      if (--door->inside == 0) door->left.notify_all();
    }
    door->Release();
  }

  void Close() {
    {
      std::unique_lock lock(mu);
      pool = nullptr;
      left.wait(lock, [&] { return inside == 0; });
    }
    if (release && program.release) program.release(program.user);
    Release();
  }

  void Release() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};
thread_local bool ThreadPool::Door::asking = false;

namespace {
uint32_t CountThreads(uint32_t threads, const tw_thread_pool* program) {
  if (!program) return threads ? threads : UsableCpus();
  const uint32_t all = std::min<uint32_t>(program->threads, INT32_MAX) + 1;
  return threads ? std::min(threads, all) : all;
}
}  // namespace

ThreadPool::ThreadPool(uint32_t threads, const tw_thread_pool* program)
    : threads_(CountThreads(threads, program)),
      forks_(CountForks()),
      top_(kNothingOffered),
      door_(program ? new Door(*program, this) : nullptr),
      blocking_(std::make_shared<BlockingThreads>(threads_)) {
  if (door_) {
    sleeping_ = int32_t(threads_ - 1);
    return;
  }
  workers_.reserve(threads_ - 1);
  try {
    for (uint32_t i = 1; i < threads_; ++i) {
      auto worker = std::make_unique<Worker>();
      worker->thread = StartThread([this, self = worker.get()] {
        LeaveSignalsToTheProgram();
        Work(self);
      });
      workers_.push_back(std::move(worker));
    }
  } catch (const std::exception&) {
    // The system gives no more threads: the existing ones do the work.
  }
}

void ThreadPool::ReleaseAtEnd() {
  if (door_) door_->release = true;
}

bool ThreadPool::InChild() const { return forks.load(std::memory_order_relaxed) != forks_; }

ThreadPool::~ThreadPool() {
  if (InChild()) {
    // A child has no threads to join or detach.
    static std::mutex gone_mu;
    static auto* gone = new std::list<std::thread>;
    std::lock_guard lock(gone_mu);
    for (auto* all : {&blocking_->threads, &blocking_->ended}) gone->splice(gone->end(), *all);
    // Destroying the workers would wait for sleepers that do not exist.
    static auto* beds = new std::vector<std::unique_ptr<Worker>>;
    for (auto& w : workers_) beds->push_back(std::move(w));
    return;
  }
  {
    std::unique_lock lock(blocking_->mu);
    blocking_->stop = true;  // from here on no thread leaves the list
    blocking_->over.reserve(blocking_->threads.size());
    while (blocking_->top) blocking_->CallOne();
    blocking_->JoinAll(&lock);
  }
  for (std::thread& t : blocking_->ended) t.join();
  Worker* called;
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    called = std::exchange(asleep_, nullptr);
  }
  while (called) std::exchange(called, called->next)->Call();
  for (auto& w : workers_) w->thread.join();
  if (door_) door_->Close();
}

void ThreadPool::Offer(Joint* j, uint64_t hands) {
  if (!InChild()) Add(j, hands);
}

// Lists the Joint and wakes helpers. wake: how many helpers the work is worth; awake workers come
// by themselves.
void ThreadPool::Add(Joint* j, uint64_t wake) {
  int64_t more;
  Worker* called = nullptr;
  {
    std::lock_guard lock(mu_);
    ++offers_;
    if (!j->listed_) Insert(j);
    const uint64_t most = (j->share_ ? std::min(threads_, j->share_->threads()) : threads_) - 1;
    more = std::min(int64_t(sleeping_), int64_t(std::min(wake, most)) - spinning_.load(std::memory_order_relaxed));
    if (more <= 0) return;
    sleeping_ -= int32_t(more);
    for (int64_t k = 0; k < more && !door_; ++k) {
      Worker* w = std::exchange(asleep_, asleep_->next);
      w->next = std::exchange(called, w);
    }
  }
  while (called) std::exchange(called, called->next)->Call();
  for (; door_ && more > 0; --more) door_->Ask();
}

// Inserts behind work of higher priority and in front of work of the same. REQUIRES: mu_ is held.
void ThreadPool::Insert(Joint* j) {
  Joint* before = nullptr;
  Joint* after = head_;
  while (after && after->priority_ > j->priority_) {
    before = after;
    after = after->next_;
  }
  j->listed_ = true;
  j->prev_ = before;
  j->next_ = after;
  (before ? before->next_ : head_) = j;
  (after ? after->prev_ : tail_) = j;
  listed_.fetch_add(1, std::memory_order_relaxed);
  top_.store(head_->priority_, std::memory_order_relaxed);
}

void ThreadPool::Withdraw(Joint* j) {
  if (InChild()) return;  // it was not offered, and a lock that was held at the fork is held for ever
  {
    std::lock_guard lock(mu_);
    if (j->listed_) {
      (j->prev_ ? j->prev_->next_ : head_) = j->next_;
      (j->next_ ? j->next_->prev_ : tail_) = j->prev_;
      j->listed_ = false;
      listed_.fetch_sub(1, std::memory_order_relaxed);
      top_.store(head_ ? head_->priority_ : kNothingOffered, std::memory_order_relaxed);
    }
  }
  // Helpers are in a piece or about to leave. Yielding gives this CPU to a helper that has lost its
  // own.
  for (uint32_t i = 0; j->helpers_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < 2000) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

// Returns where a search begins. REQUIRES: mu_ is held.
ThreadPool::Joint* ThreadPool::First(uint32_t* turn) {
  if (!head_ || head_->priority_ == tail_->priority_) return head_;
  *turn = (*turn + 1) % kTurns;
  if (*turn != 0) return head_;
  Joint* lowest = tail_;
  while (lowest->prev_->priority_ == tail_->priority_) lowest = lowest->prev_;
  return lowest;
}

void ThreadPool::Leave(Joint* j) {
  if (j->share_) j->share_->Leave();
  j->helpers_.fetch_sub(1, std::memory_order_release);  // from here on the Joint may be gone
}

// Leaves `last` and joins the next offered work after it; the first if `last` is NULL.
ThreadPool::Joint* ThreadPool::Take(Joint* last, uint32_t* turn) {
  std::lock_guard lock(mu_);
  Joint* j = !last ? First(turn) : last->listed_ ? last->next_ : nullptr;
  if (last) Leave(last);
  while (j && j->share_ && !j->share_->Join()) j = j->next_;
  if (j) j->helpers_.fetch_add(1, std::memory_order_relaxed);
  return j;
}

// Goes once through the offered work; returns true as soon as something was done.
bool ThreadPool::HelpSomebody(uint32_t* turn) {
  for (Joint* j = Take(nullptr, turn); j; j = Take(j, turn)) {
    spinning_.fetch_sub(1, std::memory_order_relaxed);
    bool did = j->Help();
    spinning_.fetch_add(1, std::memory_order_relaxed);
    if (!did) continue;
    Leave(j);
    return true;
  }
  return false;
}

// Helps until there was nothing to do for a while. Returns false if nothing was offered meanwhile
// either. lock: of mu_; released in between.
bool ThreadPool::Look(std::unique_lock<std::mutex>* lock, uint32_t* turn) {
  const uint64_t seen = offers_;
  spinning_.fetch_add(1, std::memory_order_relaxed);
  lock->unlock();
  Clock::time_point until = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 16 && listed_.load(std::memory_order_relaxed) == 0; ++i) Pause();
    if (listed_.load(std::memory_order_relaxed) == 0) continue;
    if (HelpSomebody(turn)) {
      until = Clock::now() + kSpin;
    } else {
      for (int i = 0; i < 16; ++i) Pause();  // leaves the lock to threads that offer
    }
  } while (Clock::now() < until);
  lock->lock();
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  return seen != offers_;
}

void ThreadPool::Work(Worker* self) {
  uint32_t turn = 0;
  std::unique_lock lock(mu_);
  while (!stop_) {
    if (Look(&lock, &turn) || stop_) continue;
    ++sleeping_;
    self->next = std::exchange(asleep_, self);
    lock.unlock();
    self->Sleep();
    lock.lock();
  }
}

// Runs on a thread of the program that has come.
void ThreadPool::Visit() {
  uint32_t turn = 0;
  std::unique_lock lock(mu_);
  while (!Door::asking && !stop_ && Look(&lock, &turn)) {
  }
  ++sleeping_;
}

void ThreadPool::Parallel(uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg,
                          ThreadShare* share) {
  if (n == 0) return;
  if (grain == 0) grain = 1;
  uint64_t pieces = n / grain + (n % grain != 0);
  if (pieces == 1 || threads_ == 1 || (workers_.empty() && !door_) || InChild()) return part(arg, 0, n);
  Loop loop(*this, share, n, grain, pieces, part, arg);
  Add(&loop, pieces - 1);
  while (loop.DoPiece()) {
  }
  Withdraw(&loop);
}

void ThreadPool::Blocking(std::function<void()> f) {
  if (InChild()) return f();
  BlockingThreads& b = *blocking_;
  {
    std::lock_guard lock(b.mu);
    b.todo.push_back(std::move(f));
    f = nullptr;
    if (!b.Summon()) {  // no thread: the caller runs it
      f = std::move(b.todo.back());
      b.todo.pop_back();
    }
  }
  if (f) f();
}

void ThreadPool::GiveUp(std::thread::id thread) {
  if (InChild()) return;
  BlockingThreads& b = *blocking_;
  std::lock_guard lock(b.mu);
  if (b.Has(b.given_up, thread)) return;
  for (const std::thread& t : b.threads) {
    if (t.get_id() == thread) b.given_up.push_back(thread);
  }
  b.fewer.notify_all();
}

bool ThreadPool::HasThreadForTasks() {
  if (InChild()) return false;
  BlockingThreads& b = *blocking_;
  std::lock_guard lock(b.mu);
  if (b.threads.empty()) b.AddThread();
  return !b.threads.empty();
}

void ThreadPool::Start(Task* t) {
  t->next_ = nullptr;
  if (TasksHere* here = TasksHere::current) {
    *here->last_ = t;
    here->last_ = &t->next_;
    return;
  }
  BlockingThreads& b = *blocking_;
  std::lock_guard lock(b.mu);
  *b.last = t;
  b.last = &t->next_;
  ++b.waiting;
  b.Summon();
}

thread_local ThreadPool::TasksHere* ThreadPool::TasksHere::current = nullptr;

ThreadPool::TasksHere::TasksHere() {
  if (!current) current = this;
}

ThreadPool::TasksHere::~TasksHere() {
  if (current != this) return;
  current = nullptr;
  while (Task* t = first_) {
    first_ = t->next_;
    t->Go();
  }
}

ThreadPool::MayBlock::MayBlock() {
  BlockingThreads* b = BlockingThreads::in_task;
  if (!b || BlockingThreads::may_block++ > 0) return;
  std::lock_guard lock(b->mu);
  --b->working;
  if (b->Wanted() > b->todo.size()) b->Summon();
}

ThreadPool::MayBlock::~MayBlock() {
  BlockingThreads* b = BlockingThreads::in_task;
  if (!b || --BlockingThreads::may_block > 0) return;
  std::lock_guard lock(b->mu);
  ++b->working;
}

}  // namespace thalweg
