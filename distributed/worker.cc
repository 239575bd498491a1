#include "distributed/worker.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "distributed/piece.h"
#include "distributed/stats_wire.h"
#include "distributed/step_meeting.h"
#include "framework/base/shown.h"
#include "framework/session/limits.h"
#include "framework/session/session.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kBeatEvery = 1'000'000'000;   // nanoseconds, while steps run
constexpr int64_t kSilence = 10'000'000'000;    // one that says nothing for so long counts as lost
constexpr size_t kAborted = 1 << 16;            // steps of a session that others have ended, and that may still come
constexpr uint64_t kSmallFeeds = 4096;          // bytes that are not counted: also a session that is full may run steps that make room
constexpr int64_t kUnwatched = 30'000'000'000;  // nanoseconds after which a session that no client watches is closed

// What any client may set. Others name files of the task's user, or lift what keeps clients apart.
Status CheckClientOption(std::string_view key) {
  for (std::string_view may : {"threads",        "priority",      "container", "optimize",        "disable_pass",      "engine",
                               "compilers",      "capture",       "placement", "placement_steps", "fallback",          "soft_placement",
                               "order",          "memory_budget", "max_plans", "max_shape_plans", "max_shapes",        "max_async_runs",
                               "max_call_depth", "allow_ops",     "deny_ops",  "memory_limit",    "swap_memory_above", "step_timeout_ms"}) {
    if (key == may) return Status();
  }
  return Error(absl::StatusCode::kPermissionDenied, "session option '", Shown(key),
               "' is not a client's to set; leave it out, or start the task with trust_clients=true");
}

Status NoSession(const SessionName& name) {
  return Error(absl::StatusCode::kAborted, "session ", name.id, " of ", Shown(name.owner),
               " is not known; its client was lost, or the task was restarted meanwhile");
}

}  // namespace

struct Worker::Signature {
  std::unique_ptr<Callable> callable;
  std::shared_ptr<const Sources> sources;
};

// What a client has here. Its members but for `steps` and `aborted` are set by Open and Register, one at a time.
struct Worker::ClientSession {
  SessionName name;  // its owner is who opened it; nobody else has it
  std::shared_ptr<Graph> graph;
  std::unique_ptr<Session> session;  // after the graph, before the signatures' end
  std::mutex register_mu;
  std::mutex mu;  // the rest
  std::map<uint64_t, std::shared_ptr<Signature>> signatures;
  std::map<uint64_t, std::shared_ptr<StepRun>> steps;
  std::map<uint64_t, Status> aborted;  // steps, whether they were begun or not
  uint64_t oldest = 0;                 // steps before it are over
  std::set<uint64_t> begun;            // steps from there on: none of them begins again, whoever says so twice
  std::shared_ptr<Incoming> watch;
  bool closed = false;
};

struct Worker::StepRun {
  std::shared_ptr<ClientSession> session;
  std::shared_ptr<Signature> signature;
  std::shared_ptr<StepMeeting> meeting;
  std::shared_ptr<Incoming> request;
  uint64_t step = 0;
  int64_t begun = 0, deadline = 0;
  CancelToken cancel;
  std::unique_ptr<StepStats> stats;  // NULL: nobody watches
  std::vector<Tensor> feeds, fetches;
  MemoryBudget* budget = nullptr;  // what the feeds count against
  uint64_t charged = 0;

  ~StepRun() {
    if (charged) budget->Give(charged);
  }
  // RESOURCE_EXHAUSTED where the session has no room for the feeds, as long as their message is.
  Status Charge(uint64_t bytes) {
    budget = bytes > kSmallFeeds ? session->session->budget() : nullptr;
    if (!budget) return Status();
    RETURN_IF_ERROR(budget->Take(bytes));
    charged = bytes;
    return Status();
  }

  void Abort(const Status& why, bool consequence) {
    meeting->Abort(why, consequence);
    cancel.Cancel();
  }
};

// Something that the worker's end waits for.
struct Worker::OpenJob {
  explicit OpenJob(Worker* w) : worker(w) {
    std::lock_guard lock(worker->mu_);
    ++worker->jobs_;
  }
  ~OpenJob() {
    std::lock_guard lock(worker->mu_);
    if (--worker->jobs_ == 0) worker->idle_.notify_all();
  }
  Worker* const worker;
};

Worker::Worker(std::shared_ptr<Runtime> runtime, WorkerOptions options, Mailbox* mailbox, Messenger* messenger)
    : runtime_(std::move(runtime)), options_(std::move(options)), mailbox_(mailbox), messenger_(messenger) {}

Worker::~Worker() { Close(); }

void Worker::Close() {
  std::vector<SessionName> open;
  {
    std::lock_guard lock(mu_);
    closing_ = true;
    for (auto& [name, session] : sessions_) open.push_back(name);
  }
  for (const SessionName& name : open) CloseSession(name, Error(absl::StatusCode::kUnavailable, "the task is shutting down"));
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return jobs_ == 0; });
}

uint64_t Worker::steps() const {
  std::lock_guard lock(mu_);
  return steps_;
}

uint64_t Worker::sessions() const {
  std::lock_guard lock(mu_);
  return sessions_.size();
}

void Worker::Look(uint64_t session, const std::string& asker, uint32_t role, TaskStatus* to) const {
  std::vector<std::shared_ptr<ClientSession>> all;
  {
    std::lock_guard lock(mu_);
    for (const auto& [name, s] : sessions_) {
      const bool may = role != TW_PEER_CLIENT || name.owner == asker;
      if (may && (session == 0 || name.id == session)) all.push_back(s);
    }
  }
  const int64_t now = messenger_->clock().Now();
  for (const auto& s : all) {
    std::lock_guard lock(s->mu);
    for (const auto& [step, run] : s->steps) {
      RunStatus& r = to->runs.emplace_back();
      r.session = s->name.id;
      r.step = step;
      r.age = now - run->begun;
      run->meeting->Look(&r);
      if (s->name.owner != asker) r.waits.clear();
    }
  }
  to->received = traffic_.All();
}

void Worker::Job(std::function<void()> f) {
  runtime_->pool().Blocking([job = std::make_shared<OpenJob>(this), f = std::move(f)]() mutable {
    f();
    f = nullptr;  // what it holds goes before the worker may
    job.reset();
  });
}

void Worker::Later(std::shared_ptr<Incoming> request, std::function<Answer()> f) {
  Job([request = std::move(request), f = std::move(f)] {
    Answer answer;
    try {
      answer = f();
    } catch (...) {
      answer = Thrown();
    }
    if (answer.ok()) return request->Answer(*std::move(answer));
    request->Fail({answer.status(), false});
  });
}

std::shared_ptr<Worker::ClientSession> Worker::Find(const SessionName& name) const {
  std::lock_guard lock(mu_);
  auto it = sessions_.find(name);
  return it == sessions_.end() ? nullptr : it->second;
}

void Worker::Serve(const RequestHead& head, std::shared_ptr<Incoming> request) {
  Status bad;
  SessionName name{request->peer(), 0};
  auto take = [&](auto message) {
    if (message.ok()) name.id = message->session;
    if (!message.ok()) bad = message.status();
    return message;
  };
  switch (head.method) {
    case Method::kOpen:
      if (auto m = take(OpenRequest::Get(head.fields)); m.ok())
        Later(request, [this, m = *m, owner = request->peer()] { return Open(m, owner); });
      break;
    case Method::kWatch:
      if (auto m = take(SessionRequest::Get(head.fields)); m.ok()) Watch(name, request);
      break;
    case Method::kRegister:
      if (auto m = take(SessionRequest::Get(head.fields)); m.ok()) {
        Later(request, [this, request = request.get(), name] { return Register(name, request->body()); });
      }
      break;
    case Method::kRun:
    case Method::kWatchedRun:
      if (auto m = take(RunRequest::Get(head.fields)); m.ok()) Run(*m, head.method == Method::kWatchedRun, request);
      break;
    case Method::kAbort:
      if (auto m = take(AbortRequest::Get(head.fields)); m.ok()) {
        bad = Abort(name, *m);
        if (bad.ok()) request->Answer(PutAnswer(WireWriter()));
      }
      break;
    case Method::kForget:
      if (auto m = take(HandleMessage::Get(head.fields)); m.ok()) {
        if (auto session = Find(name)) {
          std::shared_ptr<Signature> gone;  // ends outside the lock
          std::lock_guard lock(session->mu);
          if (auto it = session->signatures.find(m->handle); it != session->signatures.end()) {
            gone = std::move(it->second);
            session->signatures.erase(it);
          }
        }
        request->Answer(PutAnswer(WireWriter()));
      }
      break;
    default: bad = InvalidArgument("method ", int(head.method), " is none of a worker's");
  }
  if (!bad.ok()) request->Fail({bad, false});
}

// ---- Sessions ----

Worker::Answer Worker::Open(const OpenRequest& m, const std::string& owner) {
  SessionOptions options;
  for (const std::string& text : m.options) {
    const size_t at = text.find('=');
    if (at == text.npos) return InvalidArgument("session option '", Shown(text), "' has no '='");
    const std::string_view key = std::string_view(text).substr(0, at);
    if (!options_.trust_clients) RETURN_IF_ERROR(CheckClientOption(key));
    RETURN_IF_ERROR(SetSessionOption(&options, key, std::string_view(text).substr(at + 1)));
  }
  options.trust_imported = options_.trust_clients;
  options.allow_files = options_.allow_files;
  if (!options_.trust_clients) options.memory_limit = std::min(options.memory_limit, DefaultMemoryLimit());
  auto session = std::make_shared<ClientSession>();
  session->name = {owner, m.session};
  session->graph = std::make_shared<Graph>(runtime_);
  ASSIGN_OR_RETURN(session->session, Session::Create(session->graph, options));
  CloseUnwatched(session->name);
  {
    std::lock_guard lock(mu_);
    if (closing_) return Error(absl::StatusCode::kUnavailable, "the task is shutting down");
    if (sessions_.size() >= options_.max_sessions) {
      return ResourceExhausted("there are ", sessions_.size(), " sessions already, as many as the task takes");
    }
    if (!sessions_.emplace(session->name, session).second) return AlreadyExists("session ", m.session, " is there already");
    mailbox_->Open(session->name);
  }
  messenger_->clock().At(messenger_->clock().Now() + kUnwatched, [this, weak = std::weak_ptr(session)] {
    auto s = weak.lock();
    if (!s) return;
    bool watched;
    {
      std::lock_guard lock(s->mu);
      watched = s->watch != nullptr || s->closed;
    }
    if (!watched) CloseSession(s->name, Error(absl::StatusCode::kAborted, "no client watches the session"));
  });
  return PutAnswer(WireWriter());
}

// What an earlier attempt has left whose answer was lost. One that is watched goes when its client's connection does.
void Worker::CloseUnwatched(const SessionName& name) {
  auto session = Find(name);
  if (!session) return;
  {
    std::lock_guard lock(session->mu);
    if (session->watch) return;
  }
  CloseSession(name, Error(absl::StatusCode::kAborted, "the client has opened the session again"));
}

void Worker::Watch(const SessionName& name, std::shared_ptr<Incoming> request) {
  auto session = Find(name);
  if (!session) return request->Fail({NoSession(name), false});
  {
    std::lock_guard lock(session->mu);
    if (session->closed || session->watch) return request->Fail({NoSession(name), false});
    session->watch = request;
  }
  request->WhenGone([this, name] { CloseSession(name, Error(absl::StatusCode::kAborted, "the client of the session is gone")); });
}

void Worker::CloseSession(const SessionName& name, const Status& why) {
  std::shared_ptr<ClientSession> session;
  {
    std::lock_guard lock(mu_);
    auto it = sessions_.find(name);
    if (it == sessions_.end()) return;
    session = std::move(it->second);
    sessions_.erase(it);
  }
  std::vector<std::shared_ptr<StepRun>> running;
  std::shared_ptr<Incoming> watch;
  {
    std::lock_guard lock(session->mu);
    session->closed = true;
    for (auto& [step, run] : session->steps) running.push_back(run);
    watch = std::move(session->watch);
  }
  for (auto& run : running) run->Abort(why, false);
  running.clear();
  mailbox_->Close(name, why);
  if (watch) watch->Fail({why, false});
  // Its end waits for what runs.
  Job([session = std::move(session)]() mutable {
    session->session->Close().IgnoreError();  // cannot fail: it waits for what runs
    std::lock_guard lock(session->mu);
    session->signatures.clear();
  });
}

Worker::Answer Worker::Register(const SessionName& name, std::string_view body) {
  auto session = Find(name);
  if (!session) return NoSession(name);
  ASSIGN_OR_RETURN(const PieceMessage piece, PieceMessage::Get(body));
  std::lock_guard one_at_a_time(session->register_mu);
  RETURN_IF_ERROR(AddPiece(piece, !options_.trust_clients, session->graph.get()));
  const Graph& graph = *session->graph;
  CallableSpec spec;
  for (const std::string& text : piece.feeds) {
    ASSIGN_OR_RETURN(const Edge e, graph.FindEdge(text));
    spec.feeds.push_back(e);
  }
  for (const std::string& text : piece.fetches) {
    ASSIGN_OR_RETURN(const Edge e, graph.FindEdge(text));
    spec.fetches.push_back(e);
  }
  for (const std::string& text : piece.targets) {
    const Node* node = graph.Find(text);
    if (!node) return NotFound("there is no target '", Shown(text), "'");
    spec.targets.push_back(node);
  }
  for (const std::string& text : piece.over) {
    const Node* node = graph.Find(text);
    if (!node) return NotFound("there is no node '", Shown(text), "', which is said to be over");
    spec.over.push_back(node);
  }
  std::sort(spec.over.begin(), spec.over.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  auto sources = std::make_shared<Sources>();
  for (const PieceSource& s : piece.sources) sources->emplace(s.key, Destination{s.address, s.title, s.incarnation});
  auto signature = std::make_shared<Signature>();
  ASSIGN_OR_RETURN(signature->callable, session->session->MakeCallable(spec));
  signature->sources = std::move(sources);
  uint64_t handle;
  {
    std::lock_guard lock(mu_);
    handle = ++handles_;
  }
  std::lock_guard lock(session->mu);
  if (session->closed) return NoSession(name);
  session->signatures.emplace(handle, std::move(signature));
  WireWriter w;
  HandleMessage{name.id, handle}.Put(&w);
  return PutAnswer(w);
}

// ---- Steps ----

void Worker::Run(const RunRequest& m, bool watched, std::shared_ptr<Incoming> request) {
  auto run = std::make_shared<StepRun>();
  const SessionName name{request->peer(), m.session};
  run->session = Find(name);
  if (!run->session) return request->Fail({NoSession(name), false});
  run->request = request;
  run->step = m.step;
  if (watched) run->stats = std::make_unique<StepStats>();
  Clock& clock = messenger_->clock();
  run->begun = clock.Now();
  run->deadline = m.time_left ? run->begun + m.time_left : 0;
  traffic_.Received("clients", request->body().size());
  mailbox_->Forget(name, m.oldest);
  if (Status fits = run->Charge(request->body().size()); !fits.ok()) return request->Fail({Prefix(fits, "feeds:"), false});
  Outcome refused;
  {
    std::lock_guard lock(run->session->mu);
    ClientSession& s = *run->session;
    s.oldest = std::max(s.oldest, m.oldest);
    s.aborted.erase(s.aborted.begin(), s.aborted.lower_bound(s.oldest));
    s.begun.erase(s.begun.begin(), s.begun.lower_bound(s.oldest));
    auto signature = s.signatures.find(m.handle);
    if (s.closed) {
      refused = {NoSession(name), false};
    } else if (auto it = s.aborted.find(m.step); it != s.aborted.end()) {
      refused = {it->second, true};
    } else if (signature == s.signatures.end()) {
      refused = {NotFound("signature ", m.handle, " of session ", m.session, " is not registered"), false};
    } else if (m.step < s.oldest || !s.begun.insert(m.step).second) {
      refused = {AlreadyExists("step ", m.step, " was begun already"), false};
    } else {
      run->signature = signature->second;
      run->meeting = std::make_shared<StepMeeting>(name, m.step, run->signature->sources, run->deadline, mailbox_, messenger_, &traffic_);
      s.steps.emplace(m.step, run);
    }
  }
  if (!refused.status.ok()) return request->Fail(refused);
  bool beat;
  {
    std::lock_guard lock(mu_);
    ++steps_;
    beat = !std::exchange(beating_, true);
  }
  if (beat) clock.At(clock.Now() + kBeatEvery, [this] { Beat(); });
  request->WhenGone([weak = std::weak_ptr(run)] {
    if (auto r = weak.lock()) r->Abort(Error(absl::StatusCode::kCancelled, "the client waits no longer for the step"), true);
  });
  Job([this, run] { Go(run); });
}

void Worker::Go(const std::shared_ptr<StepRun>& run) {
  try {
    auto feeds = GetTensors(run->request->body());
    const Callable& callable = *run->signature->callable;
    if (!feeds.ok()) return End(run, feeds.status());
    run->request->DropBody();
    if (feeds->size() != callable.spec().feeds.size()) {
      return End(run, InvalidArgument("a step came with ", feeds->size(), " feeds for ", callable.spec().feeds.size()));
    }
    run->feeds = *std::move(feeds);
    run->fetches.resize(callable.spec().fetches.size());
    RunOptions options;
    options.cancel = &run->cancel;
    options.rendezvous = run->meeting.get();
    options.stats = run->stats.get();
    if (run->deadline) options.deadline_ns = std::max<int64_t>(run->deadline - messenger_->clock().Now(), 1);
    run->signature->callable->Start(run->feeds.data(), options, run->fetches.data(),
                                    [this, run, job = std::make_shared<OpenJob>(this)](Status s) { End(run, std::move(s)); });
  } catch (...) {
    End(run, Thrown());
  }
}

void Worker::End(const std::shared_ptr<StepRun>& run, Status s) {
  WireWriter body, fields;
  try {
    if (s.ok()) s = PutTensors(run->fetches.data(), run->fetches.size(), &body);
    if (s.ok() && run->stats) {
      const std::string stats = PutStats(*run->stats);
      fields.Number(uint64_t(stats.size()));
      body.Raw(stats.data(), stats.size());
    }
  } catch (...) {
    s = Thrown();
  }
  run->feeds.clear();
  run->fetches.clear();
  {
    std::lock_guard lock(run->session->mu);
    run->session->steps.erase(run->step);
  }
  if (s.ok()) return run->request->Answer(PutAnswer(fields), Payload::Of(body.Take()));
  run->meeting->Abort(s, false);
  run->request->Fail(run->meeting->Ended(s));
}

// ---- Signs of life ----

std::vector<std::shared_ptr<Worker::StepRun>> Worker::AllRuns() const {
  std::vector<std::shared_ptr<ClientSession>> all;
  {
    std::lock_guard lock(mu_);
    for (const auto& [id, s] : sessions_) all.push_back(s);
  }
  std::vector<std::shared_ptr<StepRun>> runs;
  for (const auto& s : all) {
    std::lock_guard lock(s->mu);
    for (const auto& [step, run] : s->steps) runs.push_back(run);
  }
  return runs;
}

// Who is waited for and has gone silent would be waited for for ever: nobody else may notice, for the client has connections of its own.
void Worker::Beat() {
  const std::vector<std::shared_ptr<StepRun>> runs = AllRuns();
  Clock& clock = messenger_->clock();
  std::map<ProcessName, Destination> late;
  for (const auto& run : runs) run->meeting->AddLate(clock.Now() - kBeatEvery, &late);
  {
    std::lock_guard lock(mu_);
    beating_ = !runs.empty() && !closing_;
    if (!beating_) return;
    for (auto it = late.begin(); it != late.end();) it = asked_.insert(it->first).second ? std::next(it) : late.erase(it);
  }
  for (auto& entry : late) {
    Call call;
    call.to = entry.second;
    call.deadline = clock.Now() + kSilence;
    call.done = [this, who = entry.first](const Reply& reply) { AnswerOfBeat(who, reply.outcome.status); };
    messenger_->Start(std::move(call));
  }
  clock.At(clock.Now() + kBeatEvery, [this] { Beat(); });
}

void Worker::AnswerOfBeat(const ProcessName& who, const Status& s) {
  {
    std::lock_guard lock(mu_);
    asked_.erase(who);
    if (closing_ || s.ok()) return;
  }
  const bool silent = s.code() == absl::StatusCode::kDeadlineExceeded;
  const Status why =
      silent ? Error(absl::StatusCode::kUnavailable, Message(s), " (", kSilence / 1'000'000'000, " s): it counts as lost") : s;
  for (const auto& run : AllRuns()) run->meeting->PeerLost(who, why);
}

Status Worker::Abort(const SessionName& name, const AbortRequest& m) {
  auto session = Find(name);
  if (!session) return Status();
  std::shared_ptr<StepRun> run;
  {
    std::lock_guard lock(session->mu);
    if (session->aborted.size() >= kAborted) return ResourceExhausted("session ", m.session, " has ended too many steps that never began");
    session->aborted.emplace(m.step, m.why);
    if (auto it = session->steps.find(m.step); it != session->steps.end()) run = it->second;
  }
  mailbox_->Abort(name, m.step, m.why);
  if (run) run->Abort(m.why, true);
  return Status();
}

}  // namespace thalweg::distributed
