#include "framework/session/session.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <set>
#include <thread>
#include <tuple>
#include <unordered_map>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/base/stack.h"
#include "framework/plan/plan_json.h"
#include "framework/plan/work_graph.h"
#include "framework/runtime/evaluate.h"
#include "framework/runtime/executor.h"
#include "framework/runtime/waiting_calls.h"

namespace thalweg {
namespace {

constexpr int64_t kClosed = int64_t{1} << 40;
constexpr size_t kStackOfCall = 512 << 10;  // bytes that a call of a function may take before it calls the next
// On the monotonic clock; 0: none. Times that the clock does not reach are none either.
int64_t DeadlineAfter(int64_t ns) {
  int64_t at;
  return ns > 0 && CheckedAdd(MonotonicNs(), ns, &at) ? at : 0;
}

// What pools of devices keep for later: others who use the device know nothing of them. Where there is no memory to do so, it stays.
void GiveMemoryBack(const Runtime& runtime) noexcept {
  try {
    for (const Device* d : runtime.ready_devices()) {
      if (!d->host_memory()) d->GiveMemoryBack();
    }
  } catch (...) {
  }
}

// Constants that planning made; those of the graph are not the session's.
Status ChargeConstants(const PlanShapes& shapes, MemoryBudget* budget) {
  for (const PlanShapes::Value& v : shapes.values) {
    if (v.constant) RETURN_IF_ERROR(budget->Charge(v.constant.get()));
  }
  return Status();
}

// A function that runs once, as a task of the pool's.
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

}  // namespace

// ---- Callable ----

Callable::Callable(Session* session, const Function& f, std::string device, std::vector<Device*> feed_devices)
    : Callable(session, CallableSpec{f.args(), f.results(), f.targets()}, std::move(device)) {
  graph_ = &f.body();
  trial_.reset();
  signature_.takes_feeds = true;
  signature_.stays = true;
  signature_.feed_devices = std::move(feed_devices);
}

Callable::Callable(Session* session, CallableSpec spec) : Callable(session, std::move(spec), "") {}

Callable::Callable(Session* session, CallableSpec spec, std::string device)
    : session_(session),
      graph_(&session->graph()),
      spec_(std::move(spec)),
      plans_(spec_.feeds.size(), session->options().max_shape_plans, session->options().max_shapes, this),
      device_(std::move(device)) {
  signature_ = {spec_.feeds, spec_.fetches, spec_.targets};
  signature_.over = spec_.over;
  signature_.feed_devices = spec_.feed_devices;
  signature_.fetch_devices = spec_.fetch_devices;
  if (session->options().placement == "learned" && spec_.over.empty() && !session->placements_->Find(SignatureText())) {
    trial_ = std::make_unique<PlacementTrial>(session->placements_.get(), &session->runtime(), session->options().placement_steps,
                                              SignatureText());
  }
  std::lock_guard lock(session_->all_mu_);
  session_->all_.insert(this);
}
Callable::~Callable() {
  std::lock_guard lock(session_->all_mu_);
  session_->all_.erase(this);
  PlanCounts counts = plans_.counts();
  counts.plans = counts.shapes = 0;
  session_->gone_.Add(counts);
}

Status CheckFeed(const Edge& e, const Tensor& feed) {
  if (!feed) return InvalidArgument("the feed of '", Shown(e.text()), "' is missing");
  const uint32_t want = e.node->out_type(e.port);
  if (feed.dtype() != BaseType(want)) {
    return InvalidArgument("the feed of '", Shown(e.text()), "' is ", DTypeName(feed.dtype()), " but must be ", DTypeName(want));
  }
  const Shape& shape = e.node->shape(e.port);
  bool fits = shape.rank() < 0 || shape.rank() == feed.rank();
  for (int32_t k = 0; fits && k < shape.rank(); ++k) fits = shape.dim(k) < 0 || shape.dim(k) == feed.dim(k);
  if (fits) return Status();
  return InvalidArgument("the feed of '", Shown(e.text()), "' has shape ", feed.shape().text(), " but must fit ", shape.text());
}

Status Callable::CheckFeeds(const Tensor* feeds) const {
  for (size_t i = 0; i < spec_.feeds.size(); ++i) RETURN_IF_ERROR(CheckFeed(spec_.feeds[i], feeds[i]));
  return Status();
}

PlanOptions Callable::Options() const {
  const SessionOptions& o = session_->options();
  PlanOptions options;
  options.container = o.container;
  options.optimize = o.optimize;
  options.threads = session_->threads_;
  options.engine = o.engine;
  options.order = o.order;
  options.memory_budget = o.memory_budget;
  options.compilers = o.compilers;
  if (auto device = ParseDeviceSpec(o.device); device.ok()) options.device = *std::move(device);  // checked when it was set
  if (auto own = ParseDeviceSpec(device_); own.ok() && !device_.empty()) {
    auto both = MergeDeviceSpecs(*own, options.device);
    options.device = both.ok() ? *std::move(both) : *std::move(own);
    options.may_leave_device = true;
  }
  options.fallback = o.fallback;
  options.capture = o.capture;
  if (session_->placements_) {
    options.placement = o.placement == "cost" ? "cost" : "simple";
    options.costs = session_->placements_->costs();
    if (o.placement == "learned" && graph_ == &session_->graph()) options.places = session_->placements_->Find(SignatureText());
  }
  options.disabled_passes = o.disabled_passes;
  // Calls that are inlined no longer count: a bound that they could reach is kept without.
  if (o.max_call_depth < uint32_t{kMostInlined}) options.disabled_passes.push_back("inline");
  options.imported = session_->limits_->imported();
  session_->limits_->EnsureBudget(session_->graph(), [s = session_] { s->DropIdleStates(); });
  options.budget = session_->limits_->budget();
  return options;
}

StatusOr<std::unique_ptr<Plan>> Callable::MakePlan(const std::vector<Shape>& feed_shapes) {
  ASSIGN_OR_RETURN(auto plan, CompilePlan(*graph_, signature_, feed_shapes, Options(), session_));
  session_->plans_made_.fetch_add(1, std::memory_order_relaxed);
  if (trial_) trial_->Planned(*plan);
  return plan;
}

// ---- Places that are learned ----

std::string Callable::SignatureText() const {
  std::string text = StrCat(graph_->size(), " nodes;");
  for (const Edge& e : spec_.feeds) text += StrCat(" <", e.text());
  for (const Edge& e : spec_.fetches) text += StrCat(" >", e.text());
  for (const Node* n : spec_.targets) text += StrCat(" !", n->name());
  return text;
}

Status Callable::Measure(const Tensor* feeds, Running* r) {
  if (!trial_ || trial_->over() || plans_.ServesAll(r->found.entry)) return Status();
  r->stats = trial_->Watch(&r->state->plan());
  if (!r->stats) return Status();
  r->measured = true;
  for (size_t i = 0; i < spec_.feeds.size(); ++i) r->feed_shapes.push_back(feeds[i].shape());
  ASSIGN_OR_RETURN(r->trace, StepTrace::Begin(r->stats));
  r->trace->Planned(false, 0);
  return Status();
}

// Whether the plan's blocks leave room on every device.
static bool Fits(const Plan& plan) {
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const uint64_t limit = plan.devices[d]->pool()->stats().limit, memory = limit ? limit : plan.devices[d]->memory();
    if (memory && plan.shapes->block_bytes[d + 1] > memory - memory / 10) return false;
  }
  return true;
}

void Callable::Learn(Running* r, bool ok) {
  if (!r->measured) {
    if (ok) session_->placements_->costs()->Learn(*r->stats);
    return;
  }
  if (!trial_->Over(r->stats, ok)) return;
  PlacementTrial::Suggestion next;
  while (trial_->Next(&next)) {
    PlanOptions options = Options();
    options.placement = next.placement;
    options.places = next.places;
    auto plan = CompilePlan(*graph_, signature_, r->feed_shapes, options, session_);
    if (!plan.ok() || !Fits(**plan)) continue;
    session_->plans_made_.fetch_add(1, std::memory_order_relaxed);
    trial_->Replaced(**plan);
    plans_.Replace(r->found.entry, *std::move(plan), r->feed_shapes);
    return;
  }
}

Status Callable::Keep(const PlanShapes& shapes) {
  session_->limits_->EnsureBudget(session_->graph(), [s = session_] { s->DropIdleStates(); });
  MemoryBudget* budget = session_->limits_->budget();
  return budget ? ChargeConstants(shapes, budget) : Status();
}

StatusOr<PlanReport> Callable::Report(const std::vector<Shape>& feed_shapes) {
  if (feed_shapes.size() != spec_.feeds.size()) return InvalidArgument(feed_shapes.size(), " shapes for ", spec_.feeds.size(), " feeds");
  PlanCache::Found found;
  RETURN_IF_ERROR(plans_.Prepare(feed_shapes, &found));
  PlanReport r;
  r.nodes = found.plan->nodes.size();
  r.block_bytes = found.shapes->total_bytes();
  r.peak_bytes = found.shapes->peak_bytes;
  r.unplanned_bytes = found.shapes->unplanned_bytes;
  r.counted = found.plan->counted;
  return r;
}

StatusOr<std::string> Callable::PlanText(const std::vector<Shape>* feed_shapes) {
  PlanCache::Found found;
  if (feed_shapes) {
    for (size_t i = 0; i < spec_.feeds.size(); ++i) {
      const Shape& declared = spec_.feeds[i].node->shape(spec_.feeds[i].port);
      if ((*feed_shapes)[i].known() && declared.Admits((*feed_shapes)[i])) continue;
      return InvalidArgument("the feed of '", Shown(spec_.feeds[i].text()), "' has shape ", (*feed_shapes)[i].text(), " but must fit ",
                             declared.text(), " with all sizes known");
    }
    RETURN_IF_ERROR(plans_.Prepare(*feed_shapes, &found));
  } else {
    plans_.Latest(&found);
  }
  if (found.entry) return PlanJson(*found.plan, *found.shapes, signature_);
  ASSIGN_OR_RETURN(auto plan, CompilePlan(*graph_, signature_, std::vector<Shape>(spec_.feeds.size()), Options(), session_));
  return PlanJson(*plan, *plan->shapes, signature_);
}

Status Callable::Run(const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  for (size_t k = 0; k < spec_.fetches.size(); ++k) fetches[k].reset();
  if (!session_->Enter(options.accepted)) return FailedPrecondition("the session is closed");
  const Session::Leaver leaver{session_};
  return RunCounted(feeds, options, fetches);
}

void Callable::Start(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  for (size_t k = 0; k < spec_.fetches.size(); ++k) fetches[k].reset();
  if (!session_->Enter(options.accepted)) return done(FailedPrecondition("the session is closed"));
  try {
    StartCounted(feeds, options, fetches, [session = session_, done](Status s) {
      session->Leave();
      done(std::move(s));
    });
  } catch (...) {
    session_->Leave();
    throw;
  }
}

Status Callable::RunCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  Running r;
  RETURN_IF_ERROR(Begin(&feeds, options, &r));
  return End(&r, RunStep(r.state.get(), feeds, fetches));
}

void Callable::StartCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  auto r = std::make_shared<Running>();
  if (Status s = Begin(&feeds, options, r.get()); !s.ok()) {
    r.reset();
    return done(std::move(s));
  }
  StepState* state = r->state.get();
  StartStep(state, feeds, fetches, [this, r = std::move(r), done = std::move(done)](Status s) {
    try {
      s = End(r.get(), std::move(s));
    } catch (...) {
      s = Thrown();
    }
    r->trace.reset();  // whoever is told may use the statistics again
    done(std::move(s));
  });
}

// Neither lies in a device's memory nor shall: every feed of most steps.
static bool StaysOnHost(const Tensor& feed, const Device* there) {
  if (!feed) return true;
  const MemoryPool* home = feed.get()->buffer ? feed.get()->buffer->home() : nullptr;
  return !there && !(home && home->place());
}

StatusOr<const Tensor*> Callable::PlaceFeeds(const Tensor* feeds, std::vector<Tensor>* moved) const {
  const Tensor* placed = feeds;
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    Device* there = signature_.feed_device(i);
    if (there && there->host_memory()) there = nullptr;
    if (StaysOnHost(feeds[i], there)) continue;
    Device* here = HoldingDevice(*feeds[i].get());
    if (!here && !LiesOnHost(*feeds[i].get())) {
      return FailedPrecondition("the feed of '", Shown(spec_.feeds[i].text()), "' lies on a device that is no more; its runtime has ended");
    }
    if (here == there) continue;
    if (moved->empty()) moved->assign(feeds, feeds + spec_.feeds.size());
    placed = moved->data();
    for (Device* d : {here, there}) {
      if (!d) continue;
      auto copy = d == here ? d->ToHost((*moved)[i]) : d->FromHost((*moved)[i]);
      if (!copy.ok()) return Prefix(copy.status(), StrCat("the feed of '", Shown(spec_.feeds[i].text()), "':"));
      (*moved)[i] = *std::move(copy);
    }
  }
  return placed;
}

Status Callable::Begin(const Tensor** given, const RunOptions& options, Running* r) {
  ASSIGN_OR_RETURN(*given, PlaceFeeds(*given, &r->moved));
  const Tensor* feeds = *given;
  if (options.stats) {
    ASSIGN_OR_RETURN(r->trace, StepTrace::Begin(options.stats));
  }
  const int64_t deadline = DeadlineAfter(options.deadline_ns > 0 ? options.deadline_ns : session_->timeout_ns_);
  ASSIGN_OR_RETURN(r->state, ReadyState(feeds, &r->found));
  r->state->cancel = options.cancel;
  r->state->deadline = deadline;
  r->state->rendezvous = options.rendezvous;
  const uint64_t step = session_->steps_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (r->trace) r->trace->Planned(r->found.made, step);
  r->stats = options.stats;
  if (!r->trace) RETURN_IF_ERROR(Measure(feeds, r));
  r->state->trace = r->trace.get();
  return Status();
}

Status Callable::End(Running* r, Status s) {
  r->state->trace = nullptr;
  if (r->trace) r->trace->Over(s);
  // A failed queue stays failed: the next step makes its own.
  if (!r->state->broken()) plans_.GiveBack(r->found.entry, std::move(r->state));
  if (session_->placements_ && r->trace) {
    r->trace.reset();
    Learn(r, s.ok());
  }
  return s;
}

Status Callable::FindPlan(const Tensor* feeds, PlanCache::Found* found) {
  for (;;) {
    if (!plans_.Find(feeds, found)) {
      RETURN_IF_ERROR(CheckFeeds(feeds));
      RETURN_IF_ERROR(plans_.Prepare(feeds, found));
    }
    if (found->plan->fixed.empty() || graph_ != &session_->graph() || !session_->IsOutdated(*found->plan)) return Status();
    plans_.Drop(found->entry);
    *found = PlanCache::Found();
  }
}

StatusOr<std::unique_ptr<StepState>> Callable::ReadyState(const Tensor* feeds, PlanCache::Found* found) {
  // The last plan's shapes fit; types may still not.
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    if (!feeds[i] || feeds[i].dtype() != spec_.feeds[i].node->out_type(spec_.feeds[i].port)) RETURN_IF_ERROR(CheckFeeds(feeds));
  }
  RETURN_IF_ERROR(FindPlan(feeds, found));
  std::unique_ptr<StepState> state = std::move(found->state);
  if (!state) {
    ASSIGN_OR_RETURN(state, StepState::Create(found->plan, &session_->runtime(), session_->limits_->budget(), &session_->blocks_));
    state->container = &session_->options().container;
    state->moves_state = session_->options().fallback != "fail" || session_->placements_;
    state->pool = session_->pool_;
    state->functions = session_;
    state->place = &device_;
    state->swapping = &session_->swapping_;
    state->closing = &session_->closing_;
    session_->LimitThreads(state.get());
  }
  if (!found->shapes) return state;
  Status bound = state->Bind(found->shapes);
  if (bound.code() == absl::StatusCode::kResourceExhausted) {  // what other signatures keep for their next step may be what is missing
    session_->DropIdleStates();
    bound = state->Bind(found->shapes);
  }
  RETURN_IF_ERROR(bound);
  found->shapes.reset();
  return state;
}

// Other nodes of it may fail while one of its kernels calls a function.
static bool MayFailElsewhere(const StepBase& step) {
  const auto* state = dynamic_cast<const StepState*>(&step);
  return !state || state->plan().counted;
}

Status Callable::BeginInside(const StepBase& step, std::string_view function, Tensor* feeds, Inside* in) {
  ASSIGN_OR_RETURN(in->state, ReadyState(feeds, &in->found));
  StepState* state = in->state.get();
  state->cancel = step.cancel;
  state->deadline = step.deadline;
  state->share = step.share;
  state->depth = step.depth + 1;
  state->rendezvous = step.rendezvous;
  if (step.trace) in->trace = StepTrace::BeginCall(step.trace, function);
  state->trace = in->trace.get();
  state->Take(feeds);
  if (state->plan().async && MayFailElsewhere(step)) WaitingCalls::Get().Nest(state, &step);
  return Status();
}

Status Callable::EndInside(Inside* in, Status s) {
  if (in->state->plan().async) WaitingCalls::Get().Unnest(in->state.get());
  in->state->trace = nullptr;
  if (!in->state->broken()) plans_.GiveBack(in->found.entry, std::move(in->state));
  in->state.reset();  // here, while there is a session: a broken one
  return s;
}

Status Callable::RunInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches) {
  Inside in;
  RETURN_IF_ERROR(BeginInside(step, function, feeds, &in));
  return EndInside(&in, RunStep(in.state.get(), nullptr, fetches));
}

void Callable::StartInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches, StepDone done) {
  auto in = std::make_shared<Inside>();
  if (Status s = BeginInside(step, function, feeds, in.get()); !s.ok()) return done(std::move(s));
  StepState* state = in->state.get();
  if (!state->plan().async) return done(EndInside(in.get(), RunStep(state, nullptr, fetches)));
  StartStep(state, nullptr, fetches, [this, in = std::move(in), done = std::move(done)](Status s) {
    s = EndInside(in.get(), std::move(s));
    in->trace.reset();
    done(std::move(s));
  });
}

// ---- Session ----

Session::Session(std::shared_ptr<Graph> graph, const SessionOptions& options) : graph_(std::move(graph)), options_(options) {
  if (options_.container.empty()) options_.container = SessionOptions().container;
  swapping_.above = options_.swap_memory_above;
  timeout_ns_ = int64_t{options_.step_timeout_ms} * 1'000'000;
  if (options_.max_async_runs == 0) options_.max_async_runs = 2 * graph_->runtime().pool().threads();
  ThreadPool& pool = graph_->runtime().pool();
  threads_ = options_.threads ? std::min(options_.threads, pool.threads()) : pool.threads();
  pool_ = threads_ == 1 ? nullptr : &pool;
}

StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph, const SessionOptions& options) {
  RETURN_IF_ERROR(graph->runtime().host_device().status());
  ASSIGN_OR_RETURN(auto limits, SessionLimits::Create(options, &graph->runtime()));
  std::unique_ptr<Session> session(new Session(std::move(graph), options));
  session->limits_ = std::move(limits);
  if (options.placement != "simple") session->placements_ = std::make_unique<PlacementStore>(options, &session->runtime());
  return session;
}

Session::~Session() {
  // Closing cannot fail: it waits for what runs.
  (void)Close();
  if (placements_) placements_->SaveOrSay();
  limits_->StopReclaiming();
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

void Session::DropOldPlans() {
  std::vector<std::shared_ptr<Callable>> dropped;  // ends outside the lock
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
  if (plans <= options_.max_plans) plans_checked_ = made;  // else again, when those that run now are over
}

bool Session::Enter(bool accepted) {
  if (running_.fetch_add(1, std::memory_order_acquire) >= kClosed && !accepted) {
    Leave();
    return false;
  }
  return true;
}
void Session::Leave() { running_.fetch_sub(1, std::memory_order_release); }

bool Session::IsOutdated(const Plan& plan) {
  const int32_t size = graph_->size();
  if (plan.seen.load(std::memory_order_relaxed) == size) return false;
  std::lock_guard lock(open_mu_);
  open_.Look(*graph_);
  if (std::any_of(plan.fixed.begin(), plan.fixed.end(), [&](const Node* n) { return open_.Has(n); })) return true;
  plan.seen.store(open_.seen(), std::memory_order_relaxed);
  return false;
}

// Most sessions take what there is, as anybody, and pay nothing for the others.
void Session::LimitThreads(StepState* state) const {
  if (!pool_ || (threads_ == pool_->threads() && options_.priority == 0)) return;
  state->own_share = std::make_unique<ThreadShare>(threads_, options_.priority);
  state->share = state->own_share.get();
}

Status Session::StartAsync(std::function<void()> work) {
  // Of a session of one thread, on this thread: the runs that callbacks start, for the outermost call to run when they have returned.
  thread_local std::unordered_map<const Session*, std::deque<std::function<void()>>> later;
  if (auto it = later.find(this); !pool_ && it != later.end()) {
    if (running_.load() >= kClosed) return FailedPrecondition("the session is closed");
    it->second.push_back(std::move(work));  // counted once it is there: there may be no memory for it
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
    const Session* self = this;  // the session may end in a callback
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
    async_ended_.notify_all();  // whoever waits to start a run
  }
  closing_.Cancel();
  while (running_.load(std::memory_order_acquire) > kClosed) std::this_thread::sleep_for(std::chrono::microseconds(50));
  try {
    DropIdleStates();
  } catch (...) {  // no memory: they go with the session
  }
  GiveMemoryBack(runtime());
  return Status();
}

Status Session::CheckSpec(const CallableSpec& spec) const {
  auto own = [&](const Node* n) { return n && n->id() < graph_->size() && graph_->node(n->id()) == n; };
  for (const auto& list : {spec.feeds, spec.fetches}) {
    for (const Edge& e : list) {
      if (!own(e.node)) return InvalidArgument("a feed or fetch is not of this session's graph");
      if (e.port < 0 || e.port >= e.node->n_out()) return InvalidArgument("'", Shown(e.node->name()), "' has no output ", e.port);
    }
  }
  std::set<std::pair<const Node*, int32_t>> fed;
  for (const Edge& e : spec.feeds) {
    if (!fed.emplace(e.node, e.port).second) return InvalidArgument("'", Shown(e.text()), "' is fed twice");
    if (e.node->out_type(e.port) == TW_RESOURCE) return InvalidArgument("'", Shown(e.text()), "' is resource and cannot be fed");
  }
  for (const Node* n : spec.targets) {
    if (!own(n)) return InvalidArgument("a target is not of this session's graph");
  }
  return Status();
}

StatusOr<std::unique_ptr<Callable>> Session::MakeCallable(const CallableSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(spec));
  return std::make_unique<Callable>(this, spec);
}

Status Session::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  // Beyond the step: whoever ends the session waits until nothing here looks at it any more.
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
  thread_local std::vector<uint64_t> key;
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
    if (spec.over.empty()) RETURN_IF_ERROR(CheckSpec(spec));  // else it was checked as a whole
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
  } catch (...) {  // no memory to look for them: the next run looks again
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
      s = CreateState(run, shapes, &it->second);
    } catch (...) {
      thrown = Thrown();
    }
    if (!s.ok() || !thrown.ok()) states_.erase(it);  // first, because to tell about it needs memory
    if (!thrown.ok()) return OfNode(*run.node, Prefix(thrown, run.node->title() + ":"));
    RETURN_IF_ERROR(s);
  }
  return it->second;
}

StatusOr<std::vector<Tensor>> Session::Once(const NodeRun& run) {
  std::lock_guard lock(state_mu_);
  auto it = once_.find(run.node);
  if (it != once_.end()) return it->second;
  ASSIGN_OR_RETURN(std::vector<Tensor> results, CallOnce(runtime(), *run.node, *run.kernel, run.device, {}, {}, options_.container));
  return once_[run.node] = std::move(results);
}

StatusOr<const Function*> Session::FindFunction(std::string_view name) {
  {
    std::shared_lock lock(functions_mu_);
    if (auto it = functions_.find(name); it != functions_.end()) return it->second.function.get();
  }
  ASSIGN_OR_RETURN(auto f, graph_->functions()->Find(name));
  auto callable = std::make_unique<Callable>(this, *f, "", std::vector<Device*>());
  std::unique_lock lock(functions_mu_);
  return functions_.try_emplace(f->name(), Called{f, std::move(callable), {}}).first->second.function.get();
}

// Where the nodes of a function run that do not say it: as its caller, and, as far as that leaves it open, as whoever called that.
static std::string DeviceOf(const StepBase& step, std::string_view device) {
  const std::string outer = step.place ? *step.place : "";
  if (device.empty()) return outer;
  auto own = ParseDeviceSpec(device), inherited = ParseDeviceSpec(outer);
  if (!own.ok() || !inherited.ok()) return std::string(device);
  const auto both = MergeDeviceSpecs(*own, *inherited);
  return both.ok() ? both->text() : own->text();
}

// Values are taken where they lie, so there is a plan for each way in which they do.
Callable* Session::CallableOf(const StepBase& step, const FunctionCall& call) {
  std::vector<Device*> devices;
  const size_t n = call.function->args().size();
  for (size_t i = 0; i < n; ++i) {
    Device* holder = call.args[i] ? HoldingDevice(*call.args[i].get()) : nullptr;
    if (holder && devices.empty()) devices.resize(n);
    if (holder) devices[i] = holder;
  }
  const bool placed = !call.device.empty() || (step.place && !step.place->empty());
  {
    std::shared_lock lock(functions_mu_);
    Called& called = functions_.find(call.function->name())->second;
    if (!placed && devices.empty()) return called.callable.get();
  }
  std::pair key(DeviceOf(step, call.device), std::move(devices));
  std::unique_lock lock(functions_mu_);
  Called& called = functions_.find(call.function->name())->second;
  std::unique_ptr<Callable>& callable = called.elsewhere[key];
  if (!callable) callable = std::make_unique<Callable>(this, *called.function, key.first, key.second);
  return callable.get();
}

Status Session::BeginCall(StepBase& step, const FunctionCall& call, Callable** callable) {
  if (step.depth >= options_.max_call_depth || StackLeft() < kStackOfCall) {
    return ResourceExhausted("function '", Shown(call.function->name()), "': ", step.depth, " calls lie within each other, and ",
                             step.depth >= options_.max_call_depth ? "the session option 'max_call_depth' allows no more"
                                                                   : "the thread's stack has no room for more",
                             "; does the recursion come to an end?");
  }
  *callable = CallableOf(step, call);
  const size_t n = call.function->args().size();
  const bool shares =
      std::any_of(call.args, call.args + n, [](const Tensor& t) { return t && (t.dtype() == TW_VARIANT || HoldingDevice(*t.get())); });
  Carrier* carrier = shares ? step.carrier() : nullptr;
  return carrier ? carrier->Settle() : Status();
}

// What a call ends with: results where its caller can take them.
static Status EndCall(const FunctionCall& call, Status s) {
  const size_t n = call.function->results().size();
  for (size_t o = 0; s.ok() && !call.anywhere && o < n; ++o) {
    Device* holder = HoldingDevice(*call.results[o].get());
    auto on_host = holder ? holder->ToHost(call.results[o]) : StatusOr<Tensor>(call.results[o]);
    s = on_host.status();
    if (on_host.ok()) call.results[o] = *std::move(on_host);
  }
  for (size_t o = 0; !s.ok() && o < n; ++o) call.results[o].reset();
  return s.ok() ? s : OutOfCall(std::move(s));
}

Status Session::Call(StepBase& step, const FunctionCall& call) {
  Callable* callable = nullptr;
  RETURN_IF_ERROR(BeginCall(step, call, &callable));
  return EndCall(call, callable->RunInside(step, call.function->name(), call.args, call.results));
}

void Session::Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) {
  Callable* callable = nullptr;
  if (Status s = BeginCall(step, call, &callable); !s.ok()) return done(std::move(s));
  callable->StartInside(step, call.function->name(), call.args, call.results,
                        [call, done = std::move(done)](Status s) { done(EndCall(call, std::move(s))); });
}

}  // namespace thalweg
