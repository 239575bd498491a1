#include "framework/runtime/step/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/plan/node_work.h"
#include "framework/runtime/devices/recordings.h"
#include "framework/runtime/flow/frame_run.h"
#include "framework/runtime/pause.h"
#include "framework/runtime/rendezvous.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/batch_run.h"
#include "framework/runtime/step/in_order.h"
#include "framework/runtime/step/step.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {
namespace {

// Finishes a step and its trace.
Status FinishStep(StepState* step, Status s, Tensor* fetches) {
  s = step->Finish(std::move(s), fetches);
  if (step->trace) step->trace->Finish();
  return s;
}

// Every node has a count of predecessors that have not ended; the thread that brings it to zero
// runs or queues the node. After a failure nodes are counted down without being run, so the step
// always ends.
template <bool kTraced>
class CountedRun final : public ThreadPool::Joint, public StepState::Listener {
 public:
  explicit CountedRun(StepState* s)
      : Joint(s->share), s_(s), p_(s->plan()), interruptible_(s->cancel || s->deadline), left_(int32_t(s->plan().nodes.size())) {
    s_->counts.assign(p_.pending.begin(), p_.pending.end());
    s_->ready.assign(p_.roots.begin(), p_.roots.end());
    queued_.store(int32_t(s_->ready.size()), std::memory_order_relaxed);
    s_->listener = this;
  }
  // A step that is continued by `driver`, which calls Drive whenever there is work and no thread
  // drives the step.
  CountedRun(StepState* s, ThreadPool::Task* driver) : CountedRun(s) { driver_ = driver; }

  Status Run() {
    if (p_.nodes.empty()) return Status();
    ThreadPool* pool = s_->pool;
    if (pool && pool->threads() > 1) pool->Offer(this, HandsAtFirst());
    while (left_.load(std::memory_order_acquire) > 0) {
      while (WorkOne()) {
      }
      if (left_.load(std::memory_order_acquire) == 0) break;
      const int64_t since = kTraced ? s_->trace->Now() : 0;
      Await();
      if (kTraced) s_->trace->Waited(since);
    }
    if (pool && pool->threads() > 1) pool->Withdraw(this);
    return TakeStatus();
  }

  // Works while there is something to do, for a run with a driver. Returns true if the step has
  // ended. If it returns false, the driver will be started, possibly before this returns, so the
  // caller must not touch the step.
  bool Drive() {
    if (p_.nodes.empty()) return true;
    const uint64_t later = FewAndLight() ? 0 : 1;
    uint64_t hands = later ? HandsAtFirst() : 0;
    do {
      s_->pool->Offer(this, std::exchange(hands, later));
      while (WorkOne() || WaitForHelpers()) {
      }
      s_->pool->Withdraw(this);
      if (left_.load(std::memory_order_acquire) == 0) return true;
    } while (!Rest());
    return false;
  }

  Status TakeStatus() {
    // The thread that ended the last node may still hold the lock.
    std::lock_guard lock(mu_);
    return status_;
  }

  bool Help() override {
    if (driver_) {
      if (queued_.load(std::memory_order_acquire) <= 0) return false;
      helpers_.fetch_add(1, std::memory_order_relaxed);
    }
    const bool did = WorkOne();
    while (did && !s_->pool->outranks(priority()) && WorkOne()) {
    }
    if (driver_) HelperLeaves();
    return did;
  }

  // Called when an asynchronous call ends. Its node goes through the queue once more, marked, so
  // that nothing of the step runs on a foreign thread.
  void Ended(size_t node, Status st) override {
    if (kTraced) s_->trace->Ended(node, st.ok());
    if (!st.ok()) Fail(s_->Describe(node, st));
    PushFromOutside(EndedEntry(int32_t(node)));
  }

  // Called when a call that waited at a resource is to run again.
  void Again(size_t node) override { PushFromOutside(kAgain + int32_t(node)); }
  bool failed() const override { return failed_.load(std::memory_order_acquire); }

 private:
  // The queue holds nodes to run and, marked, nodes that ended elsewhere and whose successors are
  // not counted yet.
  static constexpr int32_t kRan = 1 << 30;                   // run completely by a blocking thread
  static constexpr int32_t kAgain = 1 << 29;                 // waited at a resource
  static int32_t EndedEntry(int32_t node) { return ~node; }  // an asynchronous call that EndNode must finish
  static int32_t RanEntry(int32_t node) { return kRan + node; }

  // Returns how many threads beside the caller the root nodes are worth.
  uint64_t HandsAtFirst() const {
    const std::vector<uint8_t>& heavy = s_->shapes()->heavy;
    uint64_t hands = 0;
    for (size_t k = 0; k < p_.roots.size() && hands < s_->pool->threads(); ++k) hands += heavy[size_t(p_.roots[k])];
    return hands > 2 ? hands - 1 : 1;
  }

  // Returns true if the nodes, all but at most one short one, end before another thread would be
  // awake. If sizes are known only at run time, this holds only for plans of so few nodes that
  // hardly any could run concurrently.
  bool FewAndLight() const {
    constexpr size_t kFew = 64, kFewUnknown = 16;
    const std::vector<uint8_t>& heavy = s_->shapes()->heavy;
    if (heavy.size() > kFew) return false;
    size_t work = 0;
    for (size_t k = 0; k < heavy.size(); ++k) {
      if (!heavy[k] || PassesOn(p_.nodes[k])) continue;
      if (++work > 1 || IsLong(p_.nodes[k], *s_->shapes())) return false;
    }
    const auto& values = s_->shapes()->values;
    return heavy.size() <= kFewUnknown ||
           std::all_of(values.begin(), values.end(), [](const PlanShapes::Value& v) { return v.shape.known(); });
  }

  // Processes one entry of the queue and the nodes that become ready by it. Returns false if the
  // queue is empty.
  bool WorkOne() {
    int32_t entry;
    if (!Take(&entry)) return false;
    int32_t ended = 0;
    int32_t i = Enter(entry, &ended);
    int32_t after = entry >= 0 && entry < kAgain ? entry : -1;
    while (i >= 0) {
      const int32_t next = RunOne(i, &ended, after);
      after = std::exchange(i, next);
    }
    if (ended > 0 && left_.fetch_sub(ended, std::memory_order_acq_rel) == ended) {
      std::lock_guard lock(mu_);
      changed_.notify_all();
    }
    return true;
  }

  bool Take(int32_t* entry) {
    if (queued_.load(std::memory_order_acquire) <= 0) return false;
    std::lock_guard lock(mu_);
    if (s_->ready.empty()) return false;
    if (p_.prioritized) [[unlikely]] {
      MoveFirstToBack();
    }
    *entry = s_->ready.back();
    s_->ready.pop_back();
    queued_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // Moves the entry to take to the back: ended nodes come first, then nodes to run by priority and
  // the plan's order. REQUIRES: mu_ is held.
  void MoveFirstToBack() {
    auto rank = [&](int32_t entry) {
      const bool ended = entry < 0 || entry >= kAgain;
      return ended ? std::pair(INT64_MIN, 0) : std::pair(-int64_t{p_.nodes[size_t(entry)].priority}, entry);
    };
    auto first = std::min_element(s_->ready.begin(), s_->ready.end(), [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
    std::iter_swap(first, s_->ready.end() - 1);
  }

  // *ended, here and below: number of ended nodes that left_ does not count yet. A thread counts
  // its chain of nodes when the chain ends.
  int32_t Enter(int32_t entry, int32_t* ended) {
    if (entry >= kRan) return Done(entry - kRan, ended);
    if (entry >= kAgain) return RunAgain(entry - kAgain, ended);
    if (entry >= 0) return RunOne(entry, ended);
    int32_t node = ~entry;
    Status st;
    try {
      st = s_->EndNode(size_t(node));
      if (kTraced && st.ok()) s_->NoteOutputs(size_t(node));
    } catch (...) {
      st = Thrown();
    }
    if (!st.ok()) Fail(std::move(st));
    return Done(node, ended);
  }

  // Records a failure and wakes calls that wait at resources. Called before the failed node counts
  // as ended, so that the step still exists.
  void Fail(Status st) {
    {
      std::lock_guard lock(mu_);
      if (status_.ok()) status_ = std::move(st);
      if (failed_.exchange(true, std::memory_order_release)) return;
      if (s_->rendezvous) s_->rendezvous->StepFailed(status_);
    }
    WaitingCalls::Get().CallAll(s_);
  }

  // Runs node i again: it has its turn at the resource where it waits, or the step is to end.
  int32_t RunAgain(int32_t i, int32_t* ended) {
    if (Status st = WaitingCalls::Get().Ended(*s_); !st.ok()) Fail(s_->Describe(size_t(i), st));
    return RunOne(i, ended);
  }

  // Runs node i and returns a node that became ready and should run next here, or -1. after: the
  // node that ran here just before, or -1.
  int32_t RunOne(int32_t i, int32_t* ended, int32_t after = -1) {
    const PlanNode& n = p_.nodes[size_t(i)];
    if (!failed_.load(std::memory_order_acquire)) {
      Status st;
      bool pending = false;
      if (interruptible_) st = StepInterrupted(*s_);
      if (st.ok() && !kTraced && n.simple) {
        tw_status* failed = CallSimple(n, s_->frame(size_t(i)));
        if (!failed) return Done(i, ended);
        st = s_->Describe(size_t(i), FromC(failed));
      } else if (st.ok()) {
        if (n.run.kernel && n.run.kernel->spec.may_block && RunElsewhere(i)) return -1;
        st = RunNode<kTraced>(s_, size_t(i), &pending, after);
      }
      if (st.ok() && pending) return -1;
      if (!st.ok()) Fail(std::move(st));
    }
    s_->StopWaiting(size_t(i));
    return Done(i, ended);
  }

  // Runs node i, which may block, on a thread beside those of the step, since it may wait for
  // another node of the step. Returns false if the caller must run it.
  bool RunElsewhere(int32_t i) {
    if (!s_->pool || s_->pool->threads() == 1 || (s_->share && s_->share->threads() == 1)) return false;
    try {
      s_->Blocking([this, i] {
        bool goes_on = false;
        const bool async = p_.nodes[size_t(i)].run.async;
        Status done = async ? Start(size_t(i), &goes_on) : RunNode<kTraced>(s_, size_t(i), &goes_on);
        if (!goes_on) BlockingEnded(size_t(i), std::move(done));
      });
      return true;
    } catch (...) {  // no memory to hand it over
      return false;
    }
  }

  // Starts an asynchronous call from a thread that the step does not wait for. Once the call is in
  // progress, the step may end.
  Status Start(size_t i, bool* goes_on) {
    if (kTraced) s_->trace->Take(i);
    Status s = s_->RunNode(i, goes_on);
    if (kTraced && !*goes_on) s_->trace->Leave(i, false, s.ok());
    return s;
  }

  void BlockingEnded(size_t node, Status st) {
    if (!st.ok()) Fail(std::move(st));
    PushFromOutside(RanEntry(int32_t(node)));
  }

  // Pushes from a thread that does not work for the step. After the push the step may end, unless
  // this call must start its driver.
  void PushFromOutside(int32_t entry) {
    bool start;
    {
      std::lock_guard lock(mu_);
      s_->ready.push_back(entry);
      queued_.fetch_add(1, std::memory_order_release);
      changed_.notify_all();
      start = std::exchange(resting_, false);
    }
    if (start) s_->pool->Start(driver_);
  }

  // Ends node i: counts down its successors.
  int32_t Done(int32_t i, int32_t* ended) {
    const PlanNode& n = p_.nodes[size_t(i)];
    // After a failure the values are kept until the end, because the error message may describe
    // them.
    if (!n.held_in.empty() && !failed_.load(std::memory_order_relaxed)) s_->ReleaseInputs<true>(size_t(i));
    int32_t mine = -1;
    for (int32_t k : n.next) {
      if (p_.pending[size_t(k)] > 1 && std::atomic_ref<int32_t>(s_->counts[size_t(k)]).fetch_sub(1, std::memory_order_acq_rel) != 1) {
        continue;
      }
      if (mine >= 0) Push(mine);
      mine = k;
      if (p_.prioritized) Push(std::exchange(mine, -1));  // others may have precedence
    }
    ++*ended;
    return mine;
  }

  void Push(int32_t i) {
    if (kTraced) s_->trace->Ready(size_t(i));
    {
      std::lock_guard lock(mu_);
      s_->ready.push_back(i);
      queued_.fetch_add(1, std::memory_order_release);
      if (waiting_) changed_.notify_all();
    }
    // Idle workers have gone to sleep. Light work is done before one would be awake.
    if (s_->shapes()->heavy[size_t(i)] && s_->pool && s_->pool->threads() > 1 && !s_->pool->hungry()) s_->pool->Offer(this, 1);
  }

  // Waits while there is nothing to take: spins briefly, then sleeps until an entry is pushed or
  // the last node ends.
  void Await() {
    for (int spin = 0; spin < 2000; ++spin) {
      if (queued_.load(std::memory_order_acquire) > 0 || left_.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    std::optional<ThreadPool::MayBlock> may_block;  // the wait may depend on other tasks
    if (p_.async) may_block.emplace();
    std::unique_lock lock(mu_);
    waiting_ = true;
    changed_.wait(lock, [&] { return !s_->ready.empty() || left_.load(std::memory_order_acquire) == 0; });
    waiting_ = false;
  }

  // Waits for work while other threads work for the step here. Returns false if none does, or the
  // step has ended.
  bool WaitForHelpers() {
    auto idle = [&] { return queued_.load(std::memory_order_acquire) <= 0 && left_.load(std::memory_order_acquire) > 0; };
    for (int spin = 0; idle(); ++spin) {
      if (helpers_.load(std::memory_order_acquire) == 0) return queued_.load(std::memory_order_acquire) > 0;
      if (spin < 2000) {
        Pause();
        continue;
      }
      const int64_t since = kTraced ? s_->trace->Now() : 0;
      std::unique_lock lock(mu_);
      waiting_ = true;
      changed_.wait(lock, [&] { return !idle() || helpers_.load(std::memory_order_acquire) == 0; });
      waiting_ = false;
      if (kTraced) s_->trace->Waited(since);
    }
    return left_.load(std::memory_order_acquire) > 0;
  }

  void HelperLeaves() {
    if (helpers_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::lock_guard lock(mu_);
    if (waiting_) changed_.notify_all();
  }

  // Called if no thread works for the step here and it has not ended. Returns false if there is
  // work again.
  bool Rest() {
    std::lock_guard lock(mu_);
    resting_ = s_->ready.empty();
    return resting_;
  }

  StepState* s_;
  const Plan& p_;
  ThreadPool::Task* driver_ = nullptr;  // NULL: the caller waits until the step ends
  std::atomic<int32_t> helpers_{0};     // threads in Help that may have found work; only with a driver
  bool resting_ = false;                // waits for an event elsewhere; only with a driver
  const bool interruptible_;
  std::atomic<int32_t> left_;  // nodes that have not ended
  std::atomic<int32_t> queued_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;  // guards the ready queue, the status and waiting_
  std::condition_variable changed_;
  bool waiting_ = false;
  Status status_;
};

// A step that no thread waits for; lives until the step ends.
template <bool kTraced>
class StartedStep final : public ThreadPool::Task {
 public:
  StartedStep(StepState* step, Tensor* fetches, StepDone done) : step_(step), fetches_(fetches), done_(std::move(done)), run_(step, this) {}

  void Go() override {
    if (!run_.Drive()) return;
    Status s = FinishStep(step_, run_.TakeStatus(), fetches_);
    StepDone done = std::move(done_);
    delete this;
    done(std::move(s));
  }

 private:
  StepState* const step_;
  Tensor* const fetches_;
  StepDone done_;
  CountedRun<kTraced> run_;
};

}  // namespace

template <bool kTraced>
static Status RunAllInOrder(StepState* step) {
  return RunInOrder<kTraced, false>(step, 0, step->plan().nodes.size());
}

// Runs a plan with batches; concurrently if that has been faster.
template <bool kTraced>
static Status RunAtBestPace(StepState* step) {
  const auto began = std::chrono::steady_clock::now();
  const Pace::Way way = step->paces.now().Next();
  Status s = way == Pace::kSideBySide ? RunBatches<kTraced>(step) : RunAllInOrder<kTraced>(step);
  if (s.ok()) step->paces.now().Took(way, std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  return s;
}

template <bool kTraced>
static Status RunNodes(StepState* step) {
  const Plan& p = step->plan();
  if (p.frames) return RunFrames(step);
  if (p.counted) return CountedRun<kTraced>(step).Run();
  if (!kTraced && step->recordings()) return step->recordings()->RunAll();
  return p.batches.empty() || !step->pool || step->pool->threads() == 1 ? RunAllInOrder<kTraced>(step) : RunAtBestPace<kTraced>(step);
}

static Status BeginStep(StepState* step, const Tensor* feeds) {
  if (step->trace) step->trace->Start(step);
  step->Feed(feeds);
  if (!step->plan().copied_feeds.empty()) RETURN_IF_ERROR(step->CopyFeeds(feeds));
  return StepInterrupted(*step);
}

Status RunStep(StepState* step, const Tensor* feeds, Tensor* fetches) {
  Status s = BeginStep(step, feeds);
  if (s.ok()) s = step->trace ? RunNodes<true>(step) : RunNodes<false>(step);
  return FinishStep(step, std::move(s), fetches);
}

// Returns true if the step may have to wait for an event elsewhere and there is a thread to
// continue it then.
static bool GoesOnLater(const StepState& step) {
  const Plan& p = step.plan();
  return (p.counted || p.frames) && p.async && step.pool && step.pool->HasThreadForTasks();
}

void StartStep(StepState* step, const Tensor* feeds, Tensor* fetches, StepDone done) {
  if (!GoesOnLater(*step)) {
    const ThreadPool::MayBlock may_block;
    Status s = RunStep(step, feeds, fetches);
    return done(std::move(s));
  }
  if (Status s = BeginStep(step, feeds); !s.ok()) return done(FinishStep(step, std::move(s), fetches));
  if (step->plan().frames) {
    StartFrames(step, [step, fetches, done = std::move(done)](Status s) { done(FinishStep(step, std::move(s), fetches)); });
  } else if (step->trace) {
    (new StartedStep<true>(step, fetches, std::move(done)))->Go();
  } else {
    (new StartedStep<false>(step, fetches, std::move(done)))->Go();
  }
}

}  // namespace thalweg
