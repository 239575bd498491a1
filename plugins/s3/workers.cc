#include "workers.h"

#include <signal.h>

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "../common/thread.h"

namespace thalweg::s3 {

namespace {

// Starts a thread that receives no signals: they are for the program's threads.
template <class F>
std::thread StartQuietThread(F f) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restores {
    const sigset_t& mask;
    ~Restores() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restores{before};
  return common::StartThread(std::move(f));
}

}  // namespace

Workers::~Workers() {
  {
    std::lock_guard lock(mu_);
    ends_ = true;
    changed_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
}

void Workers::Run() {
  std::unique_lock lock(mu_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
  }
}

bool Workers::Offer(std::function<void()> task) {
  std::lock_guard lock(mu_);
  if (idle_ <= tasks_.size() && threads_.size() < most_) {
    try {
      threads_.reserve(threads_.size() + 1);
      threads_.push_back(StartQuietThread([this] { Run(); }));
    } catch (const std::system_error&) {
      if (threads_.empty()) return false;
    }
  }
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return true;
}

void Workers::ForAll(uint64_t n, const std::function<void(uint64_t)>& body) {
  struct Shared {
    std::atomic<uint64_t> next{0};
    std::mutex mu;
    std::condition_variable changed;
    uint64_t running = 0;       // guarded by mu: helpers inside body
    std::exception_ptr failed;  // guarded by mu
    bool over = false;          // guarded by mu: body must not be used any more
  };
  const auto shared = std::make_shared<Shared>();
  const auto work = [n, &body](Shared& s) {
    for (uint64_t i; (i = s.next.fetch_add(1)) < n;) {
      try {
        body(i);
      } catch (...) {
        std::lock_guard lock(s.mu);
        if (!s.failed) s.failed = std::current_exception();
        s.next = n;
      }
    }
  };
  // A helper that starts after the end finds `over` and does not touch `work`, which is gone then.
  const auto help = [shared, &work] {
    {
      std::lock_guard lock(shared->mu);
      if (shared->over) return;
      ++shared->running;
    }
    work(*shared);
    std::lock_guard lock(shared->mu);
    --shared->running;
    shared->changed.notify_all();
  };
  try {
    for (uint64_t i = 1; i < n && i < most_ && Offer(help); ++i) {
    }
  } catch (const std::bad_alloc&) {  // this thread does the rest
  }
  work(*shared);
  std::unique_lock lock(shared->mu);
  shared->changed.wait(lock, [&] { return shared->running == 0; });
  shared->over = true;
  if (shared->failed) std::rethrow_exception(shared->failed);
}

}  // namespace thalweg::s3
