#include "distributed/worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "distributed/piece.h"
#include "distributed/worker_parts.h"
#include "framework/base/shown.h"
#include "framework/session/limits.h"

namespace thalweg::distributed {
namespace {

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

}  // namespace

Status NoSession(const SessionName& name) {
  return Error(absl::StatusCode::kAborted, "session ", name.id, " of ", Shown(name.owner),
               " is not known; its client was lost, or the task was restarted meanwhile");
}

Worker::Worker(std::shared_ptr<Runtime> runtime, WorkerOptions options, const Channels& channels, std::function<bool()> others_tell)
    : runtime_(std::move(runtime)), options_(std::move(options)), channels_(channels), others_tell_(std::move(others_tell)) {}

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
        Later(request, [this, m = *m, request = request.get()] { return Open(m, request->peer(), request->role()); });
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

// Under the lock. A client that opens all that it may leaves room for others; whoever has not proven to be one is like all others.
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

Worker::Answer Worker::Open(const OpenRequest& m, const std::string& owner, uint32_t role) {
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
    if (sessions_.contains(session->name)) return AlreadyExists("session ", m.session, " is there already");  // its room is its own
    // What it ran last may still change variables.
    if (ending_.contains(session->name)) return AlreadyExists("session ", m.session, " was there before, and has not ended yet");
    RETURN_IF_ERROR(CheckRoom(owner, role));
    if (role == TW_PEER_CLIENT) {
      session->lent = lent_[owner].lock();
      if (!session->lent) lent_[owner] = session->lent = std::make_shared<LentTime>();
    }
    sessions_.emplace(session->name, session);
    channels_.mailbox->Open(session->name);
    channels_.inbox->Open(session->name);
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
  w.Text(owner);  // as which the client is known here
  return PutAnswer(w);
}

// What an earlier attempt has left whose answer was lost. One that is watched goes when its client's connection does.
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

// Its name is free once nothing of it is left: an Open in between would take its parts for its own.
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
  // Its end waits for what runs.
  Job([this, session = std::move(session), runs]() mutable {
    session->session->Close().IgnoreError();  // cannot fail: it waits for what runs
    if (runs) {
      std::lock_guard lock(mu_);
      ending_.erase(ending_.find(session->name));
    }
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
  auto routes = std::make_shared<Routes>();
  for (const PieceSource& s : piece.sources) routes->sources.emplace(s.key, Source{{s.address, s.title, s.incarnation}});
  for (const std::string& key : piece.pushed) {
    auto source = routes->sources.find(key);
    if (source == routes->sources.end()) return InvalidArgument("'", Shown(key), "' is to come by itself, but from nobody");
    source->second.pushed = true;
  }
  for (const PieceSink& s : piece.sinks) routes->sinks.emplace(s.key, Sink{{s.address, s.title, s.incarnation}, s.carried});
  auto signature = std::make_shared<Signature>(session->lent);
  ASSIGN_OR_RETURN(signature->callable, session->session->MakeCallable(spec));
  signature->routes = std::move(routes);
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

}  // namespace thalweg::distributed
