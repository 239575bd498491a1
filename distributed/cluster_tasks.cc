// Tasks of a session: greeting and opening them, and what tells that one is lost.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "distributed/cluster_session.h"
#include "distributed/cluster_step.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBeatEvery = kSecond;      // while steps run
constexpr int64_t kSilence = 10 * kSecond;   // a task that says nothing for so long counts as lost
constexpr int64_t kCallTime = 60 * kSecond;  // to open a session

}  // namespace

// ---- Sessions of theirs ----

// Asks again where nobody is there yet: tasks may start in any order. Who has not answered in all that time is out of reach: no step's
// deadline is over, and who asks again may find him.
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

// REQUIRES: prepare_mu_. The task knows the session afterwards.
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
    // What it knows of this session is about to end: its watch was.
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
  WatchLocked(task);  // before anybody can say that the task is lost
  return Status();
}

// Is answered only when the task is lost, or has no part in the session any more.
void ClusterSession::WatchLocked(int32_t task) {
  TaskState& t = tasks_[size_t(task)];
  Call call;
  call.to = t.to;
  call.method = Method::kWatch;
  SessionRequest{id_}.Put(&call.fields);
  // One that was cancelled may be told so when the task is open again.
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
  if (auto at = unended_.find(task); at != unended_.end()) at->second.steps.clear();  // it is opened again only when they have ended
  std::erase_if(prepared_, [&](const auto& entry) {
    const auto& all = entry.second.prepared->tasks;
    return std::any_of(all.begin(), all.end(), [&](const Prepared::Task& p) { return p.task == task; });
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

// Whoever hears of the failure may begin the next step at once, which must not count on what the task was told. The session ends there
// last, for its end fails steps, too.
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

// ---- A service that knows who is alive ----

Status ClusterSession::WatchMembers() {
  if (cluster_.membership().empty()) return Status();
  const auto watch = [this](Members* members) {
    uint64_t which;
    {
      std::lock_guard lock(mu_);
      which = ++member_watches_;
      for (TaskState& t : tasks_) t.announced = 0;  // the watch before may not have heard of all that went
    }
    return members->Watch([this, which](const TaskId& id, uint64_t incarnation) { MemberChanged(which, id, incarnation); });
  };
  const Members::Config member = {cluster_.membership(), StrCat("client ", id_), options_.credentials};
  membership_ = std::make_unique<Membership>(&graph_->runtime(), member, watch);
  return membership_->Start();
}

// The service says that a task has gone, or is another one now. What it says of a task that this session does not know is nothing to it.
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

// A task of which the membership service tells is asked only how far it has come, where somebody wants to know: whether its process is
// alive the service says, and whether it is out of reach the transport, at the call that watches it.
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

// opened: how often the task was open when it was asked. What it says is nothing to who has opened it since.
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

// What a task that is alive says of this session's steps.
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
