#include "framework/runtime/step/batch_run.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "framework/runtime/pause.h"
#include "framework/runtime/step/in_order.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {
namespace {

// Every free thread takes a batch that waits for nothing. After a failure the remaining batches are
// counted down without being run.
template <bool kTraced>
class BatchRun final : public ThreadPool::Joint {
 public:
  explicit BatchRun(StepState* s) : Joint(s->share), s_(s), p_(s->plan()), left_(int32_t(s->plan().batches.size())) {
    s_->ready.clear();
    for (size_t b = p_.batches.size(); b-- > 0;) {  // the first is pushed last, because batches are taken from the back
      s_->counts[b] = p_.batches[b].pending;
      if (s_->counts[b] == 0) s_->ready.push_back(int32_t(b));
    }
    queued_.store(int32_t(s_->ready.size()), std::memory_order_relaxed);
  }

  Status Run() {
    s_->pool->Offer(this, s_->ready.size() - 1);
    while (left_.load(std::memory_order_acquire) > 0) {
      while (WorkOne()) {
      }
      if (left_.load(std::memory_order_acquire) == 0) break;
      const int64_t since = kTraced ? s_->trace->Now() : 0;
      Await();
      if (kTraced) s_->trace->Waited(since);
    }
    s_->pool->Withdraw(this);
    return std::move(status_);
  }

  bool Help() override {
    if (!WorkOne()) return false;
    while (!s_->pool->outranks(priority()) && WorkOne()) {
    }
    return true;
  }

 private:
  bool WorkOne() {
    if (queued_.load(std::memory_order_acquire) == 0) return false;
    int32_t b;
    {
      std::lock_guard lock(mu_);
      if (s_->ready.empty()) return false;
      b = s_->ready.back();
      s_->ready.pop_back();
      queued_.store(int32_t(s_->ready.size()), std::memory_order_relaxed);
    }
    const PlanBatch& batch = p_.batches[size_t(b)];
    Status st;
    if (!failed_.load(std::memory_order_relaxed)) st = RunInOrder<kTraced, true>(s_, size_t(batch.begin), size_t(batch.end));
    Done(batch, std::move(st));
    return true;
  }

  void Done(const PlanBatch& batch, Status st) {
    std::lock_guard lock(mu_);
    if (!st.ok()) {
      if (status_.ok()) status_ = std::move(st);
      failed_.store(true, std::memory_order_relaxed);
    }
    for (int32_t k : batch.next) {
      if (--s_->counts[size_t(k)] == 0) s_->ready.push_back(k);
    }
    queued_.store(int32_t(s_->ready.size()), std::memory_order_release);
    left_.store(left_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    if (waiting_) changed_.notify_one();
  }

  // Waits while there is nothing to take: spins briefly, then sleeps until a batch is done.
  void Await() {
    auto over = [&] { return queued_.load(std::memory_order_acquire) > 0 || left_.load(std::memory_order_acquire) == 0; };
    for (int spin = 0; spin < 2000; ++spin) {
      if (over()) return;
      Pause();
    }
    std::unique_lock lock(mu_);
    waiting_ = true;
    changed_.wait(lock, over);
    waiting_ = false;
  }

  StepState* s_;
  const Plan& p_;
  std::atomic<int32_t> left_;  // batches that have not ended
  std::atomic<int32_t> queued_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;  // guards ready batches, counts, status and waiting_
  std::condition_variable changed_;
  bool waiting_ = false;
  Status status_;
};

}  // namespace

template <bool kTraced>
Status RunBatches(StepState* step) {
  return BatchRun<kTraced>(step).Run();
}
template Status RunBatches<true>(StepState*);
template Status RunBatches<false>(StepState*);

}  // namespace thalweg
