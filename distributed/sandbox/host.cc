#include "distributed/sandbox/host.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "distributed/sandbox/pipe_transport.h"
#include "framework/base/shown.h"
#include "thalweg/log.h"
#include "thalweg/plugin/transport.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kGrace = 2'000'000'000;       // nanoseconds after its limit in which a step may end by itself
constexpr int64_t kUnwatched = 35'000'000'000;  // longer than a worker takes to close an unwatched session

// A step that usually takes no longer than kShort is awaited by the thread that forwarded it, just
// as a worker runs such a step on the thread that read the request: waking a thread for the answer
// would take as long.
constexpr int64_t kShort = 300'000, kPatience = 2 * kShort;  // nanoseconds
constexpr int64_t kAlone = 10'000'000;  // after steps of several clients: a thread that waits for one of them keeps the others waiting

Status Unavailable(std::string_view text) { return Error(absl::StatusCode::kUnavailable, text); }

// Returns the session of a request, which comes first in the fields of every request.
StatusOr<uint64_t> SessionOf(std::string_view fields) {
  WireReader r(fields);
  const auto session = r.Number<uint64_t>();
  if (!r.ok()) return InvalidArgument("a request without the number of its session");
  return session;
}

}  // namespace

// A client with its process.
struct SandboxHost::Ward {
  std::string key;
  std::mutex mu;
  std::unique_ptr<SandboxProcess> process;
  std::unique_ptr<Messenger> messenger;  // NULL while the process starts
  Destination to;
  std::vector<std::shared_ptr<Incoming>> waiting;  // waiting for the start; once the ward is retired, for the reason
  std::map<uint64_t, bool> sessions;               // open sessions, and whether each is watched
  bool retired = false;
  bool lent = false;                 // a thread is lent to the messenger, which must not be destroyed meanwhile
  std::condition_variable returned;  // signalled when `lent` becomes false
  std::atomic<int64_t> usual{0};     // approximate nanoseconds of its steps; 0 if there was none
  Status why;                        // why it was retired; ok if its process ended by itself
};

// The body of an answer, until the requester has it.
struct SandboxHost::Body {
  Meter room;  // of the requester's account
  std::unique_ptr<char[]> data;
  uint64_t bytes = 0, refused = 0;
  std::atomic<bool> over{false};  // the requester was answered
};

// Work that Close waits for.
struct SandboxHost::Job {
  explicit Job(SandboxHost* h) : host(h) { ++host->jobs_; }  // REQUIRES: mu_
  ~Job() {
    std::lock_guard lock(host->mu_);
    if (--host->jobs_ == 0) host->idle_.notify_all();
  }
  SandboxHost* const host;
};

SandboxHost::SandboxHost(std::shared_ptr<Runtime> runtime, SandboxSettings settings, uint64_t largest, uint32_t most_sessions, Clock* clock)
    : runtime_(std::move(runtime)),
      settings_(Complete(std::move(settings))),
      largest_(largest),
      most_sessions_(most_sessions),
      clock_(clock) {}

SandboxHost::~SandboxHost() { Close(); }

void SandboxHost::Later(std::function<void()> f) {
  std::shared_ptr<Job> job;
  {
    std::lock_guard lock(mu_);
    job = std::make_shared<Job>(this);
  }
  Later(std::move(job), std::move(f));
}

void SandboxHost::Later(std::shared_ptr<Job> job, std::function<void()> f) {
  runtime_->pool().Blocking([job = std::move(job), f = std::move(f)]() mutable {
    f();
    f = nullptr;  // objects that f holds are destroyed before the host can be
    job.reset();
  });
}

Status SandboxHost::Start() {
  ASSIGN_OR_RETURN(auto process, SandboxProcess::Start(settings_, runtime_.get()));
  in_force_ = process->in_force();
  runtime_->Log(TW_LOG_INFO, StrCat("sandbox: ", in_force_, "; ", settings_.memory >> 20, " MiB, ", settings_.threads, " threads, ",
                                    settings_.step_ns / 1'000'000, " ms a step (0: any)"));
  std::lock_guard lock(mu_);
  spare_ = std::move(process);
  return Status();
}

void SandboxHost::Close() {
  std::vector<std::shared_ptr<Ward>> all;
  std::unique_ptr<SandboxProcess> spare;
  {
    std::lock_guard lock(mu_);
    closing_ = true;
    spare = std::move(spare_);
    for (auto& [key, ward] : wards_) all.push_back(ward);
  }
  for (auto& ward : all) Retire(ward, Unavailable("the task is shutting down"));
  all.clear();
  std::unique_lock lock(mu_);
  idle_.wait(lock, [this] { return jobs_ == 0; });
}

uint64_t SandboxHost::steps() const {
  std::lock_guard lock(mu_);
  return steps_;
}

uint64_t SandboxHost::sessions() const {
  uint64_t n = 0;
  std::lock_guard lock(mu_);
  for (const auto& [key, ward] : wards_) {
    std::lock_guard inner(ward->mu);
    n += ward->sessions.size();
  }
  return n;
}

// ---- Processes ----

// Starts the next process when this one is taken, so that a client mostly finds one that is ready.
StatusOr<std::unique_ptr<SandboxProcess>> SandboxHost::TakeProcess() {
  std::unique_ptr<SandboxProcess> spare;
  {
    std::lock_guard lock(mu_);
    spare = std::move(spare_);
  }
  MakeSpare();
  if (spare && spare->alive()) return spare;
  return SandboxProcess::Start(settings_, runtime_.get());
}

void SandboxHost::MakeSpare() {
  {
    std::lock_guard lock(mu_);
    if (closing_ || spare_ || settings_.most_processes < 2 || std::exchange(making_spare_, true)) return;
  }
  Later([this] {
    auto made = SandboxProcess::Start(settings_, runtime_.get());
    if (!made.ok()) runtime_->Log(TW_LOG_WARNING, Message(made.status()));
    std::lock_guard lock(mu_);
    making_spare_ = false;
    if (made.ok() && !closing_) spare_ = *std::move(made);
  });
}

void SandboxHost::Begin(const std::shared_ptr<Ward>& ward) {
  auto process = TakeProcess();
  Status s = process.status();
  std::unique_ptr<Messenger> messenger;
  Destination to;
  if (s.ok()) {
    to = {(*process)->address(), "sandbox", 0};
    auto nobody = [](std::shared_ptr<Incoming> request) { request->Fail({Unavailable("nothing is asked for here"), false}); };
    auto made = Messenger::Create(PipeTransport(), {"", "", largest_, false, true}, clock_, nobody);
    s = made.status();
    if (made.ok()) messenger = *std::move(made);
  }
  std::vector<std::shared_ptr<Incoming>> waiting;
  bool retired;
  {
    std::lock_guard lock(ward->mu);
    if (s.ok()) {
      ward->process = *std::move(process);
      ward->messenger = std::move(messenger);
      ward->to = to;
    }
    retired = ward->retired;
    if (s.ok() && !retired) waiting.swap(ward->waiting);
  }
  if (retired) return End(ward);
  if (!s.ok()) return Retire(ward, s);
  for (auto& request : waiting) Forward(ward, std::move(request));
}

// Sends no further requests to the process; requests already sent are answered with `why`. ok: the
// process has ended by itself.
void SandboxHost::Retire(const std::shared_ptr<Ward>& ward, Status why) {
  std::shared_ptr<Job> job;  // from here on Close no longer finds the ward, and the job keeps this host until the process has ended
  {
    std::lock_guard lock(mu_);
    job = std::make_shared<Job>(this);
    auto it = wards_.find(ward->key);
    if (it != wards_.end() && it->second == ward) wards_.erase(it);
  }
  bool ready;
  {
    std::lock_guard lock(ward->mu);
    if (std::exchange(ward->retired, true)) return;
    ward->why = std::move(why);
    ready = ward->messenger != nullptr || !ward->why.ok();
    if (ward->process) ward->process->Kill();
  }
  if (ready) Later(std::move(job), [this, ward] { End(ward); });  // else Begin does
}

void SandboxHost::End(const std::shared_ptr<Ward>& ward) {
  std::unique_ptr<Messenger> messenger;
  std::string end;
  {
    std::unique_lock lock(ward->mu);
    ward->returned.wait(lock, [&] { return !ward->lent; });
    messenger = std::move(ward->messenger);
    if (ward->process) end = ward->process->Reap();
    if (ward->why.ok()) {
      ward->why = Unavailable(StrCat("sandbox: the process of this client ", end,
                                     "; what it held is lost, and the next step begins in a new one; see the memory that it may have, "
                                     "sandbox_memory, if it needs more"));
    }
  }
  if (messenger) messenger->Close();  // pending requests fail and are added to `waiting`
  messenger.reset();
  std::vector<std::shared_ptr<Incoming>> waiting;
  std::unique_ptr<SandboxProcess> process;
  {
    std::lock_guard lock(ward->mu);
    waiting.swap(ward->waiting);
    process = std::move(ward->process);
  }
  for (auto& request : waiting) request->Fail({ward->why, false});
}

// ---- Requests ----

void SandboxHost::Serve(const RequestHead& head, std::shared_ptr<Incoming> request) {
  if (head.method == Method::kReceive || head.method == Method::kPush) {
    return request->Fail(
        {FailedPrecondition("a sandboxed worker serves sessions of one task; keep what the session runs on one task"), false});
  }
  const auto session = SessionOf(head.fields);
  if (!session.ok()) return request->Fail({session.status(), false});
  const bool proven = request->role() != TW_PEER_ANY;
  const std::string key = proven ? request->peer() : StrCat(request->peer(), " ", *session);
  if (head.method == Method::kOpen) return Open(key, *session, std::move(request));
  const bool step = head.method == Method::kRun || head.method == Method::kWatchedRun;
  bool alone = false;
  std::shared_ptr<Ward> ward;
  {
    std::lock_guard lock(mu_);
    if (auto it = wards_.find(key); it != wards_.end()) ward = it->second;
    if (step) {
      ++steps_;
      const int64_t now = clock_->Now();
      if (std::exchange(last_ward_, ward.get()) != ward.get()) others_at_ = now;
      alone = now - others_at_ > kAlone;
    }
  }
  bool known = false;
  if (ward) {
    std::lock_guard lock(ward->mu);
    auto it = ward->sessions.find(*session);
    known = it != ward->sessions.end() && ward->messenger && !ward->retired;
    if (known && head.method == Method::kWatch) it->second = true;
  }
  if (known) {
    const auto body = Forward(ward, std::move(request));
    if (step && alone && body) Await(ward, *body);
    return;
  }
  request->Fail({Error(absl::StatusCode::kAborted, "session ", *session, " of ", Shown(request->peer()),
                       " is not known; its client was lost, or its process has ended meanwhile"),
                 false});
}

void SandboxHost::Open(const std::string& key, uint64_t session, std::shared_ptr<Incoming> request) {
  std::shared_ptr<Ward> ward;
  bool begins = false;
  Status refused;
  {
    std::lock_guard lock(mu_);
    auto it = wards_.find(key);
    if (closing_) {
      refused = Unavailable("the task is shutting down");
    } else if (it != wards_.end()) {
      ward = it->second;
    } else if (wards_.size() >= settings_.most_processes) {
      refused =
          ResourceExhausted("there are ", wards_.size(), " sandboxes already, as many as the task takes; see its option sandbox_processes");
    } else {
      begins = true;
      ward = wards_[key] = std::make_shared<Ward>();
      ward->key = key;
    }
  }
  bool ready = false;
  if (refused.ok()) {
    std::lock_guard lock(ward->mu);
    if (ward->retired) {
      refused = Unavailable("sandbox: the process of this client is ending; try again");
    } else if (ward->sessions.size() >= most_sessions_) {
      refused = ResourceExhausted("'", Shown(request->peer()), "' has ", ward->sessions.size(),
                                  " sessions already, as many as the task takes of one client; close one, or see its option "
                                  "max_client_sessions");
    } else {
      ward->sessions.emplace(session, false);
      ready = ward->messenger != nullptr;
      if (!ready) ward->waiting.push_back(request);
    }
  }
  if (!refused.ok()) return request->Fail({refused, false});
  clock_->At(clock_->Now() + kUnwatched, [this, weak = std::weak_ptr(ward), session] {
    if (auto w = weak.lock()) CheckWatched(w, session);
  });
  if (ready) return (void)Forward(ward, std::move(request));
  if (begins) Later([this, ward] { Begin(ward); });
}

void SandboxHost::CheckWatched(const std::shared_ptr<Ward>& ward, uint64_t session) {
  bool watched;
  {
    std::lock_guard lock(ward->mu);
    auto it = ward->sessions.find(session);
    watched = it == ward->sessions.end() || it->second;
  }
  if (!watched) SessionEnded(ward, session);
}

void SandboxHost::SessionEnded(const std::shared_ptr<Ward>& ward, uint64_t session) {
  bool last;
  {
    std::lock_guard lock(ward->mu);
    if (ward->sessions.erase(session) == 0) return;
    last = ward->sessions.empty();
  }
  if (last) Retire(ward, Error(absl::StatusCode::kAborted, "the client of the session is gone"));
}

// If steps are short, the thread that forwarded a step waits for its answer. Then no sleeping
// thread has to be woken.
void SandboxHost::Await(const std::shared_ptr<Ward>& ward, const Body& body) {
  Messenger* messenger;
  {
    std::lock_guard lock(ward->mu);
    if (!ward->messenger || ward->retired || ward->lent || ward->usual.load(std::memory_order_relaxed) > kShort) return;
    ward->lent = true;
    messenger = ward->messenger.get();
  }
  messenger->LendFor(body.over, kPatience);
  std::lock_guard lock(ward->mu);
  ward->lent = false;
  ward->returned.notify_all();
}

// Returns NULL if the request was not forwarded.
std::shared_ptr<SandboxHost::Body> SandboxHost::Forward(const std::shared_ptr<Ward>& ward, std::shared_ptr<Incoming> request) {
  const auto head = GetRequest(request->head());
  if (!head.ok()) return request->Fail({head.status(), false}), nullptr;
  Call call;
  call.method = head->method;
  const bool watch = head->method == Method::kWatch;
  if (!watch && settings_.step_ns > 0) call.deadline = clock_->Now() + settings_.step_ns + kGrace;
  auto run = head->method == Method::kRun || head->method == Method::kWatchedRun
                 ? RunRequest::Get(head->fields)
                 : StatusOr<RunRequest>(Status(absl::StatusCode::kNotFound, ""));
  if (run.ok() && settings_.step_ns > 0) {
    // The step then ends by itself where its kernels end, and its client's state stays.
    run->time_left = run->time_left ? std::min(run->time_left, settings_.step_ns) : settings_.step_ns;
    run->Put(&call.fields);
  } else {
    call.fields.Raw(head->fields.data(), head->fields.size());
  }
  call.body = {request->body().data(), request->body().size(), request};
  auto body = std::make_shared<Body>();
  call.place = [body, request](std::string_view, uint64_t bytes) -> StatusOr<void*> {
    body->room = Meter(request->account() ? request->account()->budget() : nullptr);
    if (!body->room.TakeJust(bytes)) {
      body->refused = bytes;
      throw std::bad_alloc();  // the messenger treats it as a body that is not wanted
    }
    body->data = std::make_unique_for_overwrite<char[]>(size_t(bytes));
    body->bytes = bytes;
    return static_cast<void*>(body->data.get());
  };
  const auto session = SessionOf(head->fields);
  const bool open = head->method == Method::kOpen;
  const int64_t began = run.ok() ? clock_->Now() : 0;
  call.done = [this, ward, request, body, open, watch, session, began](const Reply& reply) {
    const absl::StatusCode code = reply.outcome.status.code();
    if (began) {
      const int64_t took = clock_->Now() - began, usual = ward->usual.load(std::memory_order_relaxed);
      ward->usual.store(usual ? usual + (took - usual) / 8 : took, std::memory_order_relaxed);
    }
    Answered(ward, request, reply, body);
    body->over.store(true, std::memory_order_release);
    const bool refused = open && code != absl::StatusCode::kOk && code != absl::StatusCode::kAlreadyExists;
    if (session.ok() && (watch || refused)) SessionEnded(ward, *session);
  };
  uint64_t name = 0;
  {
    std::lock_guard lock(ward->mu);
    if (ward->messenger && !ward->retired) {
      call.to = ward->to;
      name = ward->messenger->Start(std::move(call));
    }
  }
  if (!name) return Lost(ward, request, Unavailable("sandbox: the process of this client is ending")), nullptr;
  request->WhenGone([weak = std::weak_ptr(ward), name] {
    auto w = weak.lock();
    if (!w) return;
    std::lock_guard lock(w->mu);
    if (w->messenger) w->messenger->Cancel(name);
  });
  return body;
}

void SandboxHost::Answered(const std::shared_ptr<Ward>& ward, const std::shared_ptr<Incoming>& request, const Reply& reply,
                           const std::shared_ptr<Body>& body) {
  const Outcome& o = reply.outcome;
  if (!reply.reached) {
    if (o.status.code() == absl::StatusCode::kDeadlineExceeded) Overrun(ward);
    return Lost(ward, request, o.status);
  }
  if (body->refused) {
    return request->Fail({Prefix(body->room.status(), StrCat("sandbox: an answer of ", body->refused, " bytes:")), false});
  }
  if (!o.status.ok()) return request->Fail(o);
  WireWriter fields;
  fields.Raw(reply.fields.data(), reply.fields.size());
  request->Answer(PutAnswer(fields), {body->data.get(), body->bytes, body, true});
}

void SandboxHost::Overrun(const std::shared_ptr<Ward>& ward) {
  Retire(ward, Error(absl::StatusCode::kDeadlineExceeded, "sandbox: a request took more than ", settings_.step_ns / 1'000'000,
                     " ms, the task's option sandbox_step_ms, and did not end when told to: its process was ended; what it held is lost, "
                     "and the next step begins in a new one"));
}

// The process is gone, or is about to be: the answer follows when the reason is known. Or nobody
// waits for the answer any more.
void SandboxHost::Lost(const std::shared_ptr<Ward>& ward, std::shared_ptr<Incoming> request, const Status& how) {
  if (how.code() != absl::StatusCode::kCancelled) Retire(ward, Status());
  Status why;
  {
    std::lock_guard lock(ward->mu);
    why = ward->retired ? ward->why : how;
    if (ward->retired && ward->process) {
      ward->waiting.push_back(std::move(request));
      return;
    }
  }
  request->Fail({why, false});
}

}  // namespace thalweg::distributed
