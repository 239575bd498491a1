#include "framework/runtime/flow/frame_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/base/shown.h"
#include "framework/plan/frame_plan.h"
#include "framework/runtime/flow/frame_call.h"
#include "framework/runtime/flow/token_flow.h"
#include "framework/runtime/pause.h"
#include "framework/runtime/rendezvous.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {
namespace {

struct FrameMemory final : EngineMemory {
  explicit FrameMemory(const Plan& plan) : calls(plan), tokens(*plan.frames) {}
  FrameCalls calls;
  TokenFlow::Memory tokens;
};

// A thread that ends a call hands its outputs on under one lock. Nodes that only route values do
// all their work there; kernels run outside the lock.
class FrameRun final : public ThreadPool::Joint, public FrameCalls::Listener, public TokenFlow::Listener {
 public:
  // driver: calls Drive whenever there is work and no thread drives the step. NULL: the caller
  // waits until the step ends.
  explicit FrameRun(StepState* s, ThreadPool::Task* driver = nullptr) : FrameRun(s, MemoryOf(s), driver) {}
  FrameRun(StepState* s, FrameMemory* memory, ThreadPool::Task* driver)
      : Joint(s->share),
        s_(s),
        p_(s->plan()),
        f_(*s->plan().frames),
        calls_(memory->calls),
        tokens_(s, &calls_, &memory->tokens, this),
        interruptible_(s->cancel || s->deadline),
        driver_(driver) {
    calls_.Begin(s, this);
    if (p_.async) WaitingCalls::Get().NestAs(&calls_, s);
  }

  Status Run() {
    ThreadPool* pool = s_->pool && s_->pool->threads() > 1 ? s_->pool : nullptr;
    if (pool) pool->Offer(this, 0);
    {
      std::unique_lock lock(mu_);
      tokens_.Begin();
      while (!Over()) {
        Work(&lock, false);
        if (!Over()) Await(&lock);
      }
    }
    if (pool) pool->Withdraw(this);
    return TakeStatus();
  }

  // Works while there is something to do, for a run with a driver. Returns true if the run has
  // ended. If it returns false, the driver will be started, possibly before this returns, so the
  // caller must not touch the step.
  bool Drive() {
    for (;;) {
      s_->pool->Offer(this, 0);
      {
        std::unique_lock lock(mu_);
        if (!began_) BeginDriven();
        while (Work(&lock, false) || AwaitHelpers(&lock)) {
        }
      }
      s_->pool->Withdraw(this);
      std::lock_guard lock(mu_);
      if (Over()) return true;
      resting_ = light_.empty() && heavy_.empty();
      if (resting_) return false;
    }
  }

  Status TakeStatus() {
    if (p_.async) WaitingCalls::Get().Unnest(&calls_);
    // Before memory that the devices use is released. StepState::Finish reports failures.
    (void)s_->AwaitDevices(StepState::kDrain);
    std::lock_guard lock(mu_);  // the thread that ended the last call may still hold it
    if (status_.ok()) status_ = tokens_.Check();
    tokens_.Abandon();
    return status_;
  }

  bool Help() override {
    if (offered_.load(std::memory_order_acquire) <= 0) return false;
    std::unique_lock lock(mu_);
    ++helpers_;
    const bool did = Work(&lock, true);
    if (--helpers_ == 0 && waiting_) changed_.notify_all();
    return did;
  }

  // ---- Calls that end later ----
  void Ended(FrameCall* c, Status st) override {
    c->ended = Now();
    const bool fails = c->failed = !st.ok();
    if (fails) {
      std::lock_guard lock(mu_);
      Fail(Describe(c, st));
    }
    if (fails) WaitingCalls::Get().CallAll(&calls_);
    PushFromOutside(Entry{c->node, Entry::kEnded, c->loop, c->iteration, c});
  }
  void Again(FrameCall* c) override { PushFromOutside(Entry{c->node, Entry::kAgain, c->loop, c->iteration, c}); }
  bool Failed() const override { return failed_.load(std::memory_order_acquire); }

 private:
  static FrameMemory* MemoryOf(StepState* s) {
    if (!s->engine) s->engine = std::make_unique<FrameMemory>(s->plan());
    return static_cast<FrameMemory*>(s->engine.get());
  }

  struct Entry {
    enum What : uint8_t { kRun, kDead, kEnded, kAgain, kRan };
    int32_t node = -1;
    What what = kRun;
    LoopRun* loop = nullptr;
    Iteration* iteration = nullptr;
    FrameCall* call = nullptr;  // of an entry whose call has ended or is to run again
  };
  using Lock = std::unique_lock<std::mutex>;

  // Pushes from a thread that does not work for the step. After the push the step may end, unless
  // this call must start its driver.
  void PushFromOutside(const Entry& e) {
    bool start;
    {
      std::lock_guard lock(mu_);
      Push(e);
      start = std::exchange(resting_, false);
    }
    if (start) s_->pool->Start(driver_);
  }

  // The queue. REQUIRES for all: mu_ is held.

  void BeginDriven() {
    began_ = true;
    try {
      tokens_.Begin();
    } catch (...) {  // no memory: nothing new begins
      Fail(Thrown());
    }
  }
  void Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it) override {
    Push({node, dead ? Entry::kDead : Entry::kRun, loop, it, nullptr});
  }

  void Push(const Entry& e) {
    const bool heavy = e.what == Entry::kRun && IsHeavy(e);
    (heavy ? heavy_ : light_).push_back(e);
    if (heavy) offered_.fetch_add(1, std::memory_order_release);
    if (waiting_) changed_.notify_all();
    // The pushing thread takes one entry itself.
    if (heavy && heavy_.size() > 1 && s_->pool && s_->pool->threads() > 1 && !s_->pool->hungry()) s_->pool->Offer(this, 1);
  }

  // Returns true if the entry is worth waking another thread.
  bool IsHeavy(const Entry& e) const {
    constexpr uint64_t kWorth = 64 << 10;  // bytes touched
    const PlanNode& n = p_.nodes[size_t(e.node)];
    if (n.kind != PlanNode::kKernel) return false;
    if (s_->shapes()->heavy[size_t(e.node)]) return true;
    if (!n.dynamic) return false;
    const FramePlan::Node& f = f_.nodes[size_t(e.node)];
    uint64_t bytes = 0;
    for (size_t i = 0; i < f.fixed.size(); ++i) {
      const Tensor& t = e.iteration->tokens[size_t(f.first_token) + i];
      bytes += t ? t.bytes() : 0;
    }
    return bytes >= kWorth;
  }

  bool TakeEntry(Entry* e, bool helps) {
    std::deque<Entry>& from = (helps && !heavy_.empty()) || light_.empty() ? heavy_ : light_;
    if (from.empty()) return false;
    *e = from.front();
    from.pop_front();
    if (&from == &heavy_) offered_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  bool Over() const { return under_way_ == 0 && light_.empty() && heavy_.empty(); }

  // Runs what is ready; *lock is held before and after. Returns false if there was nothing.
  bool Work(Lock* lock, bool helps) {
    bool any = false;
    for (Entry e; TakeEntry(&e, helps);) {
      any = true;
      Do(e, lock);
      if (std::exchange(call_up_, false)) CallUp(lock);
      if (helps && s_->pool->outranks(priority())) break;
    }
    if (any && waiting_ && Over()) changed_.notify_all();
    return any;
  }

  void Do(const Entry& e, Lock* lock) {
    try {
      if (e.what == Entry::kEnded) return EndCall(e.call, lock);
      if (e.what == Entry::kRan) return CallOver(e.call);
      if (e.what == Entry::kAgain) return RunCall(e.call, lock);
      if (failed_.load(std::memory_order_relaxed)) return;  // calls in progress end, but nothing new begins
      if (e.what == Entry::kDead && f_.nodes[size_t(e.node)].sends) SendDead(e, lock);
      if (e.what == Entry::kDead || p_.nodes[size_t(e.node)].kind == PlanNode::kFlow) {
        return tokens_.Decide(e.node, e.what == Entry::kDead, e.loop, e.iteration);
      }
      FrameCall* c = calls_.Take(e.node);
      c->loop = e.loop;
      c->iteration = e.iteration;
      const FramePlan::Node& n = f_.nodes[size_t(e.node)];
      for (size_t i = 0; i < n.fixed.size(); ++i) {
        if (n.fixed[i] >= 0) {
          c->in(i).view = s_->slot(n.fixed[i]).view;
        } else {
          c->in(i).Hold(std::move(e.iteration->tokens[size_t(n.first_token) + i]));
        }
      }
      ++under_way_;
      RunCall(c, lock);
    } catch (...) {  // no memory
      if (!lock->owns_lock()) lock->lock();
      Fail(Thrown());
    }
  }

  // Tells the receiver of the value in another process that the value is dead.
  void SendDead(const Entry& e, Lock* lock) {
    const Node& node = *p_.nodes[size_t(e.node)].run.node;
    const std::string iteration = IterationNumbers(*e.loop, *e.iteration);
    ++under_way_;
    lock->unlock();
    Status s;
    try {
      if (s_->rendezvous) s = s_->rendezvous->Send(node.FindAttr("tensor_name")->strings()[0], iteration, Tensor());
    } catch (...) {  // no memory
      s = Thrown();
    }
    lock->lock();
    --under_way_;
    if (!s.ok()) Fail(OfNode(node, Prefix(s, node.title() + ":")));
  }

  void Await(Lock* lock) {
    std::optional<ThreadPool::MayBlock> may_block;  // the wait may depend on other tasks
    if (p_.async && !driver_) may_block.emplace();
    const int64_t since = s_->trace ? s_->trace->Now() : 0;
    waiting_ = true;
    changed_.wait(*lock, [&] { return !light_.empty() || !heavy_.empty() || under_way_ == 0 || (driver_ && helpers_ == 0); });
    waiting_ = false;
    if (s_->trace) s_->trace->Waited(since);
  }

  // Waits for work while other threads work for the step here. Returns false if none does, or the
  // step has ended.
  bool AwaitHelpers(Lock* lock) {
    if (helpers_ == 0 || Over()) return false;
    Await(lock);
    return true;
  }

  void Fail(Status s) override {
    if (status_.ok()) status_ = std::move(s);
    if (failed_.exchange(true, std::memory_order_acq_rel)) return;
    call_up_ = true;
    if (s_->rendezvous) s_->rendezvous->StepFailed(status_);
  }

  // Wakes calls that wait at resources, after a failure. The steps are told under WaitingCalls'
  // lock, so mu_ must not be held.
  void CallUp(Lock* lock) {
    ++under_way_;
    lock->unlock();
    WaitingCalls::Get().CallAll(&calls_);
    lock->lock();
    --under_way_;
  }

  // ---- Kernels ----

  int64_t Now() const { return s_->trace ? s_->trace->Now() : 0; }

  void RunCall(FrameCall* c, Lock* lock) {
    const bool again = c->frame.waits;
    lock->unlock();
    Status st;
    bool pending = false;
    if (again)
      st = failed_.load() ? Status(absl::StatusCode::kCancelled, "another node of the step has failed") : WaitingCalls::Get().Ended(calls_);
    if (!again && interruptible_) st = StepInterrupted(calls_);
    if (!st.ok()) {
      calls_.StopWaiting(c);
    } else if (!again && c->frame.run->kernel && c->frame.run->kernel->spec.may_block && RunElsewhere(c)) {
      lock->lock();
      return;
    } else {
      if (s_->trace) NoteBegin(c, again);
      st = calls_.Run(c, &pending);
      if (st.ok() && pending) {  // it may have ended by now, and the call may be reused
        lock->lock();
        return;
      }
      c->left = c->ended = Now();
    }
    c->failed = !st.ok();
    if (!st.ok()) Stop(Describe(c, st));
    lock->lock();
    CallOver(c);
  }

  // Records a failure and wakes waiting calls. REQUIRES: mu_ is not held.
  void Stop(Status s) {
    {
      std::lock_guard lock(mu_);
      Fail(std::move(s));
    }
    WaitingCalls::Get().CallAll(&calls_);
  }

  Status Describe(FrameCall* c, const Status& s) const noexcept {
    try {
      const std::string where = tokens_.Where(*c->loop, *c->iteration);
      return calls_.Describe(c, s, where.empty() ? where : StrCat("in ", where));
    } catch (...) {  // no memory for the description
      return Thrown();
    }
  }

  // Runs a kernel that may block on a thread of its own, since it may wait for another node of the
  // step. Returns false if the caller must run it.
  bool RunElsewhere(FrameCall* c) {
    if (!s_->pool || s_->pool->threads() == 1 || (s_->share && s_->share->threads() == 1)) return false;
    try {
      s_->Blocking([this, c] {
        if (s_->trace) NoteBegin(c, false);
        bool pending = false;
        Status st = calls_.Run(c, &pending);
        if (st.ok() && pending) return;
        c->left = c->ended = Now();
        c->failed = !st.ok();
        if (!st.ok()) Stop(Describe(c, st));
        PushFromOutside({c->node, Entry::kRan, c->loop, c->iteration, c});
      });
      return true;
    } catch (...) {  // no memory to hand it over
      return false;
    }
  }

  // Finishes an asynchronous call, on a thread of the step. The end may wake other calls, whose
  // steps take their locks, so mu_ is released meanwhile.
  void EndCall(FrameCall* c, Lock* lock) {
    Status st;
    lock->unlock();
    try {
      if (!c->failed) st = calls_.End(c);
    } catch (...) {
      st = Thrown();
    }
    calls_.StopWaiting(c);
    lock->lock();
    if (!st.ok()) {
      c->failed = true;
      Fail(Describe(c, st));
    }
    CallOver(c);
  }

  void CallOver(FrameCall* c) {
    --under_way_;
    std::vector<Tensor>& outputs = tokens_.outputs();
    outputs.resize(c->frame.c.n_out);
    const bool failed = failed_.load(std::memory_order_relaxed), dead = c->dead;
    for (uint32_t o = 0; o < c->frame.c.n_out && !failed; ++o) {
      Slot& out = c->out(o);
      outputs[o] = out.held ? std::move(out.held) : Tensor::Share(out.view.tensor);
    }
    if (s_->trace) Note(*c);
    const int32_t node = c->node;
    LoopRun* loop = c->loop;
    Iteration* it = c->iteration;
    calls_.GiveBack(c, outputs);  // inputs are released first, so that an output that shares memory with one becomes its only owner
    if (!failed) tokens_.HandOn(node, dead, loop, it);
  }

  void NoteBegin(FrameCall* c, bool again) {
    if (again) s_->trace->PutOff(size_t(c->node), c->began);
    c->began = Now();
    c->thread = std::this_thread::get_id();
    if (again) return;
    for (uint32_t k = 0; k < c->frame.c.n_in; ++k) AddDims(c->in(k).view.dtype, c->in(k).view.dims, c->in(k).view.rank, &c->dims);
    c->dims.push_back(kOutputsFollow);
  }

  // REQUIRES: mu_ is held.
  void Note(FrameCall& c) {
    StepTrace::Run run;
    run.node = size_t(c.node);
    run.start = c.began;
    run.left = c.left;
    run.end = std::max(c.ended, c.left);
    run.frame = c.loop->frame;
    run.loop = c.loop->serial;
    run.iteration = c.iteration->number;
    for (uint32_t o = 0; o < c.frame.c.n_out; ++o) {
      const tw_view& out = c.out(o).view;
      run.bytes += out.bytes;
      const Tensor& live = tokens_.outputs()[o];
      if (live) AddDims(out.dtype, live.view().dims, live.rank(), &c.dims);
    }
    run.dims = std::move(c.dims);
    run.allocated = c.allocated;
    run.thread = c.thread;
    run.failed = c.failed;
    s_->trace->Ran(std::move(run));
  }

  StepState* s_;
  const Plan& p_;
  const FramePlan& f_;
  FrameCalls& calls_;
  TokenFlow tokens_;  // guarded by mu_
  const bool interruptible_;
  ThreadPool::Task* const driver_;
  std::atomic<bool> failed_{false};
  std::atomic<int32_t> offered_{0};  // number of entries in heavy_
  std::mutex mu_;                    // guards everything below, iterations, counts and tokens
  std::condition_variable changed_;
  std::deque<Entry> light_, heavy_;
  int32_t under_way_ = 0;  // kernel calls in progress
  bool waiting_ = false;
  int32_t helpers_ = 0;                   // threads in Help
  bool call_up_ = false;                  // the step has failed, and calls that wait at resources were not woken yet
  bool began_ = false, resting_ = false;  // only with a driver; resting_: waits for an event elsewhere
  Status status_;
};

class StartedFrames final : public ThreadPool::Task {
 public:
  StartedFrames(StepState* step, std::function<void(Status)> over) : over_(std::move(over)), run_(step, this) {}

  void Go() override {
    if (!run_.Drive()) return;
    Status s = run_.TakeStatus();
    const std::function<void(Status)> over = std::move(over_);
    delete this;
    over(std::move(s));
  }

 private:
  std::function<void(Status)> over_;
  FrameRun run_;
};

}  // namespace

Status RunFrames(StepState* step) { return FrameRun(step).Run(); }

void StartFrames(StepState* step, std::function<void(Status)> over) { (new StartedFrames(step, std::move(over)))->Go(); }

}  // namespace thalweg
