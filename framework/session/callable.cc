#include "framework/session/callable.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function_shapes.h"
#include "framework/planner/emit/layout.h"
#include "framework/planner/placement/device_map.h"
#include "framework/planner/plan_json.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "framework/session/placement_trial.h"
#include "framework/session/profilers.h"
#include "framework/session/session.h"

namespace thalweg {
namespace {

// Returns a time on the monotonic clock; 0 means none, also if the clock cannot represent the time.
int64_t DeadlineAfter(int64_t ns) {
  int64_t at;
  return ns > 0 && CheckedAdd(MonotonicNs(), ns, &at) ? at : 0;
}

// Charges constants that planning made. Constants of the graph do not belong to the session.
Status ChargeConstants(const PlanShapes& shapes, MemoryBudget* budget) {
  for (const PlanShapes::Value& v : shapes.values) {
    if (v.constant) RETURN_IF_ERROR(budget->Charge(v.constant.get()));
  }
  return Status();
}

}  // namespace

Callable::Callable(Session* session, const Function& f, std::string device, std::vector<Device*> feed_devices)
    : Callable(session, CallableSpec{f.args(), f.results(), f.targets()}, std::move(device)) {
  graph_ = &f.body();
  trial_.reset();
  signature_.takes_feeds = true;
  signature_.stays = true;
  signature_.feed_devices = std::move(feed_devices);
}

Callable::Callable(Session* session, CallableSpec spec) : Callable(session, spec, spec.near) {}

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
  signature_.stays = spec_.stays;
  if (session->options().placement == "learned" && spec_.over.empty() && !session->placements_->Find(SignatureText())) {
    trial_ = std::make_unique<PlacementTrial>(session->placements_.get(), &session->runtime(), session->options().placement_steps,
                                              SignatureText());
  }
  std::lock_guard lock(session_->all_mu_);
  session_->all_.insert(this);
}
Callable::~Callable() {
  if (paid_ > 0) session_->limits_->budget()->Give(paid_);
  std::lock_guard lock(session_->all_mu_);
  session_->all_.erase(this);
  PlanCounts counts = plans_.counts();
  counts.plans = counts.shapes = 0;
  session_->gone_.Add(counts);
}

Status CheckSpec(const Graph& graph, const CallableSpec& spec) {
  auto own = [&](const Node* n) { return n && n->id() < graph.size() && graph.node(n->id()) == n; };
  for (const auto* list : {&spec.feeds, &spec.fetches}) {
    for (const Edge& e : *list) {
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

Status CheckFeed(const Edge& e, const Tensor& feed) {
  if (!feed) return InvalidArgument("the feed of '", Shown(e.text()), "' is missing");
  const uint32_t want = e.node->out_type(e.port);
  if (feed.dtype() != BaseType(want)) {
    return InvalidArgument("the feed of '", Shown(e.text()), "' is ", DTypeName(feed.dtype()), " but must be ", DTypeName(want));
  }
  const Shape& shape = e.node->shape(e.port);
  if (shape.Admits(feed.view().dims, feed.rank())) return Status();
  return InvalidArgument("the feed of '", Shown(e.text()), "' has shape ", feed.shape().text(), " but must fit ", shape.text());
}

Status Callable::CheckFeeds(const Tensor* feeds) const {
  for (size_t i = 0; i < spec_.feeds.size(); ++i) RETURN_IF_ERROR(CheckFeed(spec_.feeds[i], feeds[i]));
  return Status();
}

Status Callable::CheckFeedValues(const Tensor* feeds) const {
  const ValueCheck check = ValueCheckOf(session_->options().check_values);
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    if (!feeds[i] || !LiesOnHost(*feeds[i].get()) || !IsRefused(feeds[i].view(), check)) continue;
    const tw_view& v = feeds[i].view();
    return InvalidArgument("the feed of '", Shown(spec_.feeds[i].text()), "' has ", check == ValueCheck::kNan ? "NaN" : "NaN or infinities",
                           ": ", DTypeName(v.dtype), ShapeText(v.dims, v.rank), RangeText(v), ", the first at ", FirstRefused(v, check));
  }
  return Status();
}

PlanOptions Callable::Options() const {
  const SessionOptions& o = session_->options();
  PlanOptions options;
  options.optimize = o.optimize;
  options.threads = session_->threads_;
  options.engine = o.engine;
  options.order = o.order;
  options.memory_budget = o.memory_budget;
  options.compilers = o.compilers;
  if (auto device = ParseDeviceSpec(o.device); device.ok()) options.device = *std::move(device);  // it was checked when it was set
  for (const std::string& rule : o.map_device) {
    if (auto parsed = ParseDeviceRule(rule); parsed.ok()) options.device_map.push_back(*std::move(parsed));  // likewise
  }
  if (auto own = MappedDevice(options.device_map, device_); own.ok() && !device_.empty()) {
    auto both = MergeDeviceSpecs(*own, options.device);
    options.device = both.ok() ? *std::move(both) : *std::move(own);
    options.may_leave_device = true;
  }
  options.fallback = o.fallback;
  options.prefer = o.prefer;
  options.capture = o.capture;
  if (session_->placements_) {
    options.placement = o.placement == "cost" ? "cost" : "simple";
    options.costs = session_->placements_->costs();
    if (o.placement == "learned" && graph_ == &session_->graph()) options.places = session_->placements_->Find(SignatureText());
  }
  options.disabled_passes = o.disabled_passes;
  options.check = ValueCheckOf(o.check_values);
  if (options.check != ValueCheck::kOff) {  // every result comes from a node that runs by itself
    options.compilers = "off";
    options.capture = false;
    options.disabled_passes.push_back("fold");
  }
  // Inlined calls no longer count towards the depth, and loops that become calls do. A bound that
  // either could reach therefore disables both passes.
  if (o.max_call_depth < uint32_t{kMostInlined}) {
    for (const char* pass : {"inline", "sequence"}) options.disabled_passes.push_back(pass);
  }
  options.imported = session_->limits_->imported();
  options.budget = session_->budget();
  return options;
}

// Estimates the memory of a plan, including its sizes, the names for messages and watchers, and one
// step state.
static uint64_t BytesOf(const Plan& plan) {
  constexpr uint64_t kNode = 2048, kValue = 384;
  return plan.nodes.size() * kNode + plan.shapes->values.size() * kValue;
}

// Charges the session for bytes that are held as long as this callable.
Status Callable::Pay(uint64_t bytes, const char* what, size_t nodes) {
  MemoryBudget* budget = session_->budget();
  if (!budget) return Status();
  uint64_t free = session_->free_for_plans_.load(std::memory_order_relaxed), used;
  do {
    used = std::min(free, bytes);
  } while (!session_->free_for_plans_.compare_exchange_weak(free, free - used, std::memory_order_relaxed));
  if (used == bytes) return Status();
  if (Status s = budget->Take(bytes - used); !s.ok()) return Prefix(s, StrCat(what, " of ", nodes, " nodes:"));
  paid_ += bytes - used;
  return Status();
}

StatusOr<std::unique_ptr<Plan>> Callable::MakePlan(const std::vector<Shape>& feed_shapes) {
  const uint64_t resets = session_->runtime().resources().resets();  // read before the plan gets handles
  ASSIGN_OR_RETURN(auto plan, CompilePlan(*graph_, signature_, feed_shapes, Options(), session_));
  plan->resets = resets;
  RETURN_IF_ERROR(Pay(BytesOf(*plan), "a plan", plan->nodes.size()));
  session_->plans_made_.fetch_add(1, std::memory_order_relaxed);
  if (trial_) trial_->Planned(*plan);
  return plan;
}

std::string Callable::SignatureText() const {
  std::string text = StrCat(graph_->size(), " nodes;");
  for (const Edge& e : spec_.feeds) text += StrCat(" <", e.text());
  for (const Edge& e : spec_.fetches) text += StrCat(" >", e.text());
  for (const Node* n : spec_.targets) text += StrCat(" !", n->name());
  return text;
}

Status Callable::Measure(const Tensor* feeds, Running* r) {
  if (!trial_ || trial_->over() || plans_.ServesAll(r->found.entry)) return Status();
  StepStats* watched = trial_->Watch(&r->state->plan());
  if (!watched) return Status();
  r->measured = true;
  for (size_t i = 0; i < spec_.feeds.size(); ++i) r->feed_shapes.push_back(feeds[i].shape());
  if (r->trace) return Status();  // the record for the profilers serves the trial as well
  r->stats = watched;
  ASSIGN_OR_RETURN(r->trace, StepTrace::Begin(r->stats));
  r->trace->Planned(false, 0);
  return Status();
}

// Returns true if the plan's blocks leave room on every device.
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
    if (!plan.ok() || !Fits(**plan) || !Pay(BytesOf(**plan), "a plan", (*plan)->nodes.size()).ok()) continue;
    session_->plans_made_.fetch_add(1, std::memory_order_relaxed);
    trial_->Replaced(**plan);
    plans_.Replace(r->found.entry, *std::move(plan), r->feed_shapes);
    return;
  }
}

Status Callable::Keep(const PlanShapes& shapes) {
  MemoryBudget* budget = session_->budget();
  if (!budget) return Status();
  // Only max_shapes sets are kept at once; the oldest is then evicted, so further sets are not paid
  // for.
  if (shapes_paid_ < session_->options().max_shapes) {
    const uint64_t bytes = shapes.values.size() * sizeof(PlanShapes::Value) + shapes.scratch.size() * (sizeof(PlanShapes::Scratch) + 1);
    RETURN_IF_ERROR(Pay(bytes, "the sizes of a plan", shapes.scratch.size()));
    ++shapes_paid_;
  }
  return ChargeConstants(shapes, budget);
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

// The work of a node on values of sizes known only at run time, such as values from other tasks,
// cannot be estimated. The nodes for which this returns true make nothing larger than their input.
static bool MakesNothingLarger(const PlanNode& n) {
  if (n.run.async) return true;  // the kernel only starts the work
  const std::string_view role = n.run.node ? std::string_view(n.run.node->op().role) : std::string_view();
  return role == "add_n" || role == "identity" || role == "send";
}

bool Callable::IsLight() {
  constexpr size_t kFewNodes = 200;
  constexpr uint64_t kLittle = 128 << 10;  // bytes: reading a 64 KiB value and writing another, some 20 us of a memory-bound kernel
  PlanCache::Found found;
  plans_.Latest(&found);
  if (!found.entry || found.plan->frames || found.plan->nodes.size() > kFewNodes) return false;
  // In a session of one thread, a step that waits for others blocks that thread (StartStep).
  ThreadPool* pool = session_->pool_;
  if (found.plan->async && !(found.plan->counted && pool && pool->HasThreadForTasks())) return false;
  const auto& values = found.shapes->values;
  const auto known = [&](int32_t v) { return values[size_t(v)].shape.known(); };
  return std::all_of(found.plan->nodes.begin(), found.plan->nodes.end(), [&](const PlanNode& n) {
    const bool sized = std::all_of(n.in.begin(), n.in.end(), known) && std::all_of(n.out.begin(), n.out.end(), known);
    return (sized || MakesNothingLarger(n)) && (PassesOn(n) || BytesTouched(n, *found.shapes) <= kLittle) && n.run.kernel &&
           !n.run.kernel->spec.may_block && n.run.device->host_memory() && !(n.run.node && CallsFunctions(n.run.node->op()));
  });
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
  if (Status s = Begin(&feeds, options, &r); !s.ok()) return Refused(&r, std::move(s));
  return End(&r, RunStep(r.state.get(), feeds, fetches));
}

void Callable::StartCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  auto r = std::make_shared<Running>();
  if (Status s = Begin(&feeds, options, r.get()); !s.ok()) {
    s = Refused(r.get(), std::move(s));
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
    r->state.reset();  // the state of a broken queue must be freed while the session exists
    r->trace.reset();  // `done` may reuse the statistics
    done(std::move(s));
  });
}

// Fast path: the feed is in host memory and the signature wants it there, as in most steps.
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
  r->stats = options.stats;
  if (!r->stats && session_->profilers_) {
    r->own_stats = session_->profilers_->TakeStats();
    r->stats = r->own_stats.get();
  }
  if (r->stats) {
    ASSIGN_OR_RETURN(r->trace, StepTrace::Begin(r->stats));
  }
  if (session_->check_feeds() && graph_ == &session_->graph()) RETURN_IF_ERROR(CheckFeedValues(feeds));
  const int64_t deadline = DeadlineAfter(options.deadline_ns > 0 ? options.deadline_ns : session_->timeout_ns_);
  ASSIGN_OR_RETURN(r->state, ReadyState(feeds, &r->found));
  r->state->cancel = options.cancel;
  r->state->deadline = deadline;
  r->state->rendezvous = options.rendezvous;
  const uint64_t step = session_->steps_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (r->trace) r->trace->Planned(r->found.made, step);
  if (!options.stats) RETURN_IF_ERROR(Measure(feeds, r));
  r->state->trace = r->trace.get();
  return Status();
}

Status Callable::End(Running* r, Status s) {
  r->state->trace = nullptr;
  const bool profiled = r->trace && session_->profilers_;
  if (r->trace) r->trace->Over(s);
  // A failed queue stays failed, so the state is not reused and the next step makes its own.
  if (!r->state->broken()) plans_.GiveBack(r->found.entry, std::move(r->state));
  if (session_->placements_ && r->trace) {
    r->trace.reset();
    Learn(r, s.ok());
  }
  if (profiled) Profile(r);
  return s;
}

Status Callable::Refused(Running* r, Status s) {
  if (!r->trace) return s;
  r->trace->Over(s);
  if (session_->profilers_) Profile(r);
  return s;
}

void Callable::Profile(Running* r) {
  r->trace.reset();
  session_->profilers_->Over(*r->stats);
  session_->profilers_->GiveBack(std::move(r->own_stats));
}

// Returns true if handles of the plan refer to contents of a container that was reset. Called after
// a reset.
bool Callable::HoldsReset(const Plan& plan, uint64_t resets) const {
  const auto& values = plan.shapes->values;
  if (std::any_of(values.begin(), values.end(), [](const auto& v) { return LeadsToReset(v.constant); })) return true;
  plan.resets.store(resets, std::memory_order_relaxed);
  return false;
}

Status Callable::FindPlan(const Tensor* feeds, PlanCache::Found* found) {
  for (;;) {
    if (!plans_.Find(feeds, found)) {
      RETURN_IF_ERROR(CheckFeeds(feeds));
      RETURN_IF_ERROR(plans_.Prepare(feeds, found));
    }
    const Plan& plan = *found->plan;
    const uint64_t resets = session_->runtime().resources().resets();
    const bool outdated = (plan.resets.load(std::memory_order_relaxed) != resets && HoldsReset(plan, resets)) ||
                          (!plan.fixed.empty() && graph_ == &session_->graph() && session_->IsOutdated(plan));
    if (!outdated) return Status();
    plans_.Drop(found->entry);
    *found = PlanCache::Found();
  }
}

StatusOr<std::unique_ptr<StepState>> Callable::ReadyState(const Tensor* feeds, PlanCache::Found* found) {
  // Plans are found by shape; this checks the types.
  for (size_t i = 0; i < spec_.feeds.size(); ++i) {
    if (!feeds[i] || feeds[i].dtype() != spec_.feeds[i].node->out_type(spec_.feeds[i].port)) RETURN_IF_ERROR(CheckFeeds(feeds));
  }
  RETURN_IF_ERROR(FindPlan(feeds, found));
  std::unique_ptr<StepState> state = std::move(found->state);
  if (!state) {
    ASSIGN_OR_RETURN(state, StepState::Create(found->plan, &session_->runtime(), session_->limits_->budget(), &session_->blocks_));
    state->container = &session_->options().container;
    state->moves_state = session_->options().fallback != "fail" || session_->placements_ || found->plan->accelerators_first;
    state->pool = session_->pool_;
    state->blocking = session_->blocking_.get();
    state->functions = session_;
    state->place = &device_;
    state->swapping = &session_->swapping_;
    state->closing = &session_->closing_;
    session_->LimitThreads(state.get());
  }
  if (!found->shapes) return state;
  Status bound = state->Bind(found->shapes);
  if (bound.code() == absl::StatusCode::kResourceExhausted) {  // idle states of other signatures may hold the missing memory
    session_->DropIdleStates();
    bound = state->Bind(found->shapes);
  }
  RETURN_IF_ERROR(bound);
  found->shapes.reset();
  return state;
}

}  // namespace thalweg
