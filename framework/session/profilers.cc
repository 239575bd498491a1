#include "framework/session/profilers.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {
namespace {

constexpr uint32_t kProfilerFailed = 3;  // the level TW_LOG_ERROR
constexpr size_t kMostSpareStats = 4;    // runs at once whose records keep their memory
constexpr const char* kWaitCauses[] = {"work", "device", "lock", "resource", "thread"};

// The profilers whose entries this thread is inside, the innermost first.
class EntryOf {
 public:
  explicit EntryOf(const Profilers* of) : of_(of) { innermost_ = this; }
  ~EntryOf() { innermost_ = outer_; }
  EntryOf(const EntryOf&) = delete;
  static bool IsRunning(const Profilers* of) {
    for (const EntryOf* e = innermost_; e; e = e->outer_) {
      if (e->of_ == of) return true;
    }
    return false;
  }

 private:
  static thread_local const EntryOf* innermost_;
  const Profilers* const of_;
  const EntryOf* const outer_ = innermost_;
};
thread_local const EntryOf* EntryOf::innermost_ = nullptr;

// The records of a step, made for a profiler. They refer to texts of the statistics.
class StepRecords {
 public:
  explicit StepRecords(const StepStats& stats) : stats_(stats), began_(stats.total().began_ns) {
    const tw_step_total& t = stats.total();
    step_ = {TW_SIZED(tw_profiled_step),
             stats.trace(),
             t.step,
             began_,
             began_ + t.total_ns,
             began_ + t.plan_ns,
             t.block_bytes,
             t.allocated_bytes,
             t.left_out,
             (t.flags & TW_STEP_FAILED) != 0,
             (t.flags & TW_STEP_PLANNED) != 0};
    for (const tw_step_node& n : stats.nodes()) AddNode(n);
    for (const tw_step_span& s : stats.span_records()) {
      Add(TW_PROFILED_KERNEL, {s.name, s.node, s.device, s.row}, s.start_ns, s.end_ns, s.thread);
    }
    for (const StepStats::Call& c : stats.calls()) {
      Add(TW_PROFILED_FUNCTION, {c.function, "", "", ""}, c.start, c.end, stats.NumberOf(c.thread));
    }
    for (const tw_step_wait& w : stats.waits()) {
      const char* name = kWaitCauses[std::min<size_t>(w.why, std::size(kWaitCauses) - 1)];
      Add(TW_PROFILED_WAIT, {name, w.name, w.what, ""}, w.start_ns, w.end_ns, w.thread);
    }
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const auto& a, const auto& b) { return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end); });
  }

  // Hands all records over; returns the first failure, after which only `done` is called.
  Status Give(const ProfilerRole& role, void* self) const {
    RETURN_IF_ERROR(FromC(role.def.step(role.host, self, &step_)));
    Status s;
    try {
      s = GiveParts(role, self);
    } catch (...) {  // no memory for an error; the profiler gets `done` all the same
      s = Thrown();
    }
    Status done = FromC(role.def.done(role.host, self));
    return s.ok() ? done : s;
  }

 private:
  struct Texts {
    std::string_view name, node, device, row;
  };

  void AddNode(const tw_step_node& n) {
    const bool copy = n.flags & TW_STEP_NODE_COPY;
    tw_profiled_span& span = Add(copy ? TW_PROFILED_COPY : TW_PROFILED_NODE, {n.op, n.name, n.device, ""}, n.start_ns, n.end_ns, n.thread);
    span.left = span.begin + std::clamp<int64_t>(n.busy_ns, 0, std::max<int64_t>(n.end_ns - n.start_ns, 0));  // a task may say anything
    span.bytes = n.output_bytes;
    span.failed = (n.flags & TW_STEP_NODE_FAILED) != 0;
    if (!*n.queue) return;
    Add(TW_PROFILED_QUEUE, {n.op, n.name, n.device, n.queue}, n.device_start_ns, n.device_end_ns, UINT32_MAX).bytes = n.output_bytes;
  }
  tw_profiled_span& Add(uint32_t kind, const Texts& t, int64_t start, int64_t end, uint32_t thread) {
    tw_profiled_span s = {TW_SIZED(tw_profiled_span)};
    Set(t.name, &s.name, &s.name_len);
    Set(t.node, &s.node, &s.node_len);
    Set(t.device, &s.device, &s.device_len);
    Set(t.row, &s.row, &s.row_len);
    s.begin = began_ + start;
    s.end = s.left = began_ + end;
    s.kind = kind;
    s.thread = thread;
    return spans_.emplace_back(s);
  }
  static void Set(std::string_view text, const char** at, uint64_t* len) {
    *at = text.data();
    *len = text.size();
  }
  Status GiveParts(const ProfilerRole& role, void* self) const {
    for (const tw_profiled_span& s : spans_) RETURN_IF_ERROR(FromC(role.def.span(role.host, self, &s)));
    for (const tw_step_count& c : stats_.count_records()) {
      tw_profiled_count count = {TW_SIZED(tw_profiled_count)};
      Set(c.name, &count.name, &count.name_len);
      Set(c.node, &count.node, &count.node_len);
      Set(c.device, &count.device, &count.device_len);
      count.at = began_ + c.at_ns;
      count.value = c.value;
      count.thread = c.thread;
      RETURN_IF_ERROR(FromC(role.def.count(role.host, self, &count)));
    }
    return Status();
  }

  const StepStats& stats_;
  const int64_t began_;
  tw_profiled_step step_;
  std::vector<tw_profiled_span> spans_;
};

std::string KnownProfilers(Registry& registry) {
  std::string names;
  for (const auto& role : registry.RolesOf<ProfilerRole>()) names += StrCat(names.empty() ? "" : ", ", "'", role->name, "'");
  return names.empty() ? "no loaded plugin has a profiler; load the plugin that has it" : StrCat("there are ", names);
}

}  // namespace

StatusOr<std::unique_ptr<Profilers>> Profilers::Start(Runtime* runtime, const std::vector<std::string>& chosen) {
  if (chosen.empty()) return nullptr;
  std::unique_ptr<Profilers> p(new Profilers(runtime));
  for (const std::string& one : chosen) RETURN_IF_ERROR(p->StartOne(one));
  return p;
}

Status Profilers::StartOne(const std::string& chosen) {
  const size_t colon = std::min(chosen.find(':'), chosen.size());
  const std::string name = chosen.substr(0, colon), argument = chosen.substr(std::min(colon + 1, chosen.size()));
  const auto found = name.empty() ? std::vector<std::shared_ptr<const ProfilerRole>>() : runtime_->registry().RolesOf<ProfilerRole>(name);
  if (found.empty())
    return NotFound("session option 'profiler': there is no profiler '", Shown(name), "'; ", KnownProfilers(runtime_->registry()));
  Running r{found.front()};
  running_.reserve(running_.size() + 1);  // nothing may throw once it is started
  const ThreadPool::MayBlock may_block;
  const Status s = FromC(r.role->def.start(r.role->host, r.role->def.user, argument.data(), argument.size(), &r.self));
  if (!s.ok()) return Prefix(s, StrCat("profiler '", name, "':"));
  running_.push_back(std::move(r));
  return Status();
}

std::unique_ptr<StepStats> Profilers::TakeStats() {
  if (!origin_.here()) return nullptr;
  std::lock_guard lock(spare_mu_);
  if (spare_.empty()) {
    spare_.reserve(kMostSpareStats);
    return std::make_unique<StepStats>();
  }
  auto stats = std::move(spare_.back());
  spare_.pop_back();
  return stats;
}

void Profilers::GiveBack(std::unique_ptr<StepStats> stats) noexcept {
  if (!stats || !origin_.here()) return;
  std::lock_guard lock(spare_mu_);
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(stats));
}

void Profilers::Log(const Running& r, const char* what, const Status& why) const noexcept {
  try {
    runtime_->Log(kProfilerFailed, StrCat("profiler '", r.role->name, "' of plugin '", r.role->plugin, "': ", what, ": ", Message(why)));
  } catch (...) {  // a log line that finds no memory is dropped
  }
}

void Profilers::Over(const StepStats& stats) noexcept {
  if (!origin_.here() || EntryOf::IsRunning(this)) return;
  const ThreadPool::MayBlock may_block;
  const std::lock_guard lock(mu_);
  const EntryOf here(this);
  std::optional<StepRecords> records;
  for (Running& r : running_) {
    Status s;
    try {
      if (!records) records.emplace(stats);
      s = records->Give(*r.role, r.self);
    } catch (...) {
      s = Thrown();
    }
    if (!s.ok() && !r.failed) Log(r, "records of a step are lost", s);
    r.failed = !s.ok();
  }
}

void Profilers::Stop() noexcept {
  if (!origin_.here()) return;
  const ThreadPool::MayBlock may_block;
  {
    std::unique_lock lock(spare_mu_);
    all_came_.wait(lock, [this] { return coming_ == 0; });
  }
  const std::lock_guard lock(mu_);
  const EntryOf here(this);
  for (Running& r : running_) {
    if (const Status s = FromC(r.role->def.stop(r.role->host, r.self)); !s.ok()) Log(r, "its profile may be incomplete", s);
  }
  running_.clear();
}

// ---- Steps that another thread hands over ----

Profilers::Coming::Coming(std::shared_ptr<Profilers> to, StepStats* given)
    : to_(std::move(to)), own_(given ? nullptr : to_->TakeStats()), stats_(given ? given : own_.get()) {
  std::lock_guard lock(to_->spare_mu_);
  ++to_->coming_;
}

Profilers::Coming::~Coming() {
  to_->GiveBack(std::move(own_));
  std::lock_guard lock(to_->spare_mu_);
  if (--to_->coming_ == 0) to_->all_came_.notify_all();
}

}  // namespace thalweg
