#include "distributed/cluster_step.h"

#include <algorithm>
#include <utility>

#include "distributed/messages.h"
#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kGrace = 1'000'000'000;  // nanoseconds for tasks to report failures, once a step has failed
constexpr int64_t kLook = 10'000'000;      // interval of checks whether the client cancelled
constexpr int64_t kAbortTime = 10'000'000'000;
constexpr int64_t kEndTime = 10'000'000'000;  // for a failed step to end on a task where a later one is to run

}  // namespace

ClusterStep::ClusterStep(ClusterSession* session, std::shared_ptr<const Prepared> prepared, int64_t deadline, const CancelToken* cancel,
                         std::function<void(Status)> done)
    : session_(session), prepared_(std::move(prepared)), deadline_(deadline), cancel_(cancel), done_(std::move(done)) {
  parts_.resize(prepared_->tasks.size());
  open_ = prepared_->tasks.size();
}

bool ClusterStep::Uses(int32_t task) const {
  return std::any_of(prepared_->tasks.begin(), prepared_->tasks.end(), [&](const Prepared::Task& t) { return t.task == task; });
}

void ClusterStep::Begin(const Tensor* feeds, StepTrace* trace, int64_t began) {
  began_ = began;
  std::vector<Payload> bodies;
  bodies.reserve(prepared_->tasks.size());
  for (const Prepared::Task& t : prepared_->tasks) {
    std::vector<Tensor> mine;
    for (int32_t f : t.feeds) mine.push_back(feeds[f]);
    WireWriter w;
    if (Status s = PutTensors(mine.data(), mine.size(), &w); !s.ok()) {
      std::lock_guard lock(mu_);
      failure_ = {s, false};
      break;
    }
    bodies.push_back(Payload::Of(w.Take()));
  }
  session_->Enter(shared_from_this());
  {
    std::lock_guard lock(mu_);
    if (trace && !over_) trace->Planned(false, id_);  // else the trace must not be touched any more
  }
  if (bodies.size() < prepared_->tasks.size() || bodies.empty()) return Finish();
  bool in_turn;
  {
    std::lock_guard lock(session_->mu_);
    oldest_ = session_->running_.empty() ? id_ : session_->running_.begin()->first;  // the step may have failed meanwhile
    in_turn = !session_->unended_.empty();
  }
  const auto send = [&](size_t i) { in_turn ? SendInTurn(i, std::move(bodies[i])) : Send(i, std::move(bodies[i])); };
  const auto& tasks = prepared_->tasks;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].here) send(i);
  }
  if (deadline_ || cancel_) Tick();
  {
    std::lock_guard lock(mu_);
    if (over_) return;
  }
  // Local parts come last, since they take this thread and may end the step.
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].here) send(i);
  }
}

// A client that was told of a step's failure may rely on the failed step changing no state once the
// next step begins.
void ClusterStep::SendInTurn(size_t part, Payload body) {
  const Prepared::Task& t = prepared_->tasks[part];
  const auto go_on = [self = shared_from_this(), part, body] {
    const Prepared::Task& task = self->prepared_->tasks[part];
    if (self->session_->Knows(task)) return self->Send(part, body);
    self->Fail({Error(absl::StatusCode::kUnavailable, task.to.title, " was lost before its part of the step began"), false}, false);
  };
  if (!session_->WhenEnded(t.task, go_on)) return go_on();
  session_->clock_->At(session_->clock_->Now() + kEndTime, [weak = weak_from_this(), part] {
    const auto self = weak.lock();
    if (!self) return;
    const std::string& title = self->prepared_->tasks[part].to.title;
    {
      std::lock_guard lock(self->mu_);
      if (self->over_ || self->parts_[part].sent) return;
    }
    self->Fail({Error(absl::StatusCode::kUnavailable, title, " is still at work for an earlier step of this session, which failed, after ",
                      kEndTime / 1'000'000'000, " s; run this one again later"),
                false},
               false);
  });
}

void ClusterStep::Send(size_t part, Payload body) {
  {
    std::lock_guard lock(mu_);
    if (over_ || parts_[part].answered) return;
    parts_[part].sent = true;
  }
  const Prepared::Task& t = prepared_->tasks[part];
  const int64_t left = deadline_ ? std::max<int64_t>(deadline_ - session_->clock_->Now(), 1) : 0;
  const RunRequest m{session_->id_, t.handle, id_, oldest_, left};
  t.here ? RunHere(part, m, std::move(body)) : Ask(part, m, std::move(body));
}

void ClusterStep::Ask(size_t part, const RunRequest& m, Payload body) {
  Call call;
  call.to = prepared_->tasks[part].to;
  call.method = began_ ? Method::kWatchedRun : Method::kRun;
  if (began_) parts_[part].asked_at = session_->clock_->Now();
  m.Put(&call.fields);
  call.body = std::move(body);
  call.done = [self = shared_from_this(), part](const Reply& reply) { self->Answered(part, reply); };
  session_->messenger_->Start(std::move(call));
}

void ClusterStep::RunHere(size_t part, const RunRequest& m, Payload body) {
  const Prepared::Task& t = prepared_->tasks[part];
  if (began_) parts_[part].asked_at = session_->clock_->Now();
  auto answer = [self = shared_from_this(), part, gate = session_->answers_](std::string head, Payload results) {
    const Gate::Pass pass(gate.get());
    if (!pass) return;  // the session has ended, and the step with it
    Reply reply;
    auto outcome = GetAnswer(head, &reply.fields);
    reply.outcome.status = outcome.status();
    if (outcome.ok()) reply.outcome = *std::move(outcome);
    if (Status& s = reply.outcome.status; !s.ok()) s = Prefix(s, StrCat(self->prepared_->tasks[part].to.title, ":"));
    reply.body = {static_cast<const char*>(results.data), size_t(results.bytes)};
    self->Answered(part, reply);
  };
  if (t.here->Run({t.owner, m.session}, m, began_ != 0, std::move(body), std::move(answer))) return;
  Reply gone;
  gone.reached = false;
  gone.outcome.status = Error(absl::StatusCode::kUnavailable, t.to.title, " cannot be reached: it is going away");
  Answered(part, gone);
}

// Ends the step if it is cancelled or its deadline has passed.
void ClusterStep::Tick() {
  Clock& clock = *session_->clock_;
  const int64_t now = clock.Now();
  bool cancelled;
  {
    std::lock_guard lock(mu_);
    if (over_) return;  // the token may no longer exist
    cancelled = cancel_ && cancel_->cancelled();
  }
  if (cancelled) return Fail({Error(absl::StatusCode::kCancelled, "the run was cancelled"), false}, true);
  if (deadline_ && now >= deadline_) {
    std::string who;
    {
      std::lock_guard lock(mu_);
      who = StillOut();
    }
    return Fail({Error(absl::StatusCode::kDeadlineExceeded, "the time of the run is over; not done yet: ", who), false}, true);
  }
  const int64_t next = cancel_ ? (deadline_ ? std::min(deadline_, now + kLook) : now + kLook) : deadline_;
  std::lock_guard lock(mu_);
  if (!over_)
    timer_ = clock.At(next, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Tick();
    });
}

std::string ClusterStep::StillOut() const {
  std::string all;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].answered) all += StrCat(all.empty() ? "" : ", ", prepared_->tasks[i].to.title);
  }
  return all;
}

// Returns the fetches. Stores the statistics that follow them in the body, and hands carried values
// to the tasks of this program.
StatusOr<std::vector<Tensor>> ClusterStep::TakeAnswer(size_t part, const Reply& reply) {
  if (reply.fields.empty()) return GetTensors(reply.body);
  WireReader fields(reply.fields);
  const auto stats = began_ ? fields.Number<uint64_t>() : 0;
  const auto carried = fields.rest().empty() ? 0 : fields.Number<uint64_t>();
  RETURN_IF_ERROR(fields.End("the answer to a run"));
  const uint64_t all = reply.body.size();
  if (stats > all || carried > all - stats) return InvalidArgument("an answer to a run of ", all, " bytes says that it has more");
  const size_t at = size_t(all - stats - carried);
  if (began_) {
    std::lock_guard lock(mu_);
    parts_[part].answered_at = session_->clock_->Now();
    parts_[part].stats = reply.body.substr(at, size_t(stats));
  }
  if (carried) RETURN_IF_ERROR(TakeCarried(reply.body.substr(at + size_t(stats))));
  return GetTensors(reply.body.substr(0, at));
}

Status ClusterStep::TakeCarried(std::string_view carried) {
  ASSIGN_OR_RETURN(auto all, GetCarried(carried));
  for (CarriedValues& c : all) {
    const auto task = std::find_if(prepared_->tasks.begin(), prepared_->tasks.end(),
                                   [&](const Prepared::Task& t) { return t.here && t.to.incarnation == c.incarnation; });
    if (task == prepared_->tasks.end()) return InvalidArgument("values came for a task that is none of this program's");
    task->here->Take({task->owner, session_->id_}, id_, std::move(c.values));
  }
  return Status();
}

// Maps times of tasks to the client's clock: a task's part is assumed to lie in the middle of the
// time between request and answer.
std::vector<StatsPart> ClusterStep::TakeStats() {
  std::vector<StatsPart> all;
  std::lock_guard lock(mu_);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const PartState& p = parts_[i];
    if (p.stats.empty()) continue;
    WireReader head(p.stats);
    const int64_t took = std::clamp<int64_t>(head.Number<int64_t>(), 0, p.answered_at - p.asked_at);
    const int64_t way = p.answered_at - p.asked_at - took;
    StatsPart part;
    const TaskId& id = session_->cluster_.tasks()[size_t(prepared_->tasks[i].task)].id;
    part.task = StrCat("/job:", id.job, "/replica:0/task:", id.index);
    if (head.ok() && GetStats(head.rest(), p.asked_at - began_ + way / 2, &part).ok()) all.push_back(std::move(part));
  }
  return all;
}

void ClusterStep::Answered(size_t part, const Reply& reply) {
  const Prepared::Task& t = prepared_->tasks[part];
  Outcome outcome = reply.outcome;
  std::vector<Tensor> results;
  if (outcome.status.ok()) {
    auto tensors = TakeAnswer(part, reply);
    if (tensors.ok() && tensors->size() != t.n_fetches) tensors = InvalidArgument(tensors->size(), " values for ", t.n_fetches, " fetches");
    if (tensors.ok()) results = *std::move(tensors);
    if (!tensors.ok()) outcome.status = Prefix(tensors.status(), StrCat(t.to.title, ":"));
  }
  const auto code = outcome.status.code();
  if (!reply.reached && code == absl::StatusCode::kUnavailable) session_->Lose(t.task);
  if (reply.reached && !outcome.consequence && code == absl::StatusCode::kAborted) session_->Lose(t.task);
  bool last, late;
  {
    std::lock_guard lock(mu_);
    parts_[part].answered = true;
    parts_[part].results = std::move(results);
    last = --open_ == 0;
    late = over_;
  }
  if (late) return session_->PartEnded(t.task, id_);
  if (!outcome.status.ok()) Fail(outcome, false);
  if (last) Finish();
}

void ClusterStep::TaskFailed(int32_t task, const Status& why) {
  if (Uses(task)) Fail({why, false}, false);
}

void ClusterStep::Look(int32_t task, const RunStatus& status, int64_t bound) {
  std::string culprit, all;
  {
    std::lock_guard lock(mu_);
    bool moves = false;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Prepared::Task& t = prepared_->tasks[i];
      if (t.task == task) {
        parts_[i].waits = status.n_waits > 0;
        parts_[i].stuck = status.idle < bound ? "" : t.to.title;
        if (!parts_[i].stuck.empty() && !status.waits.empty())
          parts_[i].stuck += StrCat(", which waits for '", Shown(status.waits[0].first), "' of ", status.waits[0].second);
      }
      if (parts_[i].answered) continue;
      moves = moves || parts_[i].stuck.empty();
      if (!parts_[i].stuck.empty() && !parts_[i].waits && culprit.empty()) culprit = parts_[i].stuck;
      all += StrCat(all.empty() ? "" : "; ", parts_[i].stuck);
    }
    if (moves || all.empty()) return;
  }
  Fail({Error(absl::StatusCode::kDeadlineExceeded, "the step has come no further for ", bound / 1'000'000,
              " ms (progress_timeout_ms): ", culprit.empty() ? all : StrCat(culprit, " is alive, but stuck in its operations")),
        false},
       false);
}

void ClusterStep::Fail(const Outcome& why, bool now) {
  bool first, over = now;
  std::vector<size_t> told;
  {
    std::lock_guard lock(mu_);
    if (over_) return;
    first = failure_.status.ok();
    if (first || (failure_.consequence && !why.consequence)) failure_ = why;
    for (size_t i = 0; first && i < parts_.size(); ++i) {
      told.push_back(i);
      if (parts_[i].sent || parts_[i].answered) continue;
      parts_[i].answered = true;
      over = --open_ == 0 || over;
    }
  }
  for (size_t i : told) {
    Call call;
    call.to = prepared_->tasks[i].to;
    call.method = Method::kAbort;
    AbortRequest{session_->id_, id_, why.status}.Put(&call.fields);
    call.deadline = session_->clock_->Now() + kAbortTime;
    call.done = [](const Reply&) {};  // a task that this does not reach is lost, and finds out by itself
    session_->messenger_->Start(std::move(call));
  }
  if (over) return Finish();
  if (first) {
    session_->clock_->At(session_->clock_->Now() + kGrace, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Finish();
    });
  }
}

void ClusterStep::Finish() {
  std::function<void(Status)> done;
  uint64_t timer;
  Status s;
  {
    std::lock_guard lock(mu_);
    if (std::exchange(over_, true)) return;
    done = std::move(done_);
    timer = timer_;
    s = failure_.status;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].sent && !parts_[i].answered) session_->PartGoesOn(prepared_->tasks[i], id_);
    }
  }
  if (timer) session_->clock_->Forget(timer);
  session_->Leave(id_);  // the callback may end the session
  done(std::move(s));
}

}  // namespace thalweg::distributed
