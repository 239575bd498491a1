#include "distributed/cluster_session.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "distributed/cluster_reset.h"
#include "distributed/cluster_step.h"
#include "distributed/server.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime_of.h"
#include "framework/session/profilers.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kLargest = uint64_t{4} << 30;
constexpr std::chrono::seconds kEndTime{2};  // wait for parts that still run on tasks, once the session is closed

// Returns false for options that only concern the client, or only the server.
bool ForTasks(std::string_view text) {
  for (std::string_view key : {"target=", "target_timeout_ms=", "device=", "allow_files=", "trust_imported=", "step_timeout_ms=",
                               "max_async_runs=", "credentials=", "insecure=", "progress_timeout_ms=", "sandbox=", "profiler="}) {
    if (text.substr(0, key.size()) == key) return false;
  }
  return true;
}

}  // namespace

// ---- Calls that are waited for ----

// A waiting thread lends itself to the transport: the awaited answer mostly comes that way, and
// then no other thread has to wake it.
struct ClusterSession::Waiting {
  std::mutex mu;
  std::condition_variable changed;
  std::atomic<bool> over = false;
  bool asleep = false;           // the waiting thread is blocked on `changed`
  Messenger* lent_to = nullptr;  // the messenger that the waiting thread is lent to
  std::thread::id lent;
  Answered answer;

  void End(Answered a) {
    bool wake;
    {
      std::lock_guard lock(mu);
      answer = std::move(a);
      over.store(true, std::memory_order_release);
      // Under the lock, which the waiting thread takes before it goes on: until then the messenger
      // exists.
      if (lent_to && lent != std::this_thread::get_id()) lent_to->Wake();
      wake = asleep;
    }
    if (wake) changed.notify_all();  // outside the lock, which the waiting thread takes first
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

Status ClusterSession::Closed() { return FailedPrecondition("the session is closed"); }

// ---- Beginning and end ----

ClusterSession::ClusterSession(std::shared_ptr<Graph> graph, const SessionOptions& options)
    : graph_(std::move(graph)),
      options_(options),
      id_(NewIncarnation()),
      clock_(std::make_unique<SystemClock>()),
      locals_(RuntimeOf(*graph_).Common<LocalTasks>()),
      answers_(std::make_shared<Gate>()) {}

StatusOr<std::shared_ptr<ClusterSession>> ClusterSession::Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                                 std::vector<std::string> texts) {
  // A forked child leaves its copy alone: to destroy it would mean to wait for threads that do not
  // exist there.
  std::shared_ptr<ClusterSession> s(new ClusterSession(std::move(graph), options), [](ClusterSession* session) {
    if (session->origin_.here()) delete session;
  });
  RETURN_IF_ERROR(s->Connect(std::move(texts)));
  ASSIGN_OR_RETURN(s->profilers_, Profilers::Start(&RuntimeOf(*s->graph_), options.profilers));
  return s;
}

Status ClusterSession::Connect(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    if (ForTasks(text)) texts_.push_back(std::move(text));
  }
  ASSIGN_OR_RETURN(const Address target, ParseAddress(options_.target));
  ASSIGN_OR_RETURN(auto transport, FindTransport(&RuntimeOf(*graph_), target, options_.insecure));
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

Status ClusterSession::CheckOrigin() const {
  if (origin_.here()) return Status();
  return FailedPrecondition(
      "session: this process was forked from the one that opened the session, and a session with a target does not survive that; start the "
      "child as a program of its own (exec, or `spawn` in Python)");
}

ClusterSession::~ClusterSession() {
  Close().IgnoreError();  // cannot fail: it waits for running steps
  membership_.reset();
  if (messenger_) messenger_->Close();
  answers_->Close();
  clock_->Stop();
}

Status ClusterSession::Close() {
  if (!origin_.here()) return Status();
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
  idle_.wait_for(lock, kEndTime, [this] { return unended_.empty(); });  // else a later session would run beside them
  lock.unlock();
  if (profilers_) profilers_->Stop();
  return Status();
}

// ---- Steps ----

namespace {

void Assemble(std::vector<StatsPart> parts, StepStats* to) {
  std::vector<StepStats::Part> all;
  for (StatsPart& p : parts) all.push_back(std::move(p.part));
  to->Assemble(all);
}

// Returns a callback that hands the step to the profilers and then calls `done`. It does so on another
// thread, because a profiler may block, which threads of the transport and the clock's may not.
StepDone AfterHandOver(ThreadPool* pool, std::shared_ptr<Profilers::Coming> coming, StepDone done) {
  struct Ended {
    std::shared_ptr<Profilers::Coming> coming;
    StepDone done;
    Status status;
    void Go() {
      coming->Over();
      coming.reset();  // `done` may close the session, which waits for it
      done(std::move(status));
    }
  };
  auto ended = std::make_shared<Ended>(Ended{std::move(coming), std::move(done), Status()});
  return [pool, ended](Status status) {
    ended->status = std::move(status);
    try {
      pool->Blocking([ended] { ended->Go(); });
    } catch (...) {  // there is neither memory nor a thread for it
      ended->Go();
    }
  };
}

}  // namespace

void ClusterSession::Enter(const std::shared_ptr<ClusterStep>& step) {
  bool beat, closed;
  {
    std::lock_guard lock(mu_);
    step->id_ = ++steps_;
    running_.emplace(step->id_, step);
    beat = !std::exchange(beating_, true);
    closed = closed_;  // then Close did not see the step
  }
  if (beat) clock_->At(clock_->Now() + BeatEvery(), [this] { Beat(); });
  if (closed) step->Fail({Error(absl::StatusCode::kCancelled, "the session is closed"), false}, true);
}

void ClusterSession::Leave(uint64_t step) {
  std::shared_ptr<ClusterStep> gone;  // destroyed outside the lock
  std::lock_guard lock(mu_);
  auto it = running_.find(step);
  if (it == running_.end()) return;
  gone = std::move(it->second);
  running_.erase(it);
  if (running_.empty()) idle_.notify_all();
}

// ---- Parts of failed steps ----

void ClusterSession::PartGoesOn(const Prepared::Task& t, uint64_t step) {
  std::lock_guard lock(mu_);
  if (KnowsLocked(t)) unended_[t.task].steps.insert(step);
}

void ClusterSession::PartEnded(int32_t task, uint64_t step) {
  {
    std::lock_guard lock(mu_);
    if (auto at = unended_.find(task); at != unended_.end()) at->second.steps.erase(step);
  }
  GoOn(task);
}

bool ClusterSession::WhenEnded(int32_t task, std::function<void()> f) {
  std::lock_guard lock(mu_);
  const auto at = unended_.find(task);
  if (at == unended_.end()) return false;
  at->second.waiting.push_back(std::move(f));
  return true;
}

void ClusterSession::GoOn(int32_t task) {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mu_);
    const auto at = unended_.find(task);
    if (at == unended_.end() || !at->second.steps.empty()) return;
    waiting.swap(at->second.waiting);
    unended_.erase(at);
    if (unended_.empty()) idle_.notify_all();
  }
  for (const auto& f : waiting) f();
}

bool ClusterSession::Knows(const Prepared::Task& t) const {
  std::lock_guard lock(mu_);
  return KnowsLocked(t);
}

bool ClusterSession::KnowsLocked(const Prepared::Task& t) const {
  const TaskState& now = tasks_[size_t(t.task)];
  return now.open && now.opened == t.opened;
}

// ---- Runs ----

void ClusterSession::Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  if (Status forked = CheckOrigin(); !forked.ok()) return done(std::move(forked));
  std::shared_ptr<Profilers::Coming> coming;  // its statistics are used by the trace
  if (profilers_) coming = std::make_shared<Profilers::Coming>(profilers_, options.stats);
  StepStats* const stats = coming ? coming->stats() : options.stats;
  std::shared_ptr<StepTrace> trace;
  if (stats) {
    auto begun = StepTrace::Begin(stats);
    if (!begun.ok()) return coming.reset(), done(begun.status());
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
    if (coming) coming->Over();
    coming.reset();  // `done` may close the session
    return done(std::move(s));
  }
  if (coming) done = AfterHandOver(&RuntimeOf(*graph_).pool(), std::move(coming), std::move(done));
  auto step_of = std::make_shared<std::weak_ptr<ClusterStep>>();
  StepTrace* const watch = trace.get();
  // The callback alone owns the trace, so that the trace has ended when `done` is called. `done` owns
  // the statistics and stands before the trace, so that it goes after it.
  auto step = std::make_shared<ClusterStep>(
      this, *prepared, deadline, options.cancel,
      [feeds, fetches, step_of, done = std::move(done), trace = std::move(trace), stats](Status status) mutable {
        if (auto self = step_of->lock(); self && trace) {
          Assemble(self->TakeStats(), stats);
          trace->Over(status);
        }
        trace.reset();  // before the caller can look at the statistics
        if (auto self = step_of->lock(); self && status.ok()) {
          const auto& from = self->prepared().fetches;
          for (size_t k = 0; k < from.size(); ++k) {
            const auto [part, at] = from[k];
            fetches[k] = part < 0 ? feeds[at] : self->results(size_t(part))[size_t(at)];
          }
        }
        done(std::move(status));
      });
  *step_of = step;
  step->Begin(feeds, watch, watch ? began : 0);
}

Status ClusterSession::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  RETURN_IF_ERROR(CheckOrigin());
  auto waiting = std::make_shared<Waiting>();
  Start(spec, feeds, options, fetches, [waiting](Status s) { waiting->End({{std::move(s), false}, "", ""}); });
  return Await(waiting.get()).outcome.status;
}

Status ClusterSession::StartAsync(std::function<void()> work) {
  RETURN_IF_ERROR(CheckOrigin());
  {
    std::lock_guard lock(mu_);
    if (closed_) return Closed();
    ++async_;
  }
  RuntimeOf(*graph_).pool().Blocking(std::move(work));
  return Status();
}

void ClusterSession::EndAsync() {
  std::lock_guard lock(mu_);
  --async_;
}

StatusOr<uint64_t> ClusterSession::Reset(std::string_view container) {
  RETURN_IF_ERROR(CheckOrigin());
  const std::string name(container.empty() ? std::string_view(options_.container) : container);
  return ClusterReset(SharedRuntimeOf(*graph_), options_, name, int64_t{options_.target_timeout_ms} * 1'000'000);
}

SessionReport ClusterSession::Report() const {
  if (!origin_.here()) return {};
  std::lock_guard lock(mu_);
  SessionReport r;
  r.steps = steps_;
  r.signatures = prepared_.size();
  return r;
}

}  // namespace thalweg::distributed
