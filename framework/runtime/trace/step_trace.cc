#include "framework/runtime/trace/step_trace.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/plan/plan.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/devices/timeline.h"
#include "framework/runtime/step/frame.h"
#include "framework/runtime/step/step.h"

namespace thalweg {
namespace {

constexpr int64_t kShortestWait = 2'000;  // ns; a shorter wait is the cost of a hand-over
constexpr size_t kLongestName = 4096;     // bytes that are kept of a name that a kernel reports

uint64_t NextTrace() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

// ---- The beginning ----

StatusOr<std::unique_ptr<StepTrace>> StepTrace::Begin(StepStats* stats) {
  if (stats->taken_.exchange(true, std::memory_order_acquire)) {
    return FailedPrecondition("the step statistics are being filled by another run; give each run an object of its own");
  }
  return std::unique_ptr<StepTrace>(new StepTrace(stats, nullptr));
}

std::unique_ptr<StepTrace> StepTrace::BeginCall(StepTrace* outer, std::string_view function) {
  StepTrace* root = outer->root_;
  std::unique_ptr<StepTrace> call(new StepTrace(root->stats_, root));
  call->call_began_ = call->Now();
  std::lock_guard lock(root->mu_);
  call->function_ = root->stats_->Keep(function);
  call->call_ = ++root->calls_[std::string(function)];
  return call;
}

StepTrace::StepTrace(StepStats* stats, StepTrace* root)
    : stats_(stats), root_(root ? root : this), began_(root ? root->began_ : MonotonicNs()), id_(root ? root->id_ : NextTrace()) {
  if (root) return;
  stats_->Clear();
  stats_->trace_ = id_;
  stats_->total_.began_ns = began_;
}

StepTrace::~StepTrace() {
  for (Device* d : heard_) StopListening(d, this);
  if (root_ != this) return;
  notes_.swap(stats_->notes_);
  ids_.swap(stats_->ids_);
  if (!over_) Over(Status(absl::StatusCode::kUnknown, ""));
  stats_->taken_.store(false, std::memory_order_release);
}

int64_t StepTrace::Now() const { return MonotonicNs() - began_; }

void StepTrace::Planned(bool made, uint64_t step) {
  stats_->total_.plan_ns = Now();
  stats_->total_.step = step;
  if (made) stats_->total_.flags |= TW_STEP_PLANNED;
}

void StepTrace::Start(StepState* state) {
  state_ = state;
  const Plan& plan = state->plan();
  if (!state->texts) state->texts = NodeTexts::Of(plan, *state->shapes());
  texts_ = state->texts;
  if (root_ == this) {
    notes_.swap(stats_->notes_);
    ids_.swap(stats_->ids_);
  }
  notes_.assign(plan.nodes.size(), Note());
  if (texts_->asides) asides_.resize(notes_.size());
  {
    std::lock_guard lock(root_->mu_);
    auto& all = stats_->node_texts_;
    if (std::find(all.rbegin(), all.rend(), texts_) == all.rend()) {  // not another iteration of a loop
      all.push_back(texts_);
      stats_->total_.block_bytes += state->shapes()->total_bytes();
    }
    if (root_ == this) {
      if (plan.counted) stats_->total_.flags |= TW_STEP_COUNTED;
      room_ = stats_->limit_ > plan.nodes.size() ? stats_->limit_ - plan.nodes.size() : 0;
    }
  }
  Listen();
  for (size_t k = 0; plan.counted && k < plan.roots.size(); ++k) Ready(size_t(plan.roots[k]));
}

void StepTrace::Listen() {
  for (Device* d : state_->plan().devices) {
    if (d->has_streams() && ListenToSpans(d, this)) heard_.push_back(d);
  }
}

// ---- While it runs ----

void StepTrace::Take(size_t i, int32_t after) {
  Note& n = notes_[i];
  const int64_t now = after < 0 ? Now() : notes_[size_t(after)].left;
  if (n.start >= 0) {
    const int64_t left = std::max(n.start, std::atomic_ref(n.left).load(std::memory_order_relaxed));
    AddWait(TW_STEP_WAIT_RESOURCE, left, now, texts_->nodes[i].name, "");
  } else if (n.ready >= 0 && now - n.ready >= kShortestWait) {
    AddWait(TW_STEP_WAIT_THREAD, n.ready, now, texts_->nodes[i].name, "");
  }
  n.thread = std::this_thread::get_id();
  n.start = now;
}

void StepTrace::Output(size_t i, uint64_t bytes, bool allocated) {
  notes_[i].bytes += bytes;
  if (allocated) notes_[i].allocated += bytes;
}

// If the call continues, another thread may have taken the node again by now.
void StepTrace::Leave(size_t i, bool ends_later, bool ok) {
  Note& n = notes_[i];
  const int64_t now = Now();
  std::atomic_ref(n.left).store(now, std::memory_order_relaxed);
  if (ends_later) return;
  std::atomic_ref(n.end).store(now, std::memory_order_relaxed);  // a queue may report its end at the same time
  n.failed = !ok;
}

void StepTrace::Ended(size_t i, bool ok) {
  notes_[i].end = Now();
  notes_[i].failed = !ok;
}

void StepTrace::Ran(Run run) {
  bool kept = false;
  try {
    if (runs_.size() < root_->room_) {
      runs_.push_back(std::move(run));
      kept = true;
    }
  } catch (...) {  // no memory: the record is left out
  }
  if (kept) return;
  std::lock_guard lock(root_->mu_);
  ++stats_->total_.left_out;
}

void StepTrace::EndsWith(size_t i, const void* stream, tw_timeline* line, uint64_t value) {
  auto reached = [](void* arg, const tw_status*) {
    auto* aside = static_cast<Aside*>(arg);
    StepTrace* trace = aside->trace;
    std::atomic_ref(aside->note->end).store(trace->Now(), std::memory_order_relaxed);
    trace->lines_.fetch_sub(1, std::memory_order_release);
  };
  Aside& aside = asides_[i];
  aside.trace = this;
  aside.note = &notes_[i];
  aside.stream = stream;
  aside.mark = value;
  lines_.fetch_add(1, std::memory_order_relaxed);
  try {
    line->When(value, reached, &aside);
  } catch (...) {  // no memory: the end stays unknown
    lines_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void StepTrace::Waited(int64_t since, std::string_view device) {
  waited_ += Now() - since;
  Waited(since, device.empty() ? TW_STEP_WAIT_WORK : TW_STEP_WAIT_DEVICE, "", device);
}

void StepTrace::Waited(int64_t since, uint32_t why, std::string_view name, std::string_view what) {
  if (const int64_t now = Now(); now - since >= kShortestWait) AddWait(why, since, now, name, what);
}

void StepTrace::AddWait(uint32_t why, int64_t since, int64_t until, std::string_view name, std::string_view what) {
  std::lock_guard lock(root_->mu_);
  try {
    if (root_->waits_.size() < stats_->limit_) {
      const tw_step_wait w = {sizeof(tw_step_wait), 0, why, UINT32_MAX, since, until, stats_->Keep(name), stats_->Keep(what)};
      const bool held = why != TW_STEP_WAIT_RESOURCE && why != TW_STEP_WAIT_THREAD;
      root_->waits_.push_back({w, held ? std::this_thread::get_id() : std::thread::id()});
      return;
    }
  } catch (...) {  // no memory: the record is left out
  }
  ++stats_->total_.left_out;
}

template <class T, class F>
void StepTrace::AddUpToLimit(std::vector<T>* to, F&& make) {
  try {
    if (to->size() < stats_->limit_) return to->push_back(make());
  } catch (...) {  // no memory: the record is left out
  }
  ++stats_->total_.left_out;
}

void StepTrace::Span(const NodeRun& node, const tw_span& span) {
  std::lock_guard lock(root_->mu_);
  AddUpToLimit(&stats_->spans_, [&]() -> StepStats::KernelSpan {
    const std::string_view row(span.queue, span.queue ? span.queue_len : 0);
    return {stats_->Keep(node.node->name()),
            stats_->Keep(node.device->name()),
            stats_->Keep(Shown({span.name, span.name_len}, kLongestName)),
            stats_->Keep(Shown(row, kLongestName)),
            span.begin - began_,
            span.end - began_,
            std::this_thread::get_id()};
  });
}

void StepTrace::Count(const NodeRun& node, std::string_view name, int64_t value) {
  const int64_t now = Now();
  std::lock_guard lock(root_->mu_);
  AddUpToLimit(&stats_->counts_, [&]() -> StepStats::KernelCount {
    return {stats_->Keep(node.node->name()), stats_->Keep(node.device->name()), stats_->Keep(Shown(name, kLongestName)), now, value,
            std::this_thread::get_id()};
  });
}

void StepTrace::Ran(const tw_span& span) {
  std::lock_guard lock(spans_mu_);
  if (!span.stream || spans_.size() >= stats_->limit_) return;
  try {
    spans_.push_back({std::string(span.queue, span.queue_len), span.begin - began_, span.end - began_, span.stream, span.after});
  } catch (...) {  // no memory: the node keeps the times that the host saw
  }
}

// ---- The end ----

// Attributes work of a stream between two marks to the node of the second mark. If a node did
// several things, the longest one determines its queue.
void StepTrace::PlaceSpans() {
  std::vector<Aside*> marked;
  for (Aside& n : asides_) {
    if (n.stream) marked.push_back(&n);
  }
  auto before = [](const Aside* a, const Aside* b) { return std::pair(a->stream, a->mark) < std::pair(b->stream, b->mark); };
  std::sort(marked.begin(), marked.end(), before);
  std::lock_guard lock(spans_mu_);
  std::sort(spans_.begin(), spans_.end(), [](const DeviceSpan& a, const DeviceSpan& b) { return a.end - a.begin > b.end - b.begin; });
  for (const DeviceSpan& s : spans_) {
    auto it = std::upper_bound(marked.begin(), marked.end(), std::pair(s.stream, s.after),
                               [](const auto& at, const Aside* n) { return at < std::pair(n->stream, n->mark); });
    if (it == marked.end() || (*it)->stream != s.stream) continue;
    Aside& n = **it;
    if (!n.queue) {
      std::lock_guard keep(root_->mu_);
      n.queue = stats_->Keep(s.queue);
      n.device_start = s.begin;
      n.device_end = s.end;
    } else if (n.queue == s.queue) {
      n.device_start = std::min(n.device_start, s.begin);
      n.device_end = std::max(n.device_end, s.end);
    }
  }
}

void StepTrace::Write(size_t i, const Note& note, const Aside* aside, tw_step_node* to) const {
  const NodeTexts::Node& n = texts_->nodes[i];
  tw_step_node& r = *to;
  r.size = sizeof r;
  if (note.failed) r.flags |= TW_STEP_NODE_FAILED;
  if (n.copy) r.flags |= TW_STEP_NODE_COPY;
  r.name = n.name;
  r.op = n.op;
  r.device = n.device;
  r.kernel = n.kernel;
  r.to = n.to;
  r.shapes = n.shapes;
  r.function = function_;
  r.call = call_;
  r.frame = r.queue = "";
  r.start_ns = note.start;
  r.end_ns = std::max(note.end, note.start);
  // A call may complete before the thread that made it returns, and the step may end before that
  // thread has noted it.
  r.busy_ns = std::clamp(note.left - note.start, int64_t{0}, r.end_ns - r.start_ns);
  r.output_bytes = note.bytes + (note.failed ? 0 : n.output_bytes);
  r.allocated_bytes = note.allocated;
  if (!aside) return;
  if (aside->stream) r.flags |= TW_STEP_NODE_QUEUED;
  if (!aside->dims.empty()) r.shapes = stats_->Keep(DimsText(aside->dims));
  if (!aside->queue) return;
  r.queue = aside->queue;
  r.device_start_ns = aside->device_start;
  r.device_end_ns = aside->device_end;
}

void StepTrace::NumberNotes(size_t next) {
  ids_.assign(notes_.size(), UINT32_MAX);
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (notes_[i].start >= 0) ids_[i] = uint32_t(next++);
  }
}

// Appends the records that node i waited for; returns their number.
uint32_t StepTrace::AddAfter(size_t i) {
  const size_t at = stats_->after_.size();
  for (uint32_t k : texts_->nodes[i].after) {
    if (ids_[k] != UINT32_MAX) stats_->after_.push_back(ids_[k]);
  }
  return uint32_t(stats_->after_.size() - at);
}

void StepTrace::Add(const tw_step_node& record, std::thread::id thread, size_t after) {
  if (root_ != this && root_->nodes_.size() >= root_->room_) {
    ++stats_->total_.left_out;
    return;
  }
  root_->nodes_.push_back({record, thread, after});
  root_->nodes_.back().c.id = uint32_t(root_->nodes_.size()) - 1;
}

// Adds the notes of a call. REQUIRES, as for AddRuns: the run's mu_ is held.
void StepTrace::AddNotes() {
  root_->nodes_.reserve(root_->nodes_.size() + notes_.size());
  NumberNotes(root_->nodes_.size());
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (ids_[i] == UINT32_MAX) continue;
    tw_step_node r{};
    Write(i, notes_[i], asides_.empty() ? nullptr : &asides_[i], &r);
    const size_t at = stats_->after_.size();
    r.n_after = AddAfter(i);
    Add(r, notes_[i].thread, at);
  }
}

void StepTrace::AddRuns() {
  for (Run& run : runs_) {
    Note note;
    note.start = run.start;
    note.left = run.left;
    note.end = run.end;
    note.bytes = run.bytes;
    note.allocated = run.allocated;
    note.failed = run.failed;
    Aside aside;
    aside.dims = std::move(run.dims);
    tw_step_node r{};
    Write(run.node, note, &aside, &r);
    r.frame = texts_->frames[size_t(run.frame)];
    r.loop = run.loop;
    r.iteration = run.iteration;
    Add(r, run.thread, 0);
  }
}

void StepTrace::Finish() {
  // The devices are done, and their last callbacks are about to run.
  while (lines_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  for (Device* d : heard_) StopListening(d, this);
  heard_.clear();
  if (!spans_.empty()) PlaceSpans();
  std::lock_guard lock(root_->mu_);
  if (root_ != this) AddNotes();
  AddRuns();
  state_ = nullptr;
  if (root_ == this) return Close();
  if (stats_->calls_.size() < stats_->limit_) {
    stats_->calls_.push_back({function_, call_, call_began_, Now(), std::this_thread::get_id()});
  }
}

// Returns the number of a thread: 0 for the caller's, others in the order of the first request.
uint32_t StepTrace::NumberOf(std::thread::id thread) {
  std::vector<std::thread::id>& threads = stats_->threads_;
  auto at = std::find(threads.begin(), threads.end(), thread);
  if (at == threads.end()) at = threads.insert(at, thread);
  return uint32_t(at - threads.begin());
}

// Merges the records of calls and loops with the nodes of the graph, in the order of their starts.
// If two began at once, because the first took no time, the one that ended first precedes.
void StepTrace::AddInOrder() {
  std::vector<StepStats::Place>& places = stats_->places_;
  places.clear();
  places.reserve(nodes_.size() + notes_.size());
  for (size_t k = 0; k < nodes_.size(); ++k) places.push_back({nodes_[k].c.start_ns, nodes_[k].c.end_ns, k, false});
  NumberNotes(nodes_.size());
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (notes_[i].start >= 0) places.push_back({notes_[i].start, std::max(notes_[i].end, notes_[i].start), i, true});
  }
  const auto earlier = [](const auto& a, const auto& b) {
    return std::tie(a.start, a.end, a.noted, a.at) < std::tie(b.start, b.end, b.noted, b.at);
  };
  if (!std::is_sorted(places.begin(), places.end(), earlier)) std::sort(places.begin(), places.end(), earlier);
  if (places.size() > stats_->limit_) {
    stats_->total_.left_out += places.size() - stats_->limit_;
    places.resize(stats_->limit_);
  }
  stats_->nodes_.reserve(places.size());
  stats_->after_.reserve(stats_->after_.size() + texts_->n_after);  // the records point into it
  for (const StepStats::Place& p : places) {
    tw_step_node& r = stats_->nodes_.emplace_back();
    size_t after = stats_->after_.size();
    if (p.noted) {
      Write(p.at, notes_[p.at], asides_.empty() ? nullptr : &asides_[p.at], &r);
      r.id = ids_[p.at];
      r.n_after = AddAfter(p.at);
    } else {
      r = nodes_[p.at].c;
      after = nodes_[p.at].after;
    }
    r.thread = NumberOf(p.noted ? notes_[p.at].thread : nodes_[p.at].thread);
    r.after = stats_->after_.data() + after;
  }
}

void StepTrace::Close() {
  tw_step_total& total = stats_->total_;
  stats_->threads_ = {std::this_thread::get_id()};
  AddInOrder();
  total.threads = uint32_t(stats_->threads_.size());
  std::stable_sort(waits_.begin(), waits_.end(), [](const auto& a, const auto& b) { return a.c.start_ns < b.c.start_ns; });
  for (WaitRecord& w : waits_) {
    if (w.thread != std::thread::id()) w.c.thread = NumberOf(w.thread);
    stats_->waits_.push_back(w.c);
  }
  for (const StepStats::KernelSpan& s : stats_->spans_) NumberOf(s.thread);
  for (const StepStats::KernelCount& c : stats_->counts_) NumberOf(c.thread);
  for (const StepStats::Call& c : stats_->calls_) NumberOf(c.thread);
  stats_->RecordReports();
  total.nodes = uint32_t(stats_->nodes_.size());
  if (total.left_out) total.flags |= TW_STEP_CUT;
  stats_->SumUp();
}

void StepTrace::Over(const Status& s) {
  over_ = true;
  if (!s.ok()) stats_->total_.flags |= TW_STEP_FAILED;
  stats_->total_.wait_ns = waited_;
  stats_->total_.total_ns = Now();
}

}  // namespace thalweg
