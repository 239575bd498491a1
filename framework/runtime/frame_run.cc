#include "framework/runtime/frame_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/base/shown.h"
#include "framework/plan/frame_plan.h"
#include "framework/runtime/frame_call.h"
#include "framework/runtime/loop_run.h"
#include "framework/runtime/pause.h"
#include "framework/runtime/rendezvous.h"
#include "framework/runtime/thread_pool.h"
#include "framework/runtime/waiting_calls.h"

namespace thalweg {
namespace {

struct FrameMemory final : EngineMemory {
  explicit FrameMemory(const Plan& plan) : calls(plan), loops(*plan.frames) {}
  FrameCalls calls;
  Loops loops;
  std::vector<Tensor> indices;  // what merges say of the input that came
};

// Who is over hands its outputs on under one lock; nodes that only decide do all they do there, kernels run outside of it.
class FrameRun final : public ThreadPool::Joint, public FrameCalls::Listener {
 public:
  // driver: NULL: the caller waits until the step is over; else it calls Drive whenever there is something to do and nobody drives it.
  explicit FrameRun(StepState* s, ThreadPool::Task* driver = nullptr) : FrameRun(s, MemoryOf(s), driver) {}
  FrameRun(StepState* s, FrameMemory* memory, ThreadPool::Task* driver)
      : Joint(s->share),
        s_(s),
        p_(s->plan()),
        f_(*s->plan().frames),
        calls_(memory->calls),
        loops_(memory->loops),
        memory_(*memory),
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
      BeginRoot();
      while (!Over()) {
        Work(&lock, false);
        if (!Over()) Await(&lock);
      }
    }
    if (pool) pool->Withdraw(this);
    return TakeStatus();
  }

  // Of a run with a driver: works as long as there is something to do; true: the run is over. False: its driver will be started, maybe
  // before this returns, and nothing of the step may be looked at.
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
    s_->DrainQueues();          // before memory that they use is let go
    std::lock_guard lock(mu_);  // whoever ended the last call may still hold it
    if (status_.ok()) status_ = Check();
    if (root_) loops_.Abandon(root_);
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
    FrameCall* call = nullptr;  // of those that ended, or are to be run again
  };
  using Lock = std::unique_lock<std::mutex>;

  // From a thread that does not work for the step. Once it is pushed the step may be over, unless it is for us to start its driver.
  void PushFromOutside(const Entry& e) {
    bool start;
    {
      std::lock_guard lock(mu_);
      Push(e);
      start = std::exchange(resting_, false);
    }
    if (start) s_->pool->Start(driver_);
  }

  // ---- The queue. REQUIRES of all: mu_ ----

  void BeginDriven() {
    began_ = true;
    try {
      BeginRoot();
    } catch (...) {  // no memory; nothing new begins
      Fail(Thrown());
    }
  }
  void BeginRoot() {
    root_ = loops_.Begin(0, nullptr, nullptr);
    for (int32_t i : f_.roots) Ready(i, false, root_, root_->At(0));
  }

  static constexpr int32_t kWasReady = -(1 << 30);  // a count whose node has been queued

  void Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
    ++it->ops;
    it->counts[size_t(f_.nodes[size_t(node)].index)].pending = kWasReady;
    Push({node, dead ? Entry::kDead : Entry::kRun, loop, it, nullptr});
  }

  void Push(const Entry& e) {
    const bool heavy = e.what == Entry::kRun && IsHeavy(e);
    (heavy ? heavy_ : light_).push_back(e);
    if (heavy) offered_.fetch_add(1, std::memory_order_release);
    if (waiting_) changed_.notify_all();
    // The one who pushes takes one itself.
    if (heavy && heavy_.size() > 1 && s_->pool && s_->pool->threads() > 1 && !s_->pool->hungry()) s_->pool->Offer(this, 1);
  }

  // Worth another thread's coming.
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

  // Runs what is ready; *lock is held before and after. False: there was nothing.
  bool Work(Lock* lock, bool helps) {
    bool any = false;
    for (Entry e; TakeEntry(&e, helps);) {
      any = true;
      Do(e, lock);
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
      if (failed_.load(std::memory_order_relaxed)) return;  // what is under way ends, nothing new begins
      if (e.what == Entry::kDead && f_.nodes[size_t(e.node)].sends) SendDead(e, lock);
      if (e.what == Entry::kDead || p_.nodes[size_t(e.node)].kind == PlanNode::kFlow) return Decide(e);
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

  // Whoever waits for the value in another process hears that it does not come.
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
    std::optional<ThreadPool::MayBlock> may_block;  // for what others do
    if (p_.async && !driver_) may_block.emplace();
    const int64_t since = s_->trace ? s_->trace->Now() : 0;
    waiting_ = true;
    changed_.wait(*lock, [&] { return !light_.empty() || !heavy_.empty() || under_way_ == 0 || (driver_ && helpers_ == 0); });
    waiting_ = false;
    if (s_->trace) s_->trace->Waited(since);
  }

  // Nothing to take: waits while others work for the step here. False: nobody does, or it is over.
  bool AwaitHelpers(Lock* lock) {
    if (helpers_ == 0 || Over()) return false;
    Await(lock);
    return true;
  }

  void Fail(Status s) {
    if (status_.ok()) status_ = std::move(s);
    if (!failed_.exchange(true, std::memory_order_acq_rel) && s_->rendezvous) s_->rendezvous->StepFailed(status_);
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
      if (st.ok() && pending) {  // it may be over by now, and the call another's
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

  // Not under mu_.
  void Stop(Status s) {
    {
      std::lock_guard lock(mu_);
      Fail(std::move(s));
    }
    WaitingCalls::Get().CallAll(&calls_);
  }

  Status Describe(FrameCall* c, const Status& s) const noexcept {
    try {
      const std::string where = loops_.Where(*c->loop, *c->iteration);
      return calls_.Describe(c, s, where.empty() ? where : StrCat("in ", where));
    } catch (...) {  // no memory for the story
      return Thrown();
    }
  }

  // The kernel may block: on a thread of its own, since it may wait for what another node of the step does. False: it is for the caller.
  bool RunElsewhere(FrameCall* c) {
    if (!s_->pool || s_->pool->threads() == 1 || (s_->share && s_->share->threads() == 1)) return false;
    try {
      s_->pool->Blocking([this, c] {
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

  // Of an asynchronous call, on a thread of the step. Its end may call up others that wait, whose steps take their locks: not under mu_.
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
    outputs_.resize(c->frame.c.n_out);
    const bool failed = failed_.load(std::memory_order_relaxed), dead = c->dead;
    for (uint32_t o = 0; o < c->frame.c.n_out && !failed; ++o) {
      Slot& out = c->out(o);
      outputs_[o] = out.held ? std::move(out.held) : Tensor::Share(out.view.tensor);
    }
    if (s_->trace) Note(*c);
    const int32_t node = c->node;
    LoopRun* loop = c->loop;
    Iteration* it = c->iteration;
    calls_.GiveBack(c, outputs_);  // the inputs go first: what an output shares with one is its own then
    if (!failed) HandOn(node, dead, loop, it);
  }

  void NoteBegin(FrameCall* c, bool again) {
    if (again) s_->trace->PutOff(size_t(c->node), c->began);
    c->began = Now();
    c->thread = std::this_thread::get_id();
    if (again) return;
    for (uint32_t k = 0; k < c->frame.c.n_in; ++k) AddDims(c->in(k).view.dtype, c->in(k).view.dims, c->in(k).view.rank, &c->dims);
    c->dims.push_back(kOutputsFollow);
  }

  // REQUIRES: mu_.
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
      if (outputs_[o]) AddDims(out.dtype, outputs_[o].view().dims, outputs_[o].rank(), &c.dims);
    }
    run.dims = std::move(c.dims);
    run.allocated = c.allocated;
    run.thread = c.thread;
    run.failed = c.failed;
    s_->trace->Ran(std::move(run));
  }

  // ---- Control flow. REQUIRES of all: mu_ ----

  // Inputs of a node that decides.
  Tensor TakeInput(const FramePlan::Node& n, size_t i, Iteration* it) {
    if (n.fixed[i] >= 0) return Tensor::Share(s_->slot(n.fixed[i]).view.tensor);
    return std::move(it->tokens[size_t(n.first_token) + i]);
  }

  void Decide(const Entry& e) {
    const FramePlan::Node& n = f_.nodes[size_t(e.node)];
    outputs_.clear();
    outputs_.resize(n.next.size());
    if (e.what == Entry::kDead) {
      for (size_t i = 0; i < n.fixed.size(); ++i) calls_.LetGo(std::move(e.iteration->tokens[size_t(n.first_token) + i]));
    } else if (n.constant) {
      for (size_t o = 0; o < outputs_.size(); ++o) {
        outputs_[o] = Tensor::Share(s_->slot(p_.nodes[size_t(e.node)].out[o]).view.tensor);
      }
    } else if (n.flow == Flow::kSwitch) {
      const Tensor pred = TakeInput(n, 1, e.iteration);
      if (pred.rank() != 0) return Fail(NoScalar(e, "pred", pred));
      outputs_[*pred.as<bool>() ? 1 : 0] = TakeInput(n, 0, e.iteration);
    } else if (n.flow == Flow::kMerge) {
      Choose(n, e.iteration);
    } else if (n.flow != Flow::kControlTrigger) {
      outputs_[0] = TakeInput(n, 0, e.iteration);
      if (n.flow == Flow::kLoopCond && outputs_[0].rank() != 0) return Fail(NoScalar(e, "input", outputs_[0]));
    }
    HandOn(e.node, e.what == Entry::kDead, e.loop, e.iteration);
  }

  Status NoScalar(const Entry& e, std::string_view input, const Tensor& value) const {
    const PlanNode& n = p_.nodes[size_t(e.node)];
    const std::string where = loops_.Where(*e.loop, *e.iteration);
    return OfNode(*n.run.node, InvalidArgument(n.title, " ", input, " must be a scalar, but is ", value.shape().text(),
                                               where.empty() ? "" : " in ", where));
  }

  void Choose(const FramePlan::Node& n, Iteration* it) {
    for (size_t i = 0; i < n.fixed.size(); ++i) {
      Tensor& t = it->tokens[size_t(n.first_token) + i];
      if (!t) continue;
      outputs_[0] = std::move(t);
      if (!n.next[1].empty() || n.fetched[1] >= 0) outputs_[1] = IndexTensor(i);
      return;
    }
  }

  Tensor IndexTensor(size_t i) {
    std::vector<Tensor>& all = memory_.indices;
    while (all.size() <= i) {
      auto t = Tensor::Make(TW_INT32, nullptr, 0);
      if (!t.ok()) throw std::bad_alloc();
      *t->as<int32_t>() = int32_t(all.size());
      all.push_back(*std::move(t));
    }
    return all[i];
  }

  // The node is over: outputs_ are its outputs, empty where dead.
  void HandOn(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
    const FramePlan::Node& n = f_.nodes[size_t(node)];
    switch (n.flow) {
      case Flow::kEnter: HandIn(node, dead, loop, it); break;
      case Flow::kExit: HandOut(node, dead, loop, it); break;
      case Flow::kNextIteration:
        if (!dead) HandRound(node, loop, it);
        break;
      default: Deliver(n, dead, loop, it);
    }
    if (--it->ops == 0) EndWhatIsOver(loop, it);
  }

  void HandIn(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
    const FramePlan::Node& n = f_.nodes[size_t(node)];
    auto inner = std::find_if(it->inner.begin(), it->inner.end(), [&](const LoopRun* l) { return l->frame == n.into; });
    LoopRun* into = inner != it->inner.end() ? *inner : loops_.Begin(n.into, loop, it);
    if (n.invariant) {
      into->invariants.emplace_back(node, outputs_[0]);
      for (int64_t k = into->first; k <= into->last; ++k) {
        if (Iteration* each = into->At(k)) DeliverOne(n, dead, outputs_[0], into, each);
      }
    } else {
      Deliver(n, dead, into, into->At(0));
    }
    --into->enters_left;
    if (into->enters_left == 0 && into->At(0)->ops == 0) EndWhatIsOver(into, into->At(0));
  }

  // Dead is what leaves if it does so in no iteration, and that only the last one tells.
  void HandOut(int32_t node, bool dead, LoopRun* loop, Iteration* it) {
    const bool before = std::find(loop->left.begin(), loop->left.end(), node) != loop->left.end();
    if (dead) {
      if (!before && it->number == loop->last) loop->dead_exits.push_back(node);
      return;
    }
    const Node& exit = *p_.nodes[size_t(node)].run.node;
    if (before) {
      return Fail(OfNode(exit, InvalidArgument(exit.title(), ": it leaves its frame in two iterations, the second time in ",
                                               loops_.Where(*loop, *it), "; let it out of a Switch that ends the loop")));
    }
    loop->left.push_back(node);
    Deliver(f_.nodes[size_t(node)], false, loop->parent, loop->within);
  }

  void HandRound(int32_t node, LoopRun* loop, Iteration* it) {
    if (interruptible_) {
      if (Status s = StepInterrupted(calls_); !s.ok()) return Fail(std::move(s));
    }
    if (it->number < loop->last) return Deliver(f_.nodes[size_t(node)], false, loop, loop->At(it->number + 1));
    if (loop->under_way >= f_.frames[size_t(loop->frame)].parallel) {
      loop->deferred.emplace_back(node, std::move(outputs_[0]));
      return;
    }
    Tensor value = std::move(outputs_[0]);
    Iteration* next = StartIteration(loop);
    outputs_.resize(1);
    outputs_[0] = std::move(value);
    Deliver(f_.nodes[size_t(node)], false, loop, next);
  }

  Iteration* StartIteration(LoopRun* loop) {
    Iteration* it = loops_.AddIteration(loop);
    loop->dead_exits.clear();
    auto deferred = std::move(loop->deferred);
    loop->deferred.clear();
    for (auto& [node, value] : deferred) DeliverOne(f_.nodes[size_t(node)], false, std::move(value), loop, it);
    for (const auto& [node, value] : loop->invariants) DeliverOne(f_.nodes[size_t(node)], !value, value, loop, it);
    return it;
  }

  // The only output of a node.
  void DeliverOne(const FramePlan::Node& n, bool dead, Tensor value, LoopRun* loop, Iteration* it) {
    DeliverTo(n.next[0], std::move(value), n.flow == Flow::kEnter, loop, it);
    for (const FramePlan::Target& t : n.then) Arrive(t, !dead, nullptr, false, loop, it);
  }

  void Deliver(const FramePlan::Node& n, bool dead, LoopRun* loop, Iteration* it) {
    for (size_t o = 0; o < n.next.size(); ++o) {
      if (n.fetched[o] >= 0 && outputs_[o]) s_->slot(n.fetched[o]).Hold(outputs_[o]);
      if (n.fetched[o] >= 0 && !outputs_[o]) dead_fetches_.push_back(int32_t(&n - f_.nodes.data()));
      DeliverTo(n.next[o], std::move(outputs_[o]), n.flow == Flow::kEnter, loop, it);
    }
    for (const FramePlan::Target& t : n.then) Arrive(t, !dead, nullptr, false, loop, it);
  }

  // An output, empty where it is dead. The last reader gets it for itself.
  void DeliverTo(const std::vector<FramePlan::Target>& targets, Tensor value, bool enters, LoopRun* loop, Iteration* it) {
    const bool live = bool(value);
    if (targets.empty()) return calls_.LetGo(std::move(value));
    for (size_t k = 0; k < targets.size(); ++k) {
      Tensor mine = k + 1 == targets.size() ? std::move(value) : value;
      Arrive(targets[k], live, &mine, enters, loop, it);
    }
  }

  // One input of a node has come, or turned out dead. enters: from an Enter.
  void Arrive(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it) {
    const FramePlan::Node& n = f_.nodes[size_t(t.node)];
    FramePlan::Count& c = it->counts[size_t(n.index)];
    if (n.flow == Flow::kMerge) return ArriveAtMerge(t, live, value, enters, loop, it);
    const int32_t inputs = f_.frames[size_t(n.frame)].counts[size_t(n.index)].pending;
    if (c.pending == inputs) ++it->waiting;
    if (!live) ++c.dead;
    if (live && t.input >= 0) it->tokens[size_t(n.first_token + t.input)] = std::move(*value);
    if (--c.pending != 0) return;
    --it->waiting;
    Ready(t.node, c.dead > 0 && n.flow != Flow::kControlTrigger, loop, it);
  }

  // It waits for its control inputs, alive or dead, and for one input that is alive, or all of them dead. What enters a loop dead is the
  // only input of the first iteration.
  void ArriveAtMerge(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it) {
    const FramePlan::Node& n = f_.nodes[size_t(t.node)];
    FramePlan::Count& c = it->counts[size_t(n.index)];
    if (t.input < 0) {
      c.pending -= 2;
    } else if (live) {
      if (!(c.pending & 1)) return calls_.LetGo(std::move(*value));  // another came before
      it->tokens[size_t(n.first_token + t.input)] = std::move(*value);
      c.pending &= ~1;
    } else {
      c.dead = enters ? int32_t(n.fixed.size()) : c.dead + 1;
    }
    if (c.pending == 0) return Ready(t.node, false, loop, it);
    if (c.pending == 1 && c.dead >= int32_t(n.fixed.size())) Ready(t.node, true, loop, it);
  }

  bool IsOver(const LoopRun& loop, const Iteration& it) const {
    if (it.ops > 0 || !it.inner.empty()) return false;
    return it.number == 0 ? loop.enters_left == 0 : !loop.At(it.number - 1);
  }

  // What came for nodes that do not run any more.
  void LetGo(Iteration* it) {
    for (Tensor& t : it->tokens) calls_.LetGo(std::move(t));
  }

  // Nothing of the iteration is under way: it may be over, and those behind it, and so the loop, and the iteration that it is in.
  void EndWhatIsOver(LoopRun* loop, Iteration* it) {
    while (loop->parent) {
      for (int64_t k = it->number; k <= loop->last; ++k) {
        Iteration* next = loop->At(k);
        if (!IsOver(*loop, *next)) break;
        if (next->waiting > 0) NoteWaiting(*loop, *next);
        if (calls_.has_queues()) LetGo(next);
        loops_.EndIteration(loop, next);
        if (!loop->deferred.empty()) StartIteration(loop);
      }
      if (loop->enters_left > 0 || loop->under_way > 0) return;
      LoopRun* parent = loop->parent;
      it = loop->within;
      const std::vector<int32_t> dead_exits = std::move(loop->dead_exits);
      for (auto& [node, value] : loop->invariants) calls_.LetGo(std::move(value));
      loops_.End(loop);
      for (int32_t exit : dead_exits) {
        outputs_.clear();
        outputs_.resize(1);
        Deliver(f_.nodes[size_t(exit)], true, parent, it);
      }
      loop = parent;
      if (it->ops > 0) return;
    }
  }

  // ---- The end ----

  // What is fetched is there, and what was asked to run has run or is dead.
  Status Check() {
    for (size_t i = 0; i < f_.nodes.size(); ++i) {
      const FramePlan::Node& n = f_.nodes[i];
      bool there = !n.watched || n.frame != 0 || root_->At(0)->counts[size_t(n.index)].pending == kWasReady;
      for (int32_t v : n.fetched) there = there && (v < 0 || s_->slot(v).view.tensor);
      if (!there) return NotThere(p_.nodes[i], std::find(dead_fetches_.begin(), dead_fetches_.end(), int32_t(i)) != dead_fetches_.end());
    }
    return Status();
  }

  Status NotThere(const PlanNode& n, bool dead) {
    const Node& node = *n.run.node;
    if (dead) {
      return OfNode(node,
                    InvalidArgument(node.title(), ": it is fetched, but dead: the branch that it comes from was not taken; fetch what a ",
                                    "Merge makes of both branches"));
    }
    ListWaiting(*root_);
    return OfNode(node, InvalidArgument(node.title(), ": it was never reached, and nothing is under way any more; ", stuck_,
                                        stuck_ == 1 ? " node waits" : " nodes wait", " for inputs that do not come",
                                        stuck_names_.empty() ? "" : ": ", stuck_names_));
  }

  void ListWaiting(const LoopRun& loop) {
    for (int64_t k = loop.first; k <= loop.last; ++k) {
      const Iteration* it = loop.At(k);
      if (!it) continue;
      if (it->waiting > 0) NoteWaiting(loop, *it);
      for (const LoopRun* inner : it->inner) ListWaiting(*inner);
    }
  }

  // Nodes of which some inputs came and others did not.
  void NoteWaiting(const LoopRun& loop, const Iteration& it) {
    constexpr int32_t kShown = 4;
    const FramePlan::Frame& frame = f_.frames[size_t(loop.frame)];
    stuck_ += it.waiting;
    for (size_t i = 0; i < frame.nodes.size() && named_ < kShown; ++i) {
      if (it.counts[i].pending <= 0 || it.counts[i].pending == frame.counts[i].pending) continue;
      ++named_;
      const std::string where = loops_.Where(loop, it);
      stuck_names_ += StrCat(stuck_names_.empty() ? "'" : ", '", Shown(p_.nodes[size_t(frame.nodes[i])].run.node->name()), "'",
                             where.empty() ? "" : StrCat(" in ", where));
    }
  }

  StepState* s_;
  const Plan& p_;
  const FramePlan& f_;
  FrameCalls& calls_;
  Loops& loops_;
  FrameMemory& memory_;
  const bool interruptible_;
  ThreadPool::Task* const driver_;
  LoopRun* root_ = nullptr;
  std::atomic<bool> failed_{false};
  std::atomic<int32_t> offered_{0};  // entries of heavy_
  std::mutex mu_;                    // all that follows, iterations, counts and tokens
  std::condition_variable changed_;
  std::deque<Entry> light_, heavy_;
  std::vector<Tensor> outputs_;  // of the node that is over
  int32_t under_way_ = 0;        // calls of kernels
  bool waiting_ = false;
  int32_t helpers_ = 0;                   // threads in Help
  bool began_ = false, resting_ = false;  // of a run with a driver; resting: until something happens elsewhere
  Status status_;
  std::vector<int32_t> dead_fetches_;  // nodes
  int32_t stuck_ = 0, named_ = 0;      // nodes that wait in iterations that are over
  std::string stuck_names_;
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
