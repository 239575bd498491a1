#include "distributed/cluster_session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "distributed/cluster_step.h"
#include "distributed/server.h"
#include "framework/runtime/device.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBeatEvery = kSecond;      // while steps run
constexpr int64_t kSilence = 10 * kSecond;   // a task that says nothing for so long counts as lost
constexpr int64_t kCallTime = 60 * kSecond;  // to open a session
constexpr uint64_t kLargest = uint64_t{4} << 30;

// Options that are the client's own business, or the server's.
bool ForTasks(std::string_view text) {
  for (std::string_view key : {"target=", "target_timeout_ms=", "device=", "allow_files=", "trust_imported=", "step_timeout_ms=",
                               "max_async_runs=", "credentials=", "insecure=", "progress_timeout_ms="}) {
    if (text.substr(0, key.size()) == key) return false;
  }
  return true;
}

Status Closed() { return FailedPrecondition("the session is closed"); }

}  // namespace

// ---- Calls that are waited for ----

// Who waits lends its thread to the transport meanwhile: what it waits for mostly comes that way, and then no other thread has to wake it.
struct ClusterSession::Waiting {
  std::mutex mu;
  std::condition_variable changed;
  std::atomic<bool> over = false;
  bool asleep = false;           // who waits
  Messenger* lent_to = nullptr;  // likewise
  std::thread::id lent;
  Answered answer;

  void End(Answered a) {
    bool wake;
    {
      std::lock_guard lock(mu);
      answer = std::move(a);
      over.store(true, std::memory_order_release);
      // Under the lock, which who waits takes before it goes on: until then the messenger is there.
      if (lent_to && lent != std::this_thread::get_id()) lent_to->Wake();
      wake = asleep;
    }
    if (wake) changed.notify_all();  // outside the lock, which who waits wants first
  }
  Answered Await(Messenger* messenger) {
    std::unique_lock lock(mu);
    if (!over) {
      lent_to = messenger;
      lent = std::this_thread::get_id();
      lock.unlock();
      messenger->Lend(over);
      lock.lock();
      lent_to = nullptr;
    }
    asleep = true;
    changed.wait(lock, [this] { return over.load(); });
    return std::move(answer);
  }
};

std::shared_ptr<ClusterSession::Waiting> ClusterSession::Ask(const Destination& to, Method method, const WireWriter& fields, Payload body,
                                                             int64_t deadline) {
  auto waiting = std::make_shared<Waiting>();
  Call call;
  call.to = to;
  call.method = method;
  call.fields = fields;
  call.body = std::move(body);
  call.deadline = deadline;
  call.done = [waiting](const Reply& reply) { waiting->End({reply.outcome, std::string(reply.fields), std::string(reply.body)}); };
  messenger_->Start(std::move(call));
  return waiting;
}

ClusterSession::Answered ClusterSession::Await(Waiting* waiting) { return waiting->Await(messenger_.get()); }

// ---- Beginning and end ----

ClusterSession::ClusterSession(std::shared_ptr<Graph> graph, const SessionOptions& options)
    : graph_(std::move(graph)),
      options_(options),
      id_(NewIncarnation()),
      clock_(std::make_unique<SystemClock>()),
      locals_(graph_->runtime().Common<LocalTasks>()),
      answers_(std::make_shared<Gate>()) {}

StatusOr<std::unique_ptr<ClusterSession>> ClusterSession::Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                                 std::vector<std::string> texts) {
  std::unique_ptr<ClusterSession> s(new ClusterSession(std::move(graph), options));
  RETURN_IF_ERROR(s->Connect(std::move(texts)));
  return s;
}

Status ClusterSession::Connect(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    if (ForTasks(text)) texts_.push_back(std::move(text));
  }
  ASSIGN_OR_RETURN(const Address target, ParseAddress(options_.target));
  ASSIGN_OR_RETURN(auto transport, FindTransport(&graph_->runtime(), target, options_.insecure));
  scheme_ = target.scheme;
  auto nobody = [](std::shared_ptr<Incoming> request) {
    request->Fail({Unimplemented("a client is asked for nothing; its address is no server's"), false});
  };
  const EndpointOptions endpoint = {"", options_.credentials, kLargest, options_.insecure, true};
  ASSIGN_OR_RETURN(messenger_, Messenger::Create(std::move(transport), endpoint, clock_.get(), nobody));
  const int64_t deadline = clock_->Now() + int64_t{options_.target_timeout_ms} * 1'000'000;
  std::string cluster;
  ASSIGN_OR_RETURN(const Hello hello, Greet({target.rest, StrCat("target ", target.text()), 0}, deadline, &cluster));
  ASSIGN_OR_RETURN(cluster_, ClusterSpec::Parse(cluster));
  int32_t self = -1;
  for (const ClusterSpec::Task& t : cluster_.tasks()) {
    if (t.id == TaskId{hello.job, hello.index}) self = int32_t(tasks_.size());
    if (t.address.scheme != scheme_) {
      return Unimplemented(t.title(), ": the target is reached by '", scheme_, "'; all tasks of a cluster must have one scheme");
    }
    tasks_.emplace_back().to = {t.address.rest, t.title(), 0};
  }
  if (self < 0) return InvalidArgument("target ", target.text(), " says that it is a task which its cluster has not");
  ASSIGN_OR_RETURN(const DeviceSpec wish, ParseDeviceSpec(options_.device));
  placement_ = std::make_unique<TaskPlacement>(graph_.get(), &cluster_, self, wish);
  partition_ = std::make_unique<Partition>(graph_.get(), &cluster_, placement_.get(), wish);
  return WatchMembers();
}

Status ClusterSession::WatchMembers() {
  if (cluster_.membership().empty()) return Status();
  // Without the service tasks are still asked for signs of life, as they are with it: one that is alive may be out of this client's reach.
  ASSIGN_OR_RETURN(members_, Members::Join(&graph_->runtime(), cluster_.membership(), StrCat("client ", id_), options_.credentials, [] {}));
  return members_->Watch([this](const TaskId& id, uint64_t incarnation) { MemberChanged(id, incarnation); });
}

// The service says that a task has gone, or is another one now. What it says of a task that this session does not know is nothing to it.
void ClusterSession::MemberChanged(const TaskId& id, uint64_t incarnation) {
  const ClusterSpec::Task* found = cluster_.Find(id);
  if (!found) return;
  const auto task = size_t(found - cluster_.tasks().data());
  {
    std::lock_guard lock(mu_);
    if (closed_ || !tasks_[task].open || tasks_[task].to.incarnation == incarnation) return;
  }
  TaskFailed(int32_t(task), incarnation ? Error(absl::StatusCode::kAborted, found->title(), ": was restarted, says ", cluster_.membership())
                                        : Error(absl::StatusCode::kUnavailable, found->title(), ": is gone, says ", cluster_.membership()));
}

ClusterSession::~ClusterSession() {
  Close().IgnoreError();  // cannot fail: it waits for what runs
  members_.reset();
  if (messenger_) messenger_->Close();
  answers_->Close();
  clock_->Stop();
}

Status ClusterSession::Close() {
  std::vector<std::shared_ptr<ClusterStep>> running;
  std::vector<uint64_t> watches;
  {
    std::lock_guard lock(mu_);
    closed_ = true;
    for (auto& [id, step] : running_) running.push_back(step);
    for (TaskState& t : tasks_) {
      if (t.watch) watches.push_back(std::exchange(t.watch, 0));
    }
  }
  for (auto& step : running) step->Fail({Error(absl::StatusCode::kCancelled, "the session is closed"), false}, true);
  running.clear();
  for (uint64_t watch : watches) messenger_->Cancel(watch);
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return running_.empty(); });
  return Status();
}

// ---- Tasks ----

// Asks again where nobody is there yet: tasks may start in any order.
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
    if (!later || clock_->Now() + pause >= deadline) return a.outcome.status;
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
    if (s.code() != absl::StatusCode::kAlreadyExists || clock_->Now() >= deadline) return s;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  {
    std::lock_guard lock(mu_);
    TaskState& t = tasks_[size_t(task)];
    t.to = to;
    t.version = hello.version;
    t.features = hello.features;
    t.owner = owner;
    t.here = owner.empty() ? nullptr : locals_->Find(hello.incarnation);
    t.open = true;
    ++t.opened;
  }
  Watch(task, to);
  return Status();
}

// Is answered only when the task is lost, or has no part in the session any more.
void ClusterSession::Watch(int32_t task, const Destination& to) {
  Call call;
  call.to = to;
  call.method = Method::kWatch;
  SessionRequest{id_}.Put(&call.fields);
  std::lock_guard lock(mu_);
  TaskState& t = tasks_[size_t(task)];
  if (closed_ || !t.open) return;
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
}

// ---- Signs of life ----

int64_t ClusterSession::BeatEvery() const {
  const int64_t bound = int64_t{options_.progress_timeout_ms} * 1'000'000;
  return bound ? std::clamp(bound / 4, kSecond / 100, kBeatEvery) : kBeatEvery;
}

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
    for (size_t i = 0; i < tasks_.size(); ++i) {
      TaskState& t = tasks_[i];
      const bool used = std::any_of(running_.begin(), running_.end(), [&](const auto& r) { return r.second->Uses(int32_t(i)); });
      if (!t.open || t.beating || !used) continue;
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

// ---- Steps ----

namespace {

void Assemble(std::vector<StatsPart> parts, StepStats* to) {
  std::vector<StepStats::Part> all;
  for (StatsPart& p : parts) all.push_back(std::move(p.part));
  to->Assemble(all);
}

}  // namespace

void ClusterSession::Enter(const std::shared_ptr<ClusterStep>& step) {
  bool beat;
  {
    std::lock_guard lock(mu_);
    step->id_ = ++steps_;
    running_.emplace(step->id_, step);
    beat = !std::exchange(beating_, true);
  }
  if (beat) clock_->At(clock_->Now() + BeatEvery(), [this] { Beat(); });
}

void ClusterSession::Leave(uint64_t step) {
  std::shared_ptr<ClusterStep> gone;  // ends outside the lock
  std::lock_guard lock(mu_);
  auto it = running_.find(step);
  if (it == running_.end()) return;
  gone = std::move(it->second);
  running_.erase(it);
  if (running_.empty()) idle_.notify_all();
}

void ClusterSession::Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  std::shared_ptr<StepTrace> trace;
  if (options.stats) {
    auto begun = StepTrace::Begin(options.stats);
    if (!begun.ok()) return done(begun.status());
    trace = *std::move(begun);
  }
  const int64_t began = clock_->Now();
  const int64_t time = options.deadline_ns > 0 ? options.deadline_ns : int64_t{options_.step_timeout_ms} * 1'000'000;
  const int64_t deadline = time ? clock_->Now() + time : 0;
  auto prepared = Find(spec);
  Status s = prepared.status();
  for (size_t i = 0; s.ok() && i < spec.feeds.size(); ++i) s = CheckFeed(spec.feeds[i], feeds[i]);
  if (!s.ok()) {
    if (trace) trace->Over(s);
    trace.reset();
    return done(std::move(s));
  }
  auto step_of = std::make_shared<std::weak_ptr<ClusterStep>>();
  auto step =
      std::make_shared<ClusterStep>(this, *prepared, deadline, options.cancel,
                                    [feeds, fetches, step_of, trace, stats = options.stats, done = std::move(done)](Status status) mutable {
                                      if (auto self = step_of->lock(); self && trace) {
                                        Assemble(self->TakeStats(), stats);
                                        trace->Over(status);
                                      }
                                      trace.reset();  // before somebody looks
                                      if (auto self = step_of->lock(); self && status.ok()) {
                                        const auto& from = self->prepared().fetches;
                                        for (size_t k = 0; k < from.size(); ++k) {
                                          const auto [part, at] = from[k];
                                          fetches[k] = part < 0 ? feeds[at] : self->results()[size_t(part)][size_t(at)];
                                        }
                                      }
                                      done(std::move(status));
                                    });
  *step_of = step;
  step->Begin(feeds, trace.get(), trace ? began : 0);
}

Status ClusterSession::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  auto waiting = std::make_shared<Waiting>();
  Start(spec, feeds, options, fetches, [waiting](Status s) { waiting->End({{std::move(s), false}, "", ""}); });
  return Await(waiting.get()).outcome.status;
}

Status ClusterSession::StartAsync(std::function<void()> work) {
  {
    std::lock_guard lock(mu_);
    if (closed_) return Closed();
    ++async_;
  }
  graph_->runtime().pool().Blocking(std::move(work));
  return Status();
}

void ClusterSession::EndAsync() {
  std::lock_guard lock(mu_);
  --async_;
}

SessionReport ClusterSession::Report() const {
  std::lock_guard lock(mu_);
  SessionReport r;
  r.steps = steps_;
  r.signatures = prepared_.size();
  return r;
}

}  // namespace thalweg::distributed
