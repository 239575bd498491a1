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
#include "framework/plan/work_graph.h"
#include "framework/runtime/evaluate.h"
#include "framework/runtime/executor.h"

namespace thalweg {
namespace {

constexpr int64_t kClosed = int64_t{1} << 40;
// On the monotonic clock; 0: none. Times that the clock does not reach are none either.
int64_t DeadlineAfter(int64_t ns) {
  int64_t at;
  return ns > 0 && CheckedAdd(MonotonicNs(), ns, &at) ? at : 0;
}

// Rank and dims of every feed in a row: equal keys are equal shapes.
void ShapeKey(const Tensor* feeds, size_t n, std::vector<int64_t>* key) {
  key->clear();
  for (size_t i = 0; i < n; ++i) {
    key->push_back(feeds[i].rank());
    for (int32_t k = 0; k < feeds[i].rank(); ++k) key->push_back(feeds[i].dim(k));
  }
}
bool HasShapes(const std::vector<int64_t>& key, const Tensor* feeds, size_t n) {
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    if (at >= key.size() || key[at++] != feeds[i].rank()) return false;
    for (int32_t k = 0; k < feeds[i].rank(); ++k) {
      if (key[at++] != feeds[i].dim(k)) return false;
    }
  }
  return true;
}

}  // namespace

// ---- Callable ----

Callable::Callable(Session* session, CallableSpec spec) : session_(session), spec_(std::move(spec)) {
  signature_ = {spec_.feeds, spec_.fetches, spec_.targets};
}
Callable::~Callable() = default;

Status Callable::CheckFeeds(const Tensor* feeds) const {
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    const Edge& e = spec_.feeds[i];
    if (!feeds[i]) return InvalidArgument("the feed of '", e.text(), "' is missing");
    uint32_t want = e.node->out_type(e.port);
    if (feeds[i].dtype() != BaseType(want)) {
      return InvalidArgument("the feed of '", e.text(), "' is ", DTypeName(feeds[i].dtype()), " but must be ", DTypeName(want));
    }
    const Shape& shape = e.node->shape(e.port);
    bool fits = shape.rank() < 0 || shape.rank() == feeds[i].rank();
    for (int32_t k = 0; fits && k < shape.rank(); ++k) fits = shape.dim(k) < 0 || shape.dim(k) == feeds[i].dim(k);
    if (!fits) {
      return InvalidArgument("the feed of '", e.text(), "' has shape ", feeds[i].shape().text(), " but must fit ", shape.text());
    }
  }
  return Status();
}

StatusOr<Callable::Prepared*> Callable::Prepare(const std::vector<int64_t>& key, const std::vector<Shape>& shapes) {
  std::lock_guard lock(mu_);
  for (auto& p : prepared_) {
    if (p->any || p->key == key) return p.get();
  }
  auto p = std::make_unique<Prepared>();
  p->any = prepared_.size() >= session_->options().max_shape_plans;
  p->key = key;
  const SessionOptions& o = session_->options();
  PlanOptions options;
  options.container = o.container;
  options.optimize = o.optimize;
  options.threads = session_->pool_ ? session_->pool_->threads() : 1;
  options.engine = o.engine;
  options.soft_placement = o.soft_placement;
  options.disabled_passes = o.disabled_passes;
  std::vector<Shape> plan_shapes = p->any ? std::vector<Shape>(shapes.size()) : shapes;
  ASSIGN_OR_RETURN(p->plan, CompilePlan(session_->graph(), signature_, plan_shapes, options, session_));
  // Plans for certain shapes stay in front of the one for any, so that a known shape keeps its faster plan.
  prepared_.push_back(std::move(p));
  return prepared_.back().get();
}

StatusOr<Callable::Prepared*> Callable::FindOrPrepare(const Tensor* feeds) {
  Prepared* p = last_.load(std::memory_order_acquire);
  if (p && !p->any && HasShapes(p->key, feeds, spec_.feeds.size())) return p;
  RETURN_IF_ERROR(CheckFeeds(feeds));
  {  // shapes that came before cost no heap call, also in turns
    std::lock_guard lock(mu_);
    for (auto& known : prepared_) {
      if (!known->any && !HasShapes(known->key, feeds, spec_.feeds.size())) continue;
      last_.store(known.get(), std::memory_order_release);
      return known.get();
    }
  }
  std::vector<int64_t> key;
  ShapeKey(feeds, spec_.feeds.size(), &key);
  std::vector<Shape> shapes;
  for (size_t i = 0; i < spec_.feeds.size(); ++i) shapes.push_back(feeds[i].shape());
  ASSIGN_OR_RETURN(p, Prepare(key, shapes));
  last_.store(p, std::memory_order_release);
  return p;
}

StatusOr<PlanReport> Callable::Report(const std::vector<Shape>& feed_shapes) {
  if (feed_shapes.size() != spec_.feeds.size()) return InvalidArgument(feed_shapes.size(), " shapes for ", spec_.feeds.size(), " feeds");
  std::vector<int64_t> key;
  for (const Shape& s : feed_shapes) {
    key.push_back(s.rank());
    key.insert(key.end(), s.dims().begin(), s.dims().end());
  }
  ASSIGN_OR_RETURN(Prepared * p, Prepare(key, feed_shapes));
  PlanReport r;
  r.nodes = p->plan->nodes.size();
  for (uint64_t b : p->plan->block_bytes) r.block_bytes += b;
  r.unplanned_bytes = p->plan->unplanned_bytes;
  r.counted = p->plan->counted;
  return r;
}

Status Callable::Run(const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  for (size_t k = 0; k < spec_.fetches.size(); ++k) fetches[k].reset();
  const int64_t deadline = DeadlineAfter(options.deadline_ns);
  if (!session_->Enter()) return FailedPrecondition("the session is closed");
  struct Leaver {
    Session* s;
    ~Leaver() { s->Leave(); }
  } leaver{session_};
  // The last plan's shapes fit; types may still not.
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    if (!feeds[i] || feeds[i].dtype() != spec_.feeds[i].node->out_type(spec_.feeds[i].port)) RETURN_IF_ERROR(CheckFeeds(feeds));
  }
  ASSIGN_OR_RETURN(Prepared * p, FindOrPrepare(feeds));
  std::unique_ptr<StepState> state;
  {
    std::lock_guard lock(p->mu);
    if (!p->idle.empty()) {
      state = std::move(p->idle.back());
      p->idle.pop_back();
    }
  }
  if (!state) {
    ASSIGN_OR_RETURN(state, StepState::Create(p->plan.get(), &session_->runtime()));
    state->container = &session_->options().container;
    state->pool = session_->pool_;
  }
  state->cancel = options.cancel;
  state->deadline = deadline;
  session_->steps_.fetch_add(1, std::memory_order_relaxed);
  Status s = RunStep(state.get(), feeds, fetches);
  if (state->broken()) return s;  // a failed queue stays failed: the next step makes its own
  std::lock_guard lock(p->mu);
  p->idle.push_back(std::move(state));
  return s;
}

// ---- Session ----

Session::Session(std::shared_ptr<Graph> graph, const SessionOptions& options) : graph_(std::move(graph)), options_(options) {
  if (options_.container.empty()) options_.container = SessionOptions().container;
  if (options_.max_async_runs == 0) options_.max_async_runs = 2 * graph_->runtime().pool().threads();
  pool_ = options_.threads == 1 || graph_->runtime().pool().threads() == 1 ? nullptr : &graph_->runtime().pool();
}

StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<Graph> graph, const SessionOptions& options) {
  RETURN_IF_ERROR(graph->runtime().host_device().status());
  return std::unique_ptr<Session>(new Session(std::move(graph), options));
}

Session::~Session() {
  // Closing cannot fail: it waits for what runs.
  (void)Close();
  callables_.clear();
  for (auto& [key, run] : states_) DestroyState(run);
}

bool Session::Enter() {
  if (running_.fetch_add(1, std::memory_order_acquire) >= kClosed) {
    Leave();
    return false;
  }
  return true;
}
void Session::Leave() { running_.fetch_sub(1, std::memory_order_release); }

Status Session::StartAsync(std::function<void()> work) {
  // Of a session of one thread, on this thread: the runs that callbacks start, for the outermost call to run when they have returned.
  thread_local std::unordered_map<const Session*, std::deque<std::function<void()>>> later;
  if (auto it = later.find(this); !pool_ && it != later.end()) {
    if (running_.load() >= kClosed) return FailedPrecondition("the session is closed");
    it->second.push_back(std::move(work));
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
    auto& queue = later[self];
    for (work(); !queue.empty(); queue.pop_front()) queue.front()();
    later.erase(self);
    return Status();
  }
  try {
    pool_->Blocking(std::move(work));
  } catch (...) {
    EndAsync();
    throw;
  }
  return Status();
}

void Session::EndAsync() {
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
  while (running_.load(std::memory_order_acquire) > kClosed) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return Status();
}

Status Session::CheckSpec(const CallableSpec& spec) const {
  auto own = [&](const Node* n) { return n && n->id() < graph_->size() && graph_->node(n->id()) == n; };
  for (const auto& list : {spec.feeds, spec.fetches}) {
    for (const Edge& e : list) {
      if (!own(e.node)) return InvalidArgument("a feed or fetch is not of this session's graph");
      if (e.port < 0 || e.port >= e.node->n_out()) return InvalidArgument("'", e.node->name(), "' has no output ", e.port);
    }
  }
  std::set<std::pair<const Node*, int32_t>> fed;
  for (const Edge& e : spec.feeds) {
    if (!fed.emplace(e.node, e.port).second) return InvalidArgument("'", e.text(), "' is fed twice");
    uint32_t t = e.node->out_type(e.port);
    if (t == TW_RESOURCE || IsRef(t)) return InvalidArgument("'", e.text(), "' is ", DTypeName(t), " and cannot be fed");
  }
  for (const Edge& e : spec.fetches) {
    if (IsRef(e.node->out_type(e.port)))
      return InvalidArgument("'", e.text(), "' is a reference and cannot be fetched; fetch a read of it");
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
  thread_local std::vector<uint64_t> key;
  key.clear();
  auto add = [&](const Edge& e) { key.push_back(uint64_t(reinterpret_cast<uintptr_t>(e.node)) << 8 ^ uint64_t(uint32_t(e.port))); };
  key.push_back(spec.feeds.size());
  for (const Edge& e : spec.feeds) add(e);
  key.push_back(spec.fetches.size());
  for (const Edge& e : spec.fetches) add(e);
  for (const Node* n : spec.targets) key.push_back(reinterpret_cast<uintptr_t>(n));
  Callable* callable = nullptr;
  {
    std::lock_guard lock(mu_);
    auto it = callables_.find(key);
    if (it != callables_.end()) callable = it->second.get();
  }
  if (!callable) {
    for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
    ASSIGN_OR_RETURN(auto made, MakeCallable(spec));
    std::lock_guard lock(mu_);
    callable = callables_.try_emplace(key, std::move(made)).first->second.get();
  }
  return callable->Run(feeds, options, fetches);
}

StatusOr<void*> Session::State(const NodeRun& run, const std::vector<tw_shape>& shapes) {
  std::lock_guard lock(state_mu_);
  auto [it, is_new] = states_.try_emplace({run.node, run.kernel, run.device}, run);
  if (is_new) {
    Status s;
    try {
      s = CreateState(run, shapes, &it->second.state);
    } catch (...) {
      s = OfNode(run.node->name(), Prefix(Thrown(), run.node->title() + ":"));
    }
    if (!s.ok()) {
      states_.erase(it);
      return s;
    }
  }
  return it->second.state;
}

StatusOr<std::vector<Tensor>> Session::Once(const NodeRun& run) {
  std::lock_guard lock(state_mu_);
  auto it = once_.find(run.node);
  if (it != once_.end()) return it->second;
  ASSIGN_OR_RETURN(std::vector<Tensor> results, CallOnce(runtime(), *run.node, *run.kernel, run.device, {}, {}, options_.container));
  return once_[run.node] = std::move(results);
}

}  // namespace thalweg
