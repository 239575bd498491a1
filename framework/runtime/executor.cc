#include "framework/runtime/executor.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "framework/runtime/thread_pool.h"

namespace thalweg {
namespace {

// Nothing but the kernel's call; a kernel in C++ may throw although it must not.
inline tw_status* CallSimple(StepState* s, size_t i) {
  try {
    return s->plan().nodes[i].run.kernel->def.execute(&s->frame(i).c);
  } catch (...) {
    return ToC(Thrown());
  }
}

Status RunFixed(StepState* s) {
  const Plan& p = s->plan();
  const bool interruptible = s->cancel || s->deadline;
  const size_t n = p.nodes.size();
  for (size_t i = 0; i < n; ++i) {
    const PlanNode& node = p.nodes[i];
    if (interruptible && (i % 16 == 0 || !node.cheap)) RETURN_IF_ERROR(StepInterrupted(*s));
    if (node.simple) {
      if (tw_status* failed = CallSimple(s, i)) [[unlikely]] {
        return s->Describe(i, FromC(failed));
      }
      continue;
    }
    bool pending = false;
    RETURN_IF_ERROR(s->RunNode(i, &pending));
    s->ReleaseInputs<false>(i);
  }
  return Status();
}

// Every node has a count of what it waits for; whoever brings it to zero runs it or queues it. After a failure nodes are counted down
// without being run, so the step always comes to its end.
class CountedRun final : public ThreadPool::Joint, public StepState::Listener {
 public:
  explicit CountedRun(StepState* s)
      : s_(s), p_(s->plan()), interruptible_(s->cancel || s->deadline), left_(int32_t(s->plan().nodes.size())) {
    s_->counts.assign(p_.pending.begin(), p_.pending.end());
    s_->ready.assign(p_.roots.begin(), p_.roots.end());
    queued_.store(int32_t(s_->ready.size()), std::memory_order_relaxed);
    s_->listener = this;
  }

  Status Run() {
    if (p_.nodes.empty()) return Status();
    ThreadPool* pool = s_->pool;
    if (pool && pool->threads() > 1) pool->Offer(this, true);
    while (left_.load(std::memory_order_acquire) > 0) {
      Help();
      if (left_.load(std::memory_order_acquire) == 0) break;
      Await();
    }
    if (pool && pool->threads() > 1) pool->Withdraw(this);
    // Whoever ended the last node may still hold the lock.
    std::lock_guard lock(mu_);
    return status_;
  }

  bool Help() override {
    int32_t entry;
    bool helped = false;
    while (Take(&entry)) {
      helped = true;
      int32_t ended = 0;
      int32_t i = Enter(entry, &ended);
      while (i >= 0) i = RunOne(i, &ended);
      if (ended > 0 && left_.fetch_sub(ended, std::memory_order_acq_rel) == ended) {
        std::lock_guard lock(mu_);
        changed_.notify_all();
      }
    }
    return helped;
  }

  // An asynchronous call is over: its node goes through the queue once more, marked, so that nothing runs on a foreign thread.
  void Ended(size_t node, Status st) override {
    std::lock_guard lock(mu_);
    if (!st.ok()) Fail(s_->Describe(node, st));
    s_->ready.push_back(EndedEntry(int32_t(node)));
    queued_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }

 private:
  // The queue holds nodes to run, and (marked) nodes that ended elsewhere and whose successors are still to be counted.
  static constexpr int32_t kRan = 1 << 30;                   // by a blocking thread, completely
  static int32_t EndedEntry(int32_t node) { return ~node; }  // an asynchronous call, whose end is still to be done
  static int32_t RanEntry(int32_t node) { return kRan + node; }

  bool Take(int32_t* entry) {
    if (queued_.load(std::memory_order_acquire) <= 0) return false;
    std::lock_guard lock(mu_);
    if (s_->ready.empty()) return false;
    *entry = s_->ready.back();
    s_->ready.pop_back();
    queued_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // *ended, here and below: how many nodes are over that left_ does not know of yet. One thread's chain of nodes is counted at its end.
  int32_t Enter(int32_t entry, int32_t* ended) {
    if (entry >= kRan) return Done(entry - kRan, ended);
    if (entry >= 0) return RunOne(entry, ended);
    int32_t node = ~entry;
    Status st = s_->EndNode(size_t(node));
    if (!st.ok()) {
      std::lock_guard lock(mu_);
      Fail(std::move(st));
    }
    return Done(node, ended);
  }

  void Fail(Status st) {  // REQUIRES: mu_
    if (status_.ok()) status_ = std::move(st);
    failed_.store(true, std::memory_order_release);
  }

  // Runs node i and answers a node that became ready and should be run next here, or -1.
  int32_t RunOne(int32_t i, int32_t* ended) {
    const PlanNode& n = p_.nodes[size_t(i)];
    if (!failed_.load(std::memory_order_acquire)) {
      Status st;
      bool pending = false;
      if (interruptible_) st = StepInterrupted(*s_);
      if (st.ok() && n.simple) {
        tw_status* failed = CallSimple(s_, size_t(i));
        if (!failed) return Done(i, ended);
        st = s_->Describe(size_t(i), FromC(failed));
      } else if (st.ok()) {
        if (n.run.kernel && n.run.kernel->spec.may_block && s_->pool && s_->pool->threads() > 1) {
          s_->pool->Blocking([this, i] {
            bool goes_on = false;
            Status done = s_->RunNode(size_t(i), &goes_on);
            if (!goes_on) BlockingEnded(size_t(i), std::move(done));
          });
          return -1;
        }
        st = s_->RunNode(size_t(i), &pending);
      }
      if (st.ok() && pending) return -1;
      if (!st.ok()) {
        std::lock_guard lock(mu_);
        Fail(std::move(st));
      }
    }
    return Done(i, ended);
  }

  void BlockingEnded(size_t node, Status st) {
    std::lock_guard lock(mu_);
    if (!st.ok()) Fail(std::move(st));
    s_->ready.push_back(RanEntry(int32_t(node)));
    queued_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }

  // Node i is over: counts down those that wait for it.
  int32_t Done(int32_t i, int32_t* ended) {
    const PlanNode& n = p_.nodes[size_t(i)];
    if (!n.held_in.empty()) s_->ReleaseInputs<true>(size_t(i));
    int32_t mine = -1;
    for (int32_t k : n.next) {
      if (p_.pending[size_t(k)] > 1 && std::atomic_ref<int32_t>(s_->counts[size_t(k)]).fetch_sub(1, std::memory_order_acq_rel) != 1) {
        continue;
      }
      if (mine >= 0) Push(mine);
      mine = k;
    }
    ++*ended;
    return mine;
  }

  void Push(int32_t i) {
    {
      std::lock_guard lock(mu_);
      s_->ready.push_back(i);
      queued_.fetch_add(1, std::memory_order_release);
      if (waiting_) changed_.notify_all();
    }
    // Workers that found nothing for a while have gone to sleep. Light work is done before they are awake.
    if (p_.nodes[size_t(i)].heavy && s_->pool && s_->pool->threads() > 1 && !s_->pool->hungry()) s_->pool->Offer(this, true);
  }

  // Nothing to take: spins briefly, then sleeps until something is pushed or ended.
  void Await() {
    for (int spin = 0; spin < 2000; ++spin) {
      if (queued_.load(std::memory_order_acquire) > 0 || left_.load(std::memory_order_acquire) == 0) return;
      __builtin_ia32_pause();
    }
    std::unique_lock lock(mu_);
    waiting_ = true;
    changed_.wait(lock, [&] { return !s_->ready.empty() || left_.load(std::memory_order_acquire) == 0; });
    waiting_ = false;
  }

  StepState* s_;
  const Plan& p_;
  const bool interruptible_;
  std::atomic<int32_t> left_;  // nodes that are not over
  std::atomic<int32_t> queued_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;  // ready queue, status, sleeping caller
  std::condition_variable changed_;
  bool waiting_ = false;
  Status status_;
};

}  // namespace

Status RunStep(StepState* step, const Tensor* feeds, Tensor* fetches) {
  step->Feed(feeds);
  Status s = StepInterrupted(*step);
  if (s.ok()) s = step->plan().counted ? CountedRun(step).Run() : RunFixed(step);
  return step->Finish(std::move(s), fetches);
}

}  // namespace thalweg
