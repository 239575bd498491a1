#include "distributed/worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "distributed/piece.h"
#include "distributed/sandbox/pipe_transport.h"
#include "distributed/worker_parts.h"
#include "framework/base/shown.h"
#include "framework/runtime/devices/give_memory_back.h"
#include "framework/runtime/state/container.h"
#include "framework/session/limits.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kUnwatched = 30'000'000'000;  // nanoseconds after which an unwatched session is closed
constexpr uint64_t kSession = 64 << 10;         // approximate bytes of an idle session
constexpr uint64_t kFreeSteps = 64 << 10;       // bytes of records of steps: a full client may still run some steps that make room
constexpr uint64_t kSignature = 8 << 10;        // the same for a signature that adds no nodes

// Options that any client may set. Other options name files of the task's user, or lift the
// isolation of clients.
Status CheckClientOption(std::string_view key) {
  for (std::string_view may :
       {"threads",       "priority",     "container",         "optimize",        "disable_pass",   "engine",         "compilers",
        "capture",       "prefer",       "placement",         "placement_steps", "fallback",       "soft_placement", "order",
        "memory_budget", "max_plans",    "max_shape_plans",   "max_shapes",      "max_async_runs", "max_call_depth", "allow_ops",
        "deny_ops",      "memory_limit", "swap_memory_above", "step_timeout_ms", "check_values",   "lease"}) {
    if (key == may) return Status();
  }
  return Error(absl::StatusCode::kPermissionDenied, "session option '", Shown(key),
               "' is not a client's to set; leave it out, or start the task with trust_clients=true");
}

// Plans are charged to their graph: a client may keep several per signature, but not any number.
void BoundPlans(SessionOptions* o) {
  o->max_shape_plans = std::min(o->max_shape_plans, 64u);
  o->max_shapes = std::min(o->max_shapes, 1024u);
  o->max_plans = std::min(o->max_plans, 4096u);
}

}  // namespace

Status NoSession(const SessionName& name) {
  return Error(absl::StatusCode::kAborted, "session ", name.id, " of ", Shown(name.owner),
               " is not known; its client was lost, or the task was restarted meanwhile");
}

Worker::Worker(std::shared_ptr<Runtime> runtime, WorkerOptions options, const ClusterSpec* cluster, const Channels& channels,
               std::function<bool()> others_tell)
    : runtime_(std::move(runtime)),
      options_(std::move(options)),
      cluster_(cluster),
      channels_(channels),
      others_tell_(std::move(others_tell)),
      leases_(std::make_shared<Leases>(runtime_)) {}

Worker::~Worker() { Close(); }

void Worker::Close() {
  std::vector<std::shared_ptr<ClientSession>> open;
  {
    std::lock_guard lock(mu_);
    closing_ = true;
    for (auto& [name, session] : sessions_) open.push_back(session);
  }
  for (auto& session : open) CloseSession(std::move(session), Error(absl::StatusCode::kUnavailable, "the task is shutting down"));
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
  const int64_t now = channels_.messenger->clock().Now();
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

void Worker::Job(BlockingLine::Guest* line, std::function<void()> f) {
  line->Run([job = std::make_shared<OpenJob>(this), f = std::move(f)]() mutable {
    f();
    f = nullptr;  // objects that f holds are destroyed before the worker can be
    job.reset();
  });
}

void Worker::Later(PeerAccount* account, std::shared_ptr<Incoming> request, std::function<Answer()> f) {
  Job(account->runs(), [request = std::move(request), f = std::move(f)] {
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
        Later(request->account().get(), request, [this, m = *m, request = request.get()] { return Open(m, *request); });
      break;
    case Method::kWatch:
      if (auto m = take(SessionRequest::Get(head.fields)); m.ok()) Watch(name, request);
      break;
    case Method::kRegister:
      if (auto m = take(SessionRequest::Get(head.fields)); m.ok()) {
        Later(request->account().get(), request, [this, request = request.get(), name] { return Register(name, request->body()); });
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
          std::shared_ptr<Signature> gone;  // destroyed outside the lock
          std::lock_guard lock(session->mu);
          if (auto it = session->signatures.find(m->handle); it != session->signatures.end()) {
            gone = std::move(it->second);
            session->signatures.erase(it);
          }
        }
        request->Answer(PutAnswer(WireWriter()));
      }
      break;
    case Method::kReset:
      if (auto m = ResetRequest::Get(head.fields); m.ok()) {
        Later(request->account().get(), request, [this, m = *std::move(m)] { return Reset(m); });
      } else {
        bad = m.status();
      }
      break;
    default: bad = InvalidArgument("method ", int(head.method), " is none of a worker's");
  }
  if (!bad.ok()) request->Fail({bad, false});
}

// ---- Sessions ----

// REQUIRES: mu_. A client at its limit leaves room for others. Peers that have not proven to be a
// client share the total limit.
Status Worker::CheckRoom(const std::string& owner, uint32_t role) const {
  if (sessions_.size() >= options_.max_sessions)
    return ResourceExhausted("there are ", sessions_.size(), " sessions already, as many as the task takes; see its option max_sessions");
  if (role != TW_PEER_CLIENT) return Status();
  uint32_t its = 0;
  for (auto it = sessions_.lower_bound({owner, 0}); it != sessions_.end() && it->first.owner == owner; ++it) ++its;
  if (its < options_.max_client_sessions) return Status();
  return ResourceExhausted("'", Shown(owner), "' has ", its,
                           " sessions already, as many as the task takes of one client; close one, or see its "
                           "option max_client_sessions");
}

Worker::Answer Worker::Open(const OpenRequest& m, const Incoming& request) {
  const std::string& owner = request.peer();
  SessionOptions options;
  for (const std::string& text : m.options) {
    const size_t at = text.find('=');
    if (at == text.npos) return InvalidArgument("session option '", Shown(text), "' has no '='");
    const std::string_view key = std::string_view(text).substr(0, at);
    if (!options_.trust_clients) RETURN_IF_ERROR(CheckClientOption(key));
    RETURN_IF_ERROR(SetSessionOption(&options, key, std::string_view(text).substr(at + 1)));
  }
  if (options.container.empty()) options.container = kSharedContainer;  // clients share it
  options.trust_imported = options_.trust_clients;
  options.allow_files = options_.allow_files;
  BoundPlans(&options);
  auto session = std::make_shared<ClientSession>();
  session->name = {owner, m.session};
  session->account = request.account();
  // Trusted clients have limits only if the task was started with some.
  const bool counts = !options_.trust_clients || options_.memory_limit > 0;
  MemoryBudget* account = counts ? request.account()->budget() : nullptr;
  session->held = Meter(account);
  if (!session->held.TakeJust(kSession)) return Prefix(session->held.status(), "a session:");
  ASSIGN_OR_RETURN(session->leases, leases_->Take(options.lease));
  session->graph = std::make_shared<Graph>(runtime_);
  ASSIGN_OR_RETURN(session->session, Session::Create(session->graph, options, account));
  session->session->LimitBlocking(request.account()->kernels());
  session->graph_held = Meter(session->session->budget());
  session->steps_held = Meter(session->session->budget(), kFreeSteps);
  CloseUnwatched(session->name);
  {
    std::lock_guard lock(mu_);
    if (closing_) return Error(absl::StatusCode::kUnavailable, "the task is shutting down");
    if (sessions_.contains(session->name)) return AlreadyExists("session ", m.session, " is there already");  // before CheckRoom
    // Its last steps may still change variables.
    if (ending_.contains(session->name)) return AlreadyExists("session ", m.session, " was there before, and has not ended yet");
    RETURN_IF_ERROR(CheckRoom(owner, request.role()));
    if (request.role() == TW_PEER_CLIENT) {
      session->lent = lent_[owner].lock();
      if (!session->lent) lent_[owner] = session->lent = std::make_shared<LentTime>();
    }
    sessions_.emplace(session->name, session);
    channels_.mailbox->Open(session->name, session->session->budget());
    channels_.inbox->Open(session->name, session->session->budget());
  }
  channels_.messenger->clock().At(channels_.messenger->clock().Now() + kUnwatched, [this, weak = std::weak_ptr(session)] {
    auto s = weak.lock();
    if (!s) return;
    bool watched;
    {
      std::lock_guard lock(s->mu);
      watched = s->watch != nullptr || s->closed;
    }
    if (!watched) CloseSession(std::move(s), Error(absl::StatusCode::kAborted, "no client watches the session"));
  });
  WireWriter w;
  w.Text(owner);  // the name under which this task knows the client
  return PutAnswer(w);
}

// Closes a session left by an earlier attempt to open it whose answer was lost. A watched session
// ends with its client's connection.
void Worker::CloseUnwatched(const SessionName& name) {
  auto session = Find(name);
  if (!session) return;
  {
    std::lock_guard lock(session->mu);
    if (session->watch) return;
  }
  CloseSession(std::move(session), Error(absl::StatusCode::kAborted, "the client has opened the session again"));
}

void Worker::Watch(const SessionName& name, std::shared_ptr<Incoming> request) {
  auto session = Find(name);
  if (!session) return request->Fail({NoSession(name), false});
  {
    std::lock_guard lock(session->mu);
    if (session->closed || session->watch) return request->Fail({NoSession(name), false});
    session->watch = request;
  }
  request->WhenGone([this, weak = std::weak_ptr(session)] {
    if (auto s = weak.lock()) CloseSession(std::move(s), Error(absl::StatusCode::kAborted, "the client of the session is gone"));
  });
}

// Any client may name any container when it opens a session, so any client may reset one.
Worker::Answer Worker::Reset(const ResetRequest& m) {
  RETURN_IF_ERROR(CheckContainerName(m.container));
  const size_t count = runtime_->resources().ResetContainer(m.container.empty() ? kSharedContainer : std::string_view(m.container));
  GiveMemoryBack(*runtime_);
  WireWriter w;
  ResetAnswer{count}.Put(&w);
  return PutAnswer(w);
}

// The session's name becomes free only when nothing of the session is left: an Open in between
// would take the remains for its own.
void Worker::CloseSession(std::shared_ptr<ClientSession> session, const Status& why) {
  std::vector<std::shared_ptr<StepRun>> running;
  std::shared_ptr<Incoming> watch;
  {
    std::lock_guard lock(session->mu);
    if (std::exchange(session->closed, true)) return;
    for (auto& [step, run] : session->steps) running.push_back(run);
    watch = std::move(session->watch);
  }
  const bool runs = !running.empty();
  for (auto& run : running) run->Abort(why, false);
  running.clear();
  channels_.mailbox->Close(session->name, why);
  channels_.inbox->Close(session->name);
  {
    std::lock_guard lock(mu_);
    sessions_.erase(session->name);
    if (runs) ending_.insert(session->name);
  }
  if (watch) watch->Fail({why, false});
  // The session's end waits for its running steps.
  BlockingLine::Guest* ends = session->account->ends();
  Job(ends, [this, session = std::move(session), runs]() mutable {
    session->session->Close().IgnoreError();  // cannot fail: it waits for running steps
    if (runs) {
      std::lock_guard lock(mu_);
      ending_.erase(ending_.find(session->name));
    }
    {
      std::lock_guard lock(session->mu);
      session->signatures.clear();
    }
    session->leases.reset();  // no step of the session is left that could use the containers
  });
}

// A worker connects to the addresses that a piece names. If it accepted an address that only the
// client knows, a client could use the worker to reach networks that the client itself cannot
// reach.
Status Worker::CheckTask(std::string_view key, const std::string& address) const {
  for (const ClusterSpec::Task& task : cluster_->tasks()) {
    if (task.address.rest == address) return Status();
    if (task.address.scheme == kPipeScheme) {
      return FailedPrecondition("value '", Shown(key),
                                "' is another task's, and a sandboxed worker serves sessions of one task; keep what ",
                                "the session runs on one task");
    }
  }
  return Error(absl::StatusCode::kPermissionDenied, "value '", Shown(key), "': address '", Shown(address),
               "' is no task's of the cluster; its tasks: ", cluster_->places());
}

Worker::Answer Worker::Register(const SessionName& name, std::string_view body) {
  auto session = Find(name);
  if (!session) return NoSession(name);
  std::lock_guard one_at_a_time(session->register_mu);
  Meter read(session->session->budget());  // for the message, while it is needed
  auto piece = PieceMessage::Get(body, &read);
  if (!piece.ok()) return Prefix(piece.status(), "a signature:");
  std::shared_ptr<Signature> signature;
  RETURN_IF_ERROR(AddSignature(*piece, session.get(), &signature));
  session->graph_held.Trim();
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

// REQUIRES: register_mu of the session.
Status Worker::AddSignature(const PieceMessage& piece, ClientSession* session, std::shared_ptr<Signature>* out) {
  for (const PieceSource& s : piece.sources) RETURN_IF_ERROR(CheckTask(s.key, s.address));
  for (const PieceSink& s : piece.sinks) RETURN_IF_ERROR(CheckTask(s.key, s.address));
  auto signature = std::make_shared<Signature>(session->lent);
  signature->held = Meter(session->session->budget());
  uint64_t bytes = kSignature + 32 * (piece.feeds.size() + piece.fetches.size() + piece.targets.size() + piece.over.size());
  for (const PieceSource& s : piece.sources) bytes += 256 + 2 * (s.key.size() + s.address.size() + s.title.size());
  for (const PieceSink& s : piece.sinks) bytes += 256 + 2 * (s.key.size() + s.address.size() + s.title.size());
  if (!signature->held.TakeJust(bytes)) return Prefix(signature->held.status(), "a signature:");
  RETURN_IF_ERROR(AddPiece(piece, !options_.trust_clients, session->graph.get(), session->session->budget(), &session->graph_held));
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
  auto routes = std::make_shared<Routes>();
  for (const PieceSource& s : piece.sources) routes->sources.emplace(s.key, Source{{s.address, s.title, s.incarnation}});
  for (const std::string& key : piece.pushed) {
    auto source = routes->sources.find(key);
    if (source == routes->sources.end()) return InvalidArgument("'", Shown(key), "' is to come by itself, but from nobody");
    source->second.pushed = true;
  }
  for (const PieceSink& s : piece.sinks) routes->sinks.emplace(s.key, Sink{{s.address, s.title, s.incarnation}, s.carried});
  ASSIGN_OR_RETURN(signature->callable, session->session->MakeCallable(spec));
  signature->routes = std::move(routes);
  *out = std::move(signature);
  return Status();
}

}  // namespace thalweg::distributed
