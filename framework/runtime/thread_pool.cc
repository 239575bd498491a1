#include "framework/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <new>

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

// How many forks lie between the process and the first of its line that used a pool. A child has to leave its parent's condition
// variables alone: they remember waiters that are not there.
std::atomic<uint32_t> forks{0};
uint32_t CountForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;  // it fails only without memory, and then children do as they would without it
  return forks.load(std::memory_order_relaxed);
}

// How long a worker looks for more work before it sleeps. Waking costs about as much, so spinning longer than that cannot pay for itself.
constexpr auto kSpin = std::chrono::microseconds(50);

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint32_t UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return uint32_t(CPU_COUNT(&set));
  uint32_t n = std::thread::hardware_concurrency();  // more CPUs than fit into a cpu_set_t
  return n ? n : 1;
}

// A loop in pieces; whoever takes the next number does that piece.
class Loop final : public ThreadPool::Joint {
 public:
  using Part = void (*)(void* arg, uint64_t begin, uint64_t end);
  Loop(uint64_t n, uint64_t grain, uint64_t pieces, Part part, void* arg) : n_(n), grain_(grain), pieces_(pieces), part_(part), arg_(arg) {}

  bool Help() override {
    bool did = false;
    // Looked at before it is counted up, so that late helpers cannot count it round.
    while (next_.load(std::memory_order_relaxed) < pieces_) {
      uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces_) break;
      uint64_t begin = i * grain_;
      part_(arg_, begin, n_ - begin < grain_ ? n_ : begin + grain_);
      did = true;
    }
    return did;
  }

 private:
  const uint64_t n_, grain_, pieces_;
  const Part part_;
  void* const arg_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

// Threads for calls that block: as many as ever were busy at once, kept for the next.
struct ThreadPool::BlockingThreads {
  std::mutex mu;
  std::condition_variable wake;
  std::deque<std::function<void()>> todo;
  std::vector<std::thread> threads;
  size_t idle = 0;
  bool stop = false;

  void Work() {
    std::unique_lock lock(mu);
    for (;;) {
      ++idle;
      wake.wait(lock, [&] { return stop || !todo.empty(); });
      --idle;
      if (todo.empty()) return;  // what was handed in before the end is still done
      auto f = std::move(todo.front());
      todo.pop_front();
      lock.unlock();
      f();
      f = nullptr;  // what it holds may lead back here
      lock.lock();
    }
  }
};

ThreadPool::ThreadPool(uint32_t threads)
    : threads_(threads ? threads : UsableCpus()), forks_(CountForks()), blocking_(std::make_shared<BlockingThreads>()) {
  workers_.reserve(threads_ - 1);
  try {
    for (uint32_t i = 1; i < threads_; ++i) workers_.emplace_back([this] { Work(); });
  } catch (const std::exception&) {
    // The system gives no more threads: those that there are do the work.
  }
}

bool ThreadPool::InChild() const { return forks.load(std::memory_order_relaxed) != forks_; }

ThreadPool::~ThreadPool() {
  if (InChild()) {
    // Nothing is there to be joined or detached.
    static std::mutex gone_mu;
    static auto* gone = new std::vector<std::thread>;
    std::lock_guard lock(gone_mu);
    for (std::thread& t : workers_) gone->push_back(std::move(t));
    for (std::thread& t : blocking_->threads) gone->push_back(std::move(t));
    // Their ends would wait for sleepers that are not there.
    new (&wake_) std::condition_variable;
    new (&blocking_->wake) std::condition_variable;
    return;
  }
  {
    std::lock_guard lock(blocking_->mu);
    blocking_->stop = true;
  }
  blocking_->wake.notify_all();
  for (std::thread& t : blocking_->threads) {
    // The last owner of a runtime may go on one of its own threads, which then ends after it.
    if (t.get_id() == std::this_thread::get_id())
      t.detach();
    else
      t.join();
  }
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void ThreadPool::Offer(Joint* j, bool big) {
  if (!InChild()) Add(j, big ? 1 : 0);
}

// wake: how many hands the work is worth; those that are awake and looking come by themselves.
void ThreadPool::Add(Joint* j, uint64_t wake) {
  int64_t asleep;
  {
    std::lock_guard lock(mu_);
    ++offers_;
    if (!j->listed_) {
      j->listed_ = true;
      j->prev_ = nullptr;
      j->next_ = head_;
      if (head_) head_->prev_ = j;
      head_ = j;
      listed_.fetch_add(1, std::memory_order_relaxed);
    }
    asleep = std::min(int64_t(sleeping_), int64_t(std::min<uint64_t>(wake, threads_)) - spinning_.load(std::memory_order_relaxed));
  }
  for (; asleep > 0; --asleep) wake_.notify_one();
}

void ThreadPool::Withdraw(Joint* j) {
  if (InChild()) return;  // it was not offered, and whoever held the lock at the fork holds it for ever
  {
    std::lock_guard lock(mu_);
    if (j->listed_) {
      (j->prev_ ? j->prev_->next_ : head_) = j->next_;
      if (j->next_) j->next_->prev_ = j->prev_;
      j->listed_ = false;
      listed_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  // Helpers are inside a piece or about to leave. Should one have lost its CPU, it gets ours.
  for (uint32_t i = 0; j->helpers_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < 2000) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

// The next offered work after `last` (NULL: the newest), which the caller leaves.
ThreadPool::Joint* ThreadPool::Take(Joint* last) {
  std::lock_guard lock(mu_);
  Joint* j = !last ? head_ : last->listed_ ? last->next_ : nullptr;
  if (j) j->helpers_.fetch_add(1, std::memory_order_relaxed);
  if (last) last->helpers_.fetch_sub(1, std::memory_order_release);  // from here on it may be gone
  return j;
}

// Once through all that is offered, newest first; true as soon as something was done.
bool ThreadPool::HelpSomebody() {
  for (Joint* j = Take(nullptr); j; j = Take(j)) {
    spinning_.fetch_sub(1, std::memory_order_relaxed);
    bool did = j->Help();
    spinning_.fetch_add(1, std::memory_order_relaxed);
    if (!did) continue;
    j->helpers_.fetch_sub(1, std::memory_order_release);
    return true;
  }
  return false;
}

void ThreadPool::Work() {
  std::unique_lock lock(mu_);
  while (!stop_) {
    uint64_t seen = offers_;
    spinning_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    Clock::time_point until = Clock::now() + kSpin;
    do {
      for (int i = 0; i < 16 && listed_.load(std::memory_order_relaxed) == 0; ++i) Pause();
      if (listed_.load(std::memory_order_relaxed) == 0) continue;
      if (HelpSomebody()) {
        until = Clock::now() + kSpin;
      } else {
        for (int i = 0; i < 16; ++i) Pause();  // leaves the lock to those who offer
      }
    } while (Clock::now() < until);
    lock.lock();
    spinning_.fetch_sub(1, std::memory_order_relaxed);
    if (stop_ || seen != offers_) continue;
    ++sleeping_;
    wake_.wait(lock);
    --sleeping_;
  }
}

void ThreadPool::Parallel(uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg) {
  if (n == 0) return;
  if (grain == 0) grain = 1;
  uint64_t pieces = n / grain + (n % grain != 0);
  if (pieces == 1 || workers_.empty() || InChild()) return part(arg, 0, n);
  Loop loop(n, grain, pieces, part, arg);
  Add(&loop, pieces - 1);
  loop.Help();
  Withdraw(&loop);
}

void ThreadPool::Blocking(std::function<void()> f) {
  if (InChild()) return f();
  BlockingThreads& b = *blocking_;
  {
    std::lock_guard lock(b.mu);
    b.todo.push_back(std::move(f));
    f = nullptr;
    if (b.idle < b.todo.size()) {
      try {
        b.threads.emplace_back([own = blocking_] { own->Work(); });
      } catch (const std::exception&) {
        // No more threads: one that is there takes it when it is free. Where there is none, the caller has to.
        if (b.threads.empty()) {
          f = std::move(b.todo.back());
          b.todo.pop_back();
        }
      }
    }
  }
  if (f) return f();
  b.wake.notify_one();
}

}  // namespace thalweg
