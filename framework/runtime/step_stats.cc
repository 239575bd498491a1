#include "framework/runtime/step_stats.h"

#include <algorithm>
#include <map>

#include "framework/base/strings.h"
#include "framework/plan/plan.h"
#include "framework/runtime/frame.h"
#include "framework/runtime/timeline.h"

namespace thalweg {

void StepStats::Clear() {
  total_ = {};
  total_.size = sizeof total_;
  nodes_.clear();
  ops_.clear();
  texts_.clear();
}

const char* StepStats::Keep(std::string_view text) { return texts_.emplace(text).first->c_str(); }

void StepStats::SumUp() {
  std::map<std::string_view, tw_step_op> sums;
  for (const tw_step_node& n : nodes_) {
    tw_step_op& op = sums[n.op];
    op.size = sizeof op;
    op.op = n.op;
    ++op.count;
    op.busy_ns += n.busy_ns;
    op.output_bytes += n.output_bytes;
    op.allocated_bytes += n.allocated_bytes;
    total_.allocated_bytes += n.allocated_bytes;
  }
  for (const auto& [name, op] : sums) ops_.push_back(op);
  std::stable_sort(ops_.begin(), ops_.end(), [](const tw_step_op& a, const tw_step_op& b) { return a.busy_ns > b.busy_ns; });
  total_.nodes = uint32_t(nodes_.size());
}

StatusOr<std::unique_ptr<StepTrace>> StepTrace::Begin(StepStats* stats) {
  if (stats->taken_.exchange(true, std::memory_order_acquire)) {
    return FailedPrecondition("the step statistics are being filled by another run; give each run an object of its own");
  }
  return std::unique_ptr<StepTrace>(new StepTrace(stats));
}

StepTrace::StepTrace(StepStats* stats) : stats_(stats), began_(MonotonicNs()) { stats_->Clear(); }

StepTrace::~StepTrace() {
  if (!over_) Over(Status(absl::StatusCode::kUnknown, ""));
  stats_->taken_.store(false, std::memory_order_release);
}

int64_t StepTrace::Now() const { return MonotonicNs() - began_; }

void StepTrace::Planned(bool made) {
  stats_->total_.plan_ns = Now();
  if (made) stats_->total_.flags |= TW_STEP_PLANNED;
}

void StepTrace::Start(const Plan& plan, const PlanShapes& shapes) {
  plan_ = &plan;
  notes_.resize(plan.nodes.size());
  if (plan.counted) stats_->total_.flags |= TW_STEP_COUNTED;
  stats_->total_.block_bytes += shapes.total_bytes();
}

void StepTrace::Take(size_t i) {
  notes_[i].thread = std::this_thread::get_id();
  notes_[i].start = Now();
}

void StepTrace::Output(size_t i, uint64_t bytes, bool allocated) {
  notes_[i].bytes += bytes;
  if (allocated) notes_[i].allocated += bytes;
}

void StepTrace::Leave(size_t i, bool ends_later, bool ok) {
  notes_[i].left = Now();
  if (ends_later) return;
  notes_[i].end = notes_[i].left;
  notes_[i].failed = !ok;
}

void StepTrace::Ended(size_t i, bool ok) {
  notes_[i].end = Now();
  notes_[i].failed = !ok;
}

void StepTrace::Ran(const Run& run) {
  constexpr size_t kMostRuns = 1 << 20;
  if (runs_.size() == kMostRuns) return;
  Note note;
  note.start = run.start;
  note.left = run.left;
  note.end = run.end;
  note.bytes = run.bytes;
  note.allocated = run.allocated;
  note.thread = run.thread;
  note.failed = run.failed;
  runs_.emplace_back(run.node, note);
}

void StepTrace::EndsWith(size_t i, tw_timeline* line, uint64_t value) {
  auto reached = [](void* arg, const tw_status*) {
    auto* note = static_cast<Note*>(arg);
    StepTrace* trace = note->trace;
    note->end = trace->Now();
    trace->lines_.fetch_sub(1, std::memory_order_release);
  };
  notes_[i].trace = this;
  lines_.fetch_add(1, std::memory_order_relaxed);
  try {
    line->When(value, reached, &notes_[i]);
  } catch (...) {  // no memory: its end stays unknown
    lines_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// What a copy copies: the name of who made the value.
std::string StepTrace::CopiedName(size_t i, const std::vector<int32_t>& maker) const {
  const int32_t value = plan_->nodes[i].in[0];
  const int32_t made_by = maker[size_t(value)];
  if (made_by >= 0 && plan_->nodes[size_t(made_by)].run.node) return plan_->nodes[size_t(made_by)].run.node->name();
  const PlanValue& v = plan_->values[size_t(value)];
  return v.kind == PlanValue::kConst ? "constant" : "feed";
}

tw_step_node StepTrace::Record(size_t i, const Note& note, const std::vector<int32_t>& maker) {
  const PlanNode& n = plan_->nodes[i];
  tw_step_node r{};
  r.size = sizeof r;
  if (note.failed) r.flags |= TW_STEP_NODE_FAILED;
  if (n.kind == PlanNode::kKernel || n.kind == PlanNode::kFlow) {
    r.name = stats_->Keep(n.run.node->name());
    r.op = stats_->Keep(n.run.node->op().name);
    r.kernel = n.run.kernel ? stats_->Keep(n.run.kernel->spec.text) : "";
  } else {
    r.flags |= TW_STEP_NODE_COPY;
    r.name = stats_->Keep(CopiedName(i, maker));
    r.op = n.kind == PlanNode::kCopyIn ? "CopyToDevice" : n.kind == PlanNode::kCopyOut ? "CopyToHost" : "CopyToPeer";
    r.kernel = "";
  }
  r.device = stats_->Keep(n.run.device->name());
  r.start_ns = note.start;
  r.end_ns = std::max(note.end, note.start);
  // A call may complete before the thread that made it returns, and the step may be over before that thread has said so.
  r.busy_ns = std::clamp(note.left - note.start, int64_t{0}, r.end_ns - r.start_ns);
  r.output_bytes = note.bytes;
  r.allocated_bytes = note.allocated;
  return r;
}

void StepTrace::Finish() {
  // The devices are done, and the last of their threads about to say so.
  while (lines_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  std::vector<int32_t> maker(plan_->values.size(), -1);
  for (size_t i = 0; i < plan_->nodes.size(); ++i) {
    for (int32_t v : plan_->nodes[i].out) maker[size_t(v)] = int32_t(i);
  }
  std::vector<std::pair<size_t, const Note*>> ran;
  for (size_t i = 0; i < notes_.size(); ++i) {
    if (notes_[i].start >= 0) ran.emplace_back(i, &notes_[i]);
  }
  for (const auto& [i, note] : runs_) ran.emplace_back(i, &note);
  std::stable_sort(ran.begin(), ran.end(), [](const auto& a, const auto& b) { return a.second->start < b.second->start; });
  std::vector<std::thread::id> threads = {std::this_thread::get_id()};
  for (const auto& [i, note] : ran) {
    auto at = std::find(threads.begin(), threads.end(), note->thread);
    if (at == threads.end()) at = threads.insert(at, note->thread);
    stats_->nodes_.push_back(Record(i, *note, maker));
    stats_->nodes_.back().thread = uint32_t(at - threads.begin());
  }
  stats_->total_.threads = uint32_t(threads.size());
  plan_ = nullptr;
  stats_->SumUp();
}

void StepTrace::Over(const Status& s) {
  over_ = true;
  if (!s.ok()) stats_->total_.flags |= TW_STEP_FAILED;
  stats_->total_.wait_ns = waited_;
  stats_->total_.total_ns = Now();
}

}  // namespace thalweg
