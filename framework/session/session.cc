#include "framework/session/session.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <thread>
#include <unordered_map>

#include "framework/base/shown.h"
#include "framework/runtime/devices/give_memory_back.h"
#include "framework/runtime/runtime_of.h"
#include "framework/runtime/state/container.h"
#include "framework/runtime/step/evaluate.h"
#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "framework/session/profilers.h"

namespace thalweg {
namespace {

// A function that runs once, as a task of the pool.
template <class F>
class TaskOf final : public ThreadPool::Task {
 public:
  explicit TaskOf(F f) : f_(std::move(f)) {}
  void Go() override {
    F f = std::move(f_);
    delete this;
    f();
  }

 private:
  F f_;
};

// A group option from the environment, as `thalweg launch` sets it; NULL in a process with more rights
// than its starter.
Status NumberFromEnvironment(const char* variable, uint32_t* out) {
  const char* text = secure_getenv(variable);
  if (!text) return InvalidArgument("THALWEG_COLLECTIVE_STORE is set, but ", variable, " is not");
  const std::string_view digits = text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
  if (error == std::errc() && end == digits.data() + digits.size()) return Status();
  return InvalidArgument("environment variable ", variable, " is '", Shown(digits), "'; it must be a whole number");
}

// Returns NULL if neither the options nor the environment make the session a member.
StatusOr<std::unique_ptr<Groups>> MakeGroups(const SessionOptions& options, Runtime* runtime) {
  GroupOptions g{options.collective_engine, options.collective_store, options.collective_rank, options.collective_members,
                 int64_t{options.collective_timeout_ms} * 1'000'000};
  const char* store = g.store.empty() ? secure_getenv("THALWEG_COLLECTIVE_STORE") : nullptr;
  if (store && *store) {
    g.store = store;
    RETURN_IF_ERROR(NumberFromEnvironment("THALWEG_COLLECTIVE_RANK", &g.rank));
    RETURN_IF_ERROR(NumberFromEnvironment("THALWEG_COLLECTIVE_MEMBERS", &g.members));
  }
  if (g.store.empty()) return nullptr;
  const char* engine = g.engine.empty() ? secure_getenv("THALWEG_COLLECTIVE_ENGINE") : nullptr;
  if (engine) g.engine = engine;
  if (g.rank >= g.members) {
    return InvalidArgument("collective_rank is ", g.rank, ", and collective_members ", g.members, "; ranks count from 0");
  }
  return std::make_unique<Groups>(runtime, std::move(g));
}

}  // namespace

Session::Session(std::shared_ptr<Graph> graph, const SessionOptions& options)
    : graph_(std::move(graph)), options_(options), check_feeds_(options.check_feeds && options.check_values != "off") {
  if (options_.container.empty()) options_.container = graph_->container();
  swapping_.above = options_.swap_memory_above;
  timeout_ns_ = int64_t{options_.step_timeout_ms} * 1'000'000;
  if (options_.max_async_runs == 0) options_.max_async_runs = 2 * RuntimeOf(*graph_).pool().threads();
  ThreadPool& pool = RuntimeOf(*graph_).pool();
  threads_ = options_.threads ? std::min(options_.threads, pool.threads()) : pool.threads();
  pool_ = threads_ == 1 ? nullptr : &pool;
}

StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph, const SessionOptions& options, MemoryBudget* account) {
  RETURN_IF_ERROR(RuntimeOf(*graph).host_device().status());
  ASSIGN_OR_RETURN(auto limits, SessionLimits::Create(options, &RuntimeOf(*graph), account));
  ASSIGN_OR_RETURN(auto groups, MakeGroups(options, &RuntimeOf(*graph)));
  ASSIGN_OR_RETURN(auto profilers, Profilers::Start(&RuntimeOf(*graph), options.profilers));
  std::unique_ptr<Session> session(new Session(std::move(graph), options));
  session->limits_ = std::move(limits);
  session->groups_ = std::move(groups);
  session->profilers_ = std::move(profilers);
  if (options.placement != "simple") session->placements_ = std::make_unique<PlacementStore>(options, &session->runtime());
  return session;
}

Session::~Session() {
  // Close never returns an error; it waits for running steps.
  (void)Close();
  if (placements_) placements_->SaveOrSay();
  limits_->StopReclaiming();
  groups_.reset();
  callables_.clear();
  functions_.clear();
  for (auto& [key, state] : states_) DestroyState(*key.kernel, state);
  once_.clear();
  GiveMemoryBack(runtime());
}

void Session::DropIdleStates() {
  std::vector<std::unique_ptr<StepState>> idle;
  std::lock_guard lock(all_mu_);
  for (Callable* c : all_) c->plans_.TakeIdle(&idle);
}

SessionReport Session::Report() {
  SessionReport r;
  r.steps = steps();
  r.swapped_out_bytes = swapping_.out_bytes.load(std::memory_order_relaxed);
  r.swapped_in_bytes = swapping_.in_bytes.load(std::memory_order_relaxed);
  r.block_bytes = blocks_.bytes.load(std::memory_order_relaxed);
  r.peak_bytes = blocks_.peak.load(std::memory_order_relaxed);
  std::lock_guard lock(all_mu_);
  r.signatures = all_.size();
  r.plans = gone_;
  for (Callable* c : all_) r.plans.Add(c->plans_.counts());
  r.plans.evictions += dropped_.load(std::memory_order_relaxed);
  return r;
}

MemoryBudget* Session::budget() {
  limits_->EnsureBudget(*graph_, [this] { DropIdleStates(); });
  return limits_->budget();
}

void Session::DropOldPlans() {
  std::vector<std::shared_ptr<Callable>> dropped;  // freed outside the lock
  std::lock_guard lock(mu_);
  const uint64_t made = plans_made_.load();
  uint64_t plans = 0;
  std::vector<decltype(callables_)::iterator> all;
  for (auto it = callables_.begin(); it != callables_.end(); ++it) {
    plans += it->second->plans_.counts().plans;
    all.push_back(it);
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a->second->used_ < b->second->used_; });
  for (auto& it : all) {
    if (plans <= options_.max_plans) break;
    if (it->second.use_count() > 1) continue;  // it is running
    plans -= it->second->plans_.counts().plans;
    dropped.push_back(std::move(it->second));
    callables_.erase(it);
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  if (plans <= options_.max_plans) plans_checked_ = made;  // otherwise the next run checks again, when the present ones are over
}

bool Session::IsOutdated(const Plan& plan) {
  const int32_t size = graph_->size();
  if (plan.seen.load(std::memory_order_relaxed) == size) return false;
  std::lock_guard lock(open_mu_);
  open_.Look(*graph_);
  if (std::any_of(plan.fixed.begin(), plan.fixed.end(), [&](const Node* n) { return open_.Has(n); })) return true;
  plan.seen.store(open_.seen(), std::memory_order_relaxed);
  return false;
}

// Most sessions use all threads at the default priority and need no share of their own.
void Session::LimitThreads(StepState* state) const {
  if (!pool_ || (threads_ == pool_->threads() && options_.priority == 0)) return;
  state->own_share = std::make_unique<ThreadShare>(threads_, options_.priority);
  state->share = state->own_share.get();
}

namespace {

// For sessions of one thread: the runs that callbacks on this thread have started. The outermost
// StartAsync runs them when the callback has returned.
std::unordered_map<const Session*, std::deque<std::function<void()>>>& RunsForLater() noexcept {
  thread_local std::unordered_map<const Session*, std::deque<std::function<void()>>> later;
  return later;
}

// A reused buffer in which a named run builds its key.
std::vector<uint64_t>& KeyOfThread() noexcept {
  thread_local std::vector<uint64_t> key;
  return key;
}

}  // namespace

void Session::TouchThread() noexcept {
  RunsForLater();
  KeyOfThread();
}

Status Session::StartAsync(std::function<void()> work) {
  auto& later = RunsForLater();
  if (auto it = later.find(this); !pool_ && it != later.end()) {
    if (running_.load() >= kClosed) return FailedPrecondition("the session is closed");
    it->second.push_back(std::move(work));  // counted after the push, which may fail for lack of memory
    std::lock_guard lock(async_mu_);
    ++async_runs_;
    return Status();
  }
  {
    std::unique_lock lock(async_mu_);
    async_ended_.wait(lock, [&] { return async_runs_ < options_.max_async_runs || running_.load() >= kClosed; });
    if (running_.load() >= kClosed) return FailedPrecondition("the session is closed");
    ++async_runs_;
  }
  if (!pool_) {
    const Session* self = this;  // a callback may delete the session
    std::deque<std::function<void()>>* queue_of = nullptr;
    try {
      queue_of = &later[self];
    } catch (...) {
      EndAsync();
      throw;
    }
    auto& queue = *queue_of;
    for (work(); !queue.empty(); queue.pop_front()) queue.front()();
    later.erase(self);
    return Status();
  }
  RunGate& gate = runtime().gate();
  const int32_t priority = options_.priority;
  gate.Accept(priority);
  try {
    auto begin = [&gate, priority, work = std::move(work)] {
      if (!gate.Open(priority)) {
        const ThreadPool::MayBlock may_block;
        gate.Pass(priority);
      }
      work();
    };
    if (pool_->HasThreadForTasks()) {
      pool_->Start(new TaskOf(std::move(begin)));
    } else {
      pool_->Blocking(std::move(begin));
    }
  } catch (...) {
    EndAsync();
    throw;
  }
  return Status();
}

void Session::EndAsync() {
  if (pool_) runtime().gate().End(options_.priority);
  std::lock_guard lock(async_mu_);
  --async_runs_;
  async_ended_.notify_one();
}

Status Session::Close() {
  int64_t seen = running_.load();
  while (seen < kClosed && !running_.compare_exchange_weak(seen, seen + kClosed)) {
  }
  {
    std::lock_guard lock(async_mu_);
    async_ended_.notify_all();  // wakes threads that wait to start a run
  }
  closing_.Cancel();
  if (groups_) groups_->Stop(Error(absl::StatusCode::kCancelled, "the session is closed"));
  while (running_.load(std::memory_order_acquire) > kClosed) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (groups_) groups_->Leave();
  if (profilers_) profilers_->Stop();
  try {
    DropIdleStates();
  } catch (...) {  // no memory: the states go with the session
  }
  GiveMemoryBack(runtime());
  return Status();
}

StatusOr<uint64_t> Session::Reset(std::string_view container) {
  RETURN_IF_ERROR(CheckContainerName(container));
  const uint64_t count = runtime().resources().ResetContainer(container.empty() ? std::string_view(options_.container) : container);
  GiveMemoryBack(runtime());
  return count;
}

StatusOr<std::unique_ptr<Callable>> Session::MakeCallable(const CallableSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(*graph_, spec));
  return std::make_unique<Callable>(this, spec);
}

Status Session::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  // Counts the run until this function returns, beyond the step: a thread that closes the session
  // waits until nothing here uses it any more.
  if (!Enter(options.accepted)) return FailedPrecondition("the session is closed");
  const Leaver leaver{this};
  ASSIGN_OR_RETURN(std::shared_ptr<Callable> callable, CallableOf(spec));
  Status s = callable->RunCounted(feeds, options, fetches);
  AfterNamedRun(std::move(callable));
  return s;
}

void Session::Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  if (!Enter(options.accepted)) return done(FailedPrecondition("the session is closed"));
  try {
    auto callable = CallableOf(spec);
    if (!callable.ok()) {
      Leave();
      return done(callable.status());
    }
    Callable* c = callable->get();
    c->StartCounted(feeds, options, fetches, [this, callable = *std::move(callable), done](Status s) mutable {
      AfterNamedRun(std::move(callable));
      Leave();
      done(std::move(s));
    });
  } catch (...) {
    Leave();
    throw;
  }
}

StatusOr<std::shared_ptr<Callable>> Session::CallableOf(const CallableSpec& spec) {
  std::vector<uint64_t>& key = KeyOfThread();
  key.clear();
  auto add = [&](const Edge& e) { key.push_back(uint64_t(reinterpret_cast<uintptr_t>(e.node)) << 8 ^ uint64_t(uint32_t(e.port))); };
  key.push_back(spec.feeds.size());
  for (const Edge& e : spec.feeds) add(e);
  key.push_back(spec.fetches.size());
  for (const Edge& e : spec.fetches) add(e);
  for (const Node* n : spec.targets) key.push_back(reinterpret_cast<uintptr_t>(n));
  if (!spec.over.empty()) key.push_back(0);
  for (const Node* n : spec.over) key.push_back(reinterpret_cast<uintptr_t>(n));
  for (const auto* devices : {&spec.feed_devices, &spec.fetch_devices}) {
    if (!devices->empty()) key.push_back(~devices->size());
    for (const Device* d : *devices) key.push_back(reinterpret_cast<uintptr_t>(d));
  }
  std::shared_ptr<Callable> callable;
  {
    std::lock_guard lock(mu_);
    auto it = callables_.find(key);
    if (it != callables_.end()) {
      callable = it->second;
      callable->used_ = ++named_runs_;
    }
  }
  if (!callable) {
    if (spec.over.empty()) RETURN_IF_ERROR(CheckSpec(*graph_, spec));  // a partial run was checked as a whole
    auto made = std::make_shared<Callable>(this, spec);
    std::lock_guard lock(mu_);
    callable = callables_.try_emplace(key, std::move(made)).first->second;
    callable->used_ = ++named_runs_;
  }
  return callable;
}

void Session::AfterNamedRun(std::shared_ptr<Callable> callable) {
  if (plans_made_.load(std::memory_order_relaxed) == plans_checked_.load(std::memory_order_relaxed)) return;
  callable.reset();
  try {
    DropOldPlans();
  } catch (...) {  // no memory for the check: the next run checks again
  }
}

StatusOr<void*> Session::State(const NodeRun& run, const std::vector<tw_shape>& shapes) {
  std::lock_guard lock(state_mu_);
  for (auto used : {run.kernel->in_plans.lock(), run.device->def().in_plans.lock()}) {
    if (used) plugins_.insert(std::move(used));
  }
  auto [it, is_new] = states_.try_emplace({run.node, run.kernel, run.device});
  if (is_new) {
    Status s, thrown;
    try {
      s = CreateState(run, shapes, budget(), &it->second);
    } catch (...) {
      thrown = Thrown();
    }
    if (!s.ok() || !thrown.ok()) states_.erase(it);  // first, because reporting the error needs memory
    if (!thrown.ok()) return OfNode(*run.node, Prefix(thrown, run.node->title() + ":"));
    RETURN_IF_ERROR(s);
  }
  return it->second;
}

StatusOr<std::vector<Tensor>> Session::Once(const NodeRun& run) {
  std::lock_guard lock(state_mu_);
  auto it = once_.find(run.node);
  if (it != once_.end() && std::none_of(it->second.begin(), it->second.end(), LeadsToReset)) return it->second;
  ASSIGN_OR_RETURN(std::vector<Tensor> results, CallOnce(runtime(), *run.node, *run.kernel, run.device, {}, {}, options_.container));
  return once_[run.node] = std::move(results);
}

}  // namespace thalweg
