// Tasks of a session: greets and opens them, and detects lost ones.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "distributed/cluster_session.h"
#include "distributed/cluster_step.h"
#include "framework/runtime/runtime_of.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBeatEvery = kSecond;      // while steps run
constexpr int64_t kSilence = 10 * kSecond;   // a task that is silent for so long counts as lost
constexpr int64_t kCallTime = 60 * kSecond;  // to open a session

}  // namespace

// ---- Sessions of theirs ----

// Retries while nobody listens there yet: tasks may start in any order. A task that has not
// answered within the deadline is UNAVAILABLE: no step's deadline has passed, and a later attempt
// may reach it.
StatusOr<Hello> ClusterSession::Greet(const Destination& to, int64_t deadline, std::string* out_cluster) {
  WireWriter asks_features;
  asks_features.Number(kTakesPushes);
  for (int64_t pause = 10'000'000;; pause = std::min(2 * pause, kSecond / 2)) {
    Answered a = Await(Ask(to, Method::kHello, asks_features, {}, std::min(deadline, clock_->Now() + kSilence)).get());
    if (a.outcome.status.ok()) {
      auto hello = Hello::Get(a.fields);
      if (!hello.ok()) return Prefix(hello.status(), StrCat(to.title, ":"));
      if (out_cluster) *out_cluster = std::move(a.body);
      return hello;
    }
    const auto code = a.outcome.status.code();
    const bool later = code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded;
    if (!later) return a.outcome.status;
    if (clock_->Now() + pause >= deadline) {
      if (code == absl::StatusCode::kUnavailable) return a.outcome.status;
      return Error(absl::StatusCode::kUnavailable, to.title, " cannot be reached: has not answered in time");
    }
    {
      std::lock_guard lock(mu_);
      if (closed_) return Closed();
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause));
  }
}

// REQUIRES: prepare_mu_. Makes the task open the session.
Status ClusterSession::Open(int32_t task, int64_t deadline) {
  Destination to;
  {
    std::lock_guard lock(mu_);
    TaskState& t = tasks_[size_t(task)];
    if (closed_) return Closed();
    if (t.open) return Status();
    to = t.to;
  }
  to.incarnation = 0;
  ASSIGN_OR_RETURN(const Hello hello, Greet(to, deadline, nullptr));
  const TaskId& id = cluster_.tasks()[size_t(task)].id;
  if (TaskId{hello.job, hello.index} != id) {
    return FailedPrecondition(to.title, ": there is ", TaskId{hello.job, hello.index}.text(), "; do all processes have the same cluster?");
  }
  to.incarnation = hello.incarnation;
  WireWriter w;
  OpenRequest{id_, texts_}.Put(&w);
  const int64_t until = clock_->Now() + kCallTime;
  std::string owner;
  for (;;) {
    const Answered a = Await(Ask(to, Method::kOpen, w, {}, until).get());
    const Status& s = a.outcome.status;
    if (s.ok()) owner = WireReader(a.fields).Text();
    if (s.ok()) break;
    // The old session there is about to end: its watch has ended.
    if (s.code() != absl::StatusCode::kAlreadyExists) return s;
    if (clock_->Now() >= deadline) return Error(absl::StatusCode::kUnavailable, Message(s));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::lock_guard lock(mu_);
  if (closed_) return Closed();
  TaskState& t = tasks_[size_t(task)];
  t.to = to;
  t.version = hello.version;
  t.features = hello.features;
  t.owner = owner;
  t.here = owner.empty() ? nullptr : locals_->Find(hello.incarnation);
  t.open = true;
  ++t.opened;
  WatchLocked(task);  // before any other thread can report the task as lost
  return Status();
}

// The call is answered only when the task is lost, or no longer takes part in the session.
void ClusterSession::WatchLocked(int32_t task) {
  TaskState& t = tasks_[size_t(task)];
  Call call;
  call.to = t.to;
  call.method = Method::kWatch;
  SessionRequest{id_}.Put(&call.fields);
  // A cancelled call may end only after the task was opened again.
  call.done = [this, task, opened = t.opened](const Reply& reply) {
    {
      std::lock_guard again(mu_);
      const TaskState& now = tasks_[size_t(task)];
      if (closed_ || !now.open || now.opened != opened) return;
    }
    TaskFailed(task, reply.outcome.status);
  };
  t.watch = messenger_->Start(std::move(call));
}

uint64_t ClusterSession::LoseLocked(int32_t task) {
  TaskState& t = tasks_[size_t(task)];
  if (!t.open) return 0;
  t.open = false;
  t.forgot = true;
  t.to.incarnation = 0;
  if (auto at = unended_.find(task); at != unended_.end()) at->second.steps.clear();  // they end before the task is opened again
  std::erase_if(prepared_, [&](auto& entry) {
    const auto& all = entry.second.prepared->tasks;
    const bool lapses = std::any_of(all.begin(), all.end(), [&](const Prepared::Task& p) { return p.task == task; });
    if (lapses) lapsed_.push_back(std::move(entry.second.prepared));
    return lapses;
  });
  return std::exchange(t.watch, 0);
}

void ClusterSession::Lose(int32_t task) {
  uint64_t watch;
  {
    std::lock_guard lock(mu_);
    watch = LoseLocked(task);
  }
  if (watch) messenger_->Cancel(watch);
  GoOn(task);
}

// Marks the task as lost first: a caller that hears of the failure may begin the next step at once,
// which must not rely on registrations at that task. Cancels the watch last, because the end of the
// session there fails steps too.
void ClusterSession::TaskFailed(int32_t task, const Status& why) {
  std::vector<std::shared_ptr<ClusterStep>> running;
  uint64_t watch;
  {
    std::lock_guard lock(mu_);
    for (auto& [id, step] : running_) running.push_back(step);
    watch = LoseLocked(task);
  }
  for (auto& step : running) step->TaskFailed(task, why);
  if (watch) messenger_->Cancel(watch);
  GoOn(task);
}

// ---- The membership service ----

Status ClusterSession::WatchMembers() {
  if (cluster_.membership().empty()) return Status();
  const auto watch = [this](Members* members) {
    uint64_t which;
    {
      std::lock_guard lock(mu_);
      which = ++member_watches_;
      for (TaskState& t : tasks_) t.announced = 0;  // the previous watch may have missed the loss of some task
    }
    return members->Watch([this, which](const TaskId& id, uint64_t incarnation) { MemberChanged(which, id, incarnation); });
  };
  const Members::Config member = {cluster_.membership(), StrCat("client ", id_), options_.credentials};
  membership_ = std::make_unique<Membership>(&RuntimeOf(*graph_), member, watch);
  return membership_->Start();
}

// Handles a report that a task is gone, or has a new incarnation. A report on a task that is not
// open in this session has no effect.
void ClusterSession::MemberChanged(uint64_t watch, const TaskId& id, uint64_t incarnation) {
  const ClusterSpec::Task* found = cluster_.Find(id);
  if (!found) return;
  const auto task = size_t(found - cluster_.tasks().data());
  {
    std::lock_guard lock(mu_);
    if (watch != member_watches_) return;
    tasks_[task].announced = incarnation;
    if (closed_ || !tasks_[task].open || tasks_[task].to.incarnation == incarnation) return;
  }
  TaskFailed(int32_t(task), incarnation ? Error(absl::StatusCode::kAborted, found->title(), ": was restarted, says ", cluster_.membership())
                                        : Error(absl::StatusCode::kUnavailable, found->title(), ": is gone, says ", cluster_.membership()));
}

// ---- Signs of life ----

int64_t ClusterSession::BeatEvery() const {
  const int64_t bound = int64_t{options_.progress_timeout_ms} * 1'000'000;
  return bound ? std::clamp(bound / 4, kSecond / 100, kBeatEvery) : kBeatEvery;
}

// If the membership service tracks a task, the task is asked only for its progress, and only if the
// client wants to know it: the service tells whether its process is alive, and the transport, by
// the watch call, whether it can be reached.
void ClusterSession::Beat() {
  struct Asked {
    int32_t task;
    Destination to;
    uint64_t opened;
  };
  std::vector<Asked> ask;
  {
    std::lock_guard lock(mu_);
    beating_ = !running_.empty() && !closed_;
    if (!beating_) return;
    const bool told = membership_ && membership_->joined() && !options_.progress_timeout_ms;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      TaskState& t = tasks_[i];
      const bool used = std::any_of(running_.begin(), running_.end(), [&](const auto& r) { return r.second->Uses(int32_t(i)); });
      if (!t.open || t.beating || !used || (told && t.announced == t.to.incarnation)) continue;
      t.beating = true;
      ask.push_back({int32_t(i), t.to, t.opened});
    }
  }
  for (const Asked& entry : ask) {
    Call call;
    call.to = entry.to;
    if (options_.progress_timeout_ms) {
      call.method = Method::kStatus;
      SessionRequest{id_}.Put(&call.fields);
    }
    call.deadline = clock_->Now() + kSilence;
    call.done = [this, task = entry.task, opened = entry.opened](const Reply& reply) { AnswerOfBeat(task, opened, reply); };
    messenger_->Start(std::move(call));
  }
  clock_->At(clock_->Now() + BeatEvery(), [this] { Beat(); });
}

// opened: the count of openings when the task was asked. An answer to an earlier opening is
// ignored.
void ClusterSession::AnswerOfBeat(int32_t task, uint64_t opened, const Reply& reply) {
  {
    std::lock_guard lock(mu_);
    TaskState& now = tasks_[size_t(task)];
    now.beating = false;
    if (closed_ || !now.open || now.opened != opened) return;
  }
  Status s = reply.outcome.status;
  if (s.ok()) return options_.progress_timeout_ms ? LookAt(task, reply.body) : void();
  if (s.code() == absl::StatusCode::kDeadlineExceeded) {
    s = Error(absl::StatusCode::kUnavailable, Message(s), " (", kSilence / kSecond, " s): it counts as lost");
  }
  TaskFailed(task, s);
}

// Passes the report of a live task on this session's steps to these steps.
void ClusterSession::LookAt(int32_t task, std::string_view body) {
  const auto status = TaskStatus::Get(body);
  if (!status.ok()) return TaskFailed(task, status.status());
  for (const RunStatus& run : status->runs) {
    std::shared_ptr<ClusterStep> step;
    {
      std::lock_guard lock(mu_);
      if (auto it = running_.find(run.step); it != running_.end() && run.session == id_) step = it->second;
    }
    if (step) step->Look(task, run, int64_t{options_.progress_timeout_ms} * 1'000'000);
  }
}

}  // namespace thalweg::distributed
