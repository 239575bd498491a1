#include "framework/runtime/step_stats.h"

#include <algorithm>
#include <bit>

#include "framework/base/strings.h"
#include "framework/plan/plan.h"
#include "framework/runtime/device.h"
#include "framework/runtime/frame.h"
#include "framework/runtime/step.h"
#include "framework/runtime/timeline.h"

namespace thalweg {
namespace {

constexpr int64_t kShortestWait = 2'000;  // ns; less is what it takes to hand something over

}  // namespace

// ---- StepStats ----

void StepStats::Clear() {
  total_ = {};
  total_.size = sizeof total_;
  nodes_.clear();
  ops_.clear();
  waits_.clear();
  calls_.clear();
  threads_.clear();
  texts_.clear();
  node_texts_.clear();
  after_.clear();
}

const char* StepStats::Keep(std::string_view text) { return text.empty() ? "" : texts_.emplace(text).first->c_str(); }

// Nodes of one plan share the text of their op, those of several do not.
void StepStats::SumUp() {
  std::unordered_map<const char*, tw_step_op> by_text;
  for (const tw_step_node& n : nodes_) {
    tw_step_op& op = by_text[n.op];
    ++op.count;
    op.busy_ns += n.busy_ns;
    op.output_bytes += n.output_bytes;
    op.allocated_bytes += n.allocated_bytes;
  }
  std::unordered_map<std::string_view, size_t> place;
  for (const auto& [text, sums] : by_text) {
    auto [it, is_new] = place.try_emplace(text, ops_.size());
    if (is_new) ops_.push_back({sizeof(tw_step_op), 0, text, 0, 0, 0, 0});
    tw_step_op& op = ops_[it->second];
    op.count += sums.count;
    op.busy_ns += sums.busy_ns;
    op.output_bytes += sums.output_bytes;
    op.allocated_bytes += sums.allocated_bytes;
    total_.allocated_bytes += sums.allocated_bytes;
  }
  std::sort(ops_.begin(), ops_.end(), [](const tw_step_op& a, const tw_step_op& b) {
    return a.busy_ns != b.busy_ns ? a.busy_ns > b.busy_ns : std::string_view(a.op) < b.op;
  });
}

namespace {

// Of a thread of another process: a name that no thread here has, for rows of traces.
std::thread::id Foreign(size_t part, uint32_t thread) {
  static_assert(sizeof(std::thread::id) == sizeof(uint64_t));
  return std::bit_cast<std::thread::id>(uint64_t{part + 1} << 32 | (uint64_t{thread} + 1));
}

}  // namespace

void StepStats::Assemble(std::span<const Part> parts) {
  size_t n_after = 0;
  for (const Part& p : parts) {
    for (const tw_step_node& n : p.nodes) n_after += n.n_after;
  }
  after_.reserve(n_after);         // the records point into it
  threads_ = {std::thread::id()};  // the caller's, which ran no node
  for (size_t k = 0; k < parts.size(); ++k) {
    const Part& p = parts[k];
    const auto first_id = uint32_t(nodes_.size()), first_thread = uint32_t(threads_.size());
    for (uint32_t t = 0; t < p.threads; ++t) threads_.push_back(Foreign(k, t));
    total_.left_out += p.total.left_out;
    total_.block_bytes += p.total.block_bytes;
    total_.flags |= p.total.flags & (TW_STEP_COUNTED | TW_STEP_PLANNED);
    for (tw_step_node n : p.nodes) {
      if (nodes_.size() >= limit_) {
        ++total_.left_out;
        continue;
      }
      for (const char** text : {&n.name, &n.op, &n.device, &n.kernel, &n.shapes, &n.to, &n.function, &n.frame, &n.queue})
        *text = Keep(*text);
      n.id += first_id;
      n.thread += first_thread;
      const uint32_t* after = n.after;
      n.after = after_.data() + after_.size();
      for (uint32_t i = 0; i < n.n_after; ++i) after_.push_back(first_id + after[i]);
      nodes_.push_back(n);
    }
    for (tw_step_wait w : p.waits) {
      w.name = Keep(w.name);
      w.what = Keep(w.what);
      if (w.thread != UINT32_MAX) w.thread += first_thread;
      if (waits_.size() < limit_) waits_.push_back(w);
    }
    for (size_t i = 0; i < p.calls.size(); ++i) {
      calls_.push_back(p.calls[i]);
      calls_.back().function = Keep(p.calls[i].function);
      calls_.back().thread = Foreign(k, p.call_threads[i]);
    }
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  std::stable_sort(nodes_.begin(), nodes_.end(), earlier);
  std::stable_sort(waits_.begin(), waits_.end(), earlier);
  total_.threads = uint32_t(threads_.size());
  total_.nodes = uint32_t(nodes_.size());
  if (total_.left_out) total_.flags |= TW_STEP_CUT;
  SumUp();
}

// ---- StepTrace: the beginning ----

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
    : stats_(stats), root_(root ? root : this), began_(root ? root->began_ : MonotonicNs()) {
  if (root) return;
  stats_->Clear();
  stats_->total_.began_ns = began_;
}

StepTrace::~StepTrace() {
  for (Device* d : heard_) StopListening(d, this);
  if (root_ != this) return;
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
  notes_.resize(plan.nodes.size());
  {
    std::lock_guard lock(root_->mu_);
    stats_->node_texts_.push_back(texts_);
    stats_->total_.block_bytes += state->shapes()->total_bytes();
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

void StepTrace::Take(size_t i) {
  Note& n = notes_[i];
  const int64_t now = Now();
  const char* name = texts_->nodes[i].name;
  if (n.start >= 0) {
    AddWait(TW_STEP_WAIT_RESOURCE, std::max(n.start, std::atomic_ref(n.left).load(std::memory_order_relaxed)), now, name, "");
  } else if (n.ready >= 0 && now - n.ready >= kShortestWait) {
    AddWait(TW_STEP_WAIT_THREAD, n.ready, now, name, "");
  }
  n.thread = std::this_thread::get_id();
  n.start = now;
}

void StepTrace::Output(size_t i, uint64_t bytes, bool allocated) {
  notes_[i].bytes += bytes;
  if (allocated) notes_[i].allocated += bytes;
}

// Of a call that goes on, another thread may have taken the node again by now.
void StepTrace::Leave(size_t i, bool ends_later, bool ok) {
  Note& n = notes_[i];
  const int64_t now = Now();
  std::atomic_ref(n.left).store(now, std::memory_order_relaxed);
  if (ends_later) return;
  n.end = now;
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
  } catch (...) {  // no memory: it is left out
  }
  if (kept) return;
  std::lock_guard lock(root_->mu_);
  ++stats_->total_.left_out;
}

void StepTrace::EndsWith(size_t i, const void* stream, tw_timeline* line, uint64_t value) {
  auto reached = [](void* arg, const tw_status*) {
    auto* note = static_cast<Note*>(arg);
    StepTrace* trace = note->trace;
    note->end = trace->Now();
    trace->lines_.fetch_sub(1, std::memory_order_release);
  };
  notes_[i].trace = this;
  notes_[i].stream = stream;
  notes_[i].mark = value;
  lines_.fetch_add(1, std::memory_order_relaxed);
  try {
    line->When(value, reached, &notes_[i]);
  } catch (...) {  // no memory: its end stays unknown
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
  } catch (...) {  // no memory: it is left out
  }
  ++stats_->total_.left_out;
}

void StepTrace::Ran(const tw_span& span) {
  std::lock_guard lock(spans_mu_);
  if (!span.stream || spans_.size() >= stats_->limit_) return;
  try {
    spans_.push_back({std::string(span.queue, span.queue_len), span.begin - began_, span.end - began_, span.stream, span.after});
  } catch (...) {  // no memory: the node keeps what the host saw
  }
}

// ---- The end ----

// What a stream did after one mark and up to the next is of the node whose mark that is. Where a node did several things, the longest says
// which queue it ran on.
void StepTrace::PlaceSpans() {
  std::vector<Note*> marked;
  for (Note& n : notes_) {
    if (n.stream) marked.push_back(&n);
  }
  auto before = [](const Note* a, const Note* b) { return std::pair(a->stream, a->mark) < std::pair(b->stream, b->mark); };
  std::sort(marked.begin(), marked.end(), before);
  std::lock_guard lock(spans_mu_);
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.end - a.begin > b.end - b.begin; });
  for (const Span& s : spans_) {
    auto it = std::upper_bound(marked.begin(), marked.end(), std::pair(s.stream, s.after),
                               [](const auto& at, const Note* n) { return at < std::pair(n->stream, n->mark); });
    if (it == marked.end() || (*it)->stream != s.stream) continue;
    Note& n = **it;
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

tw_step_node StepTrace::Record(size_t i, const Note& note) const {
  const NodeTexts::Node& n = texts_->nodes[i];
  tw_step_node r{};
  r.size = sizeof r;
  if (note.failed) r.flags |= TW_STEP_NODE_FAILED;
  if (n.copy) r.flags |= TW_STEP_NODE_COPY;
  if (note.stream) r.flags |= TW_STEP_NODE_QUEUED;
  r.name = n.name;
  r.op = n.op;
  r.device = n.device;
  r.kernel = n.kernel;
  r.to = n.to;
  r.shapes = note.dims.empty() ? n.shapes : stats_->Keep(DimsText(note.dims));
  r.function = function_;
  r.call = call_;
  r.frame = "";
  r.queue = note.queue ? note.queue : "";
  r.device_start_ns = note.device_start;
  r.device_end_ns = note.device_end;
  r.start_ns = note.start;
  r.end_ns = std::max(note.end, note.start);
  // A call may complete before the thread that made it returns, and the step may be over before that thread has said so.
  r.busy_ns = std::clamp(note.left - note.start, int64_t{0}, r.end_ns - r.start_ns);
  r.output_bytes = note.bytes;
  r.allocated_bytes = note.allocated;
  return r;
}

void StepTrace::Add(const tw_step_node& record, std::thread::id thread, size_t after) {
  if (root_ != this && root_->nodes_.size() >= root_->room_) {
    ++stats_->total_.left_out;
    return;
  }
  root_->nodes_.push_back({record, thread, after});
  root_->nodes_.back().c.id = uint32_t(root_->nodes_.size()) - 1;
}

// REQUIRES, as AddRuns: the run's mu_.
void StepTrace::AddNotes() {
  root_->nodes_.reserve(root_->nodes_.size() + notes_.size());
  std::vector<int64_t> id(notes_.size(), -1);
  auto next = int64_t(root_->nodes_.size());
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (notes_[i].start >= 0) id[i] = next++;
  }
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (id[i] < 0) continue;
    tw_step_node r = Record(i, notes_[i]);
    const size_t at = stats_->after_.size();
    for (uint32_t k : texts_->nodes[i].after) {
      if (id[k] >= 0) stats_->after_.push_back(uint32_t(id[k]));
    }
    r.n_after = uint32_t(stats_->after_.size() - at);
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
    note.dims = std::move(run.dims);
    tw_step_node r = Record(run.node, note);
    r.frame = texts_->frames[size_t(run.frame)];
    r.loop = run.loop;
    r.iteration = run.iteration;
    Add(r, run.thread, 0);
  }
}

void StepTrace::Finish() {
  // The devices are done, and the last of their threads about to say so.
  while (lines_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  for (Device* d : heard_) StopListening(d, this);
  heard_.clear();
  if (!spans_.empty()) PlaceSpans();
  std::lock_guard lock(root_->mu_);
  AddNotes();
  AddRuns();
  state_ = nullptr;
  if (root_ == this) return Close();
  if (stats_->calls_.size() < stats_->limit_) {
    stats_->calls_.push_back({function_, call_, call_began_, Now(), std::this_thread::get_id()});
  }
}

// What calls and threads have noted, in the order of the starts, with threads by number.
void StepTrace::Close() {
  tw_step_total& total = stats_->total_;
  const auto earlier = [](const auto& a, const auto& b) { return a.c.start_ns < b.c.start_ns; };
  if (!std::is_sorted(nodes_.begin(), nodes_.end(), earlier)) std::stable_sort(nodes_.begin(), nodes_.end(), earlier);
  std::stable_sort(waits_.begin(), waits_.end(), earlier);
  if (nodes_.size() > stats_->limit_) {
    total.left_out += nodes_.size() - stats_->limit_;
    nodes_.resize(stats_->limit_);
  }
  std::vector<std::thread::id>& threads = stats_->threads_;
  threads = {std::this_thread::get_id()};
  auto number = [&](std::thread::id id) {
    if (id == threads[0]) return uint32_t{0};
    auto at = std::find(threads.begin(), threads.end(), id);
    if (at == threads.end()) at = threads.insert(at, id);
    return uint32_t(at - threads.begin());
  };
  stats_->nodes_.reserve(nodes_.size());
  for (NodeRecord& r : nodes_) {
    r.c.thread = number(r.thread);
    r.c.after = stats_->after_.data() + r.after;
    stats_->nodes_.push_back(r.c);
  }
  total.threads = uint32_t(threads.size());
  for (WaitRecord& w : waits_) {
    if (w.thread != std::thread::id()) w.c.thread = number(w.thread);
    stats_->waits_.push_back(w.c);
  }
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
