#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "distributed/stats_wire.h"
#include "distributed/worker_parts.h"
#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kBeatEvery = 1'000'000'000;  // nanoseconds, while steps run
constexpr int64_t kSilence = 10'000'000'000;   // a peer that is silent for so long counts as lost
constexpr size_t kRanges = 1 << 20;            // of step sets of a session, from the oldest step that has not ended
constexpr uint64_t kSmallFeeds = 4096;         // bytes that are not charged: a full session may also run steps that make room

}  // namespace

// ---- Steps ----

void Worker::Run(const RunRequest& m, bool watched, std::shared_ptr<Incoming> request) {
  auto run = std::make_shared<StepRun>(this);
  const SessionName name{request->peer(), m.session};
  run->session = Find(name);
  if (!run->session) return request->Fail({NoSession(name), false});
  run->request = request;
  run->step = m.step;
  if (watched) run->stats = std::make_unique<StepStats>();
  Clock& clock = channels_.messenger->clock();
  run->begun = clock.Now();
  run->deadline = m.time_left ? run->begun + m.time_left : 0;
  traffic_.Received("clients", request->body().size());
  channels_.mailbox->Forget(name, m.oldest);
  channels_.inbox->Forget(name, m.oldest);
  Outcome refused;
  bool light = false;
  {
    std::lock_guard lock(run->session->mu);
    ClientSession& s = *run->session;
    s.oldest = std::max(s.oldest, m.oldest);
    s.ForgetSteps();
    auto signature = s.signatures.find(m.handle);
    if (s.closed) {
      refused = {NoSession(name), false};
    } else if (s.aborted.Contains(m.step)) {
      refused = {s.aborted.Why(m.step), true};
    } else if (signature == s.signatures.end()) {
      refused = {NotFound("signature ", m.handle, " of session ", m.session, " is not registered"), false};
    } else if (m.step < s.oldest || s.begun.Contains(m.step)) {
      refused = {AlreadyExists("step ", m.step, " was begun already"), false};
    } else if (s.begun.ranges() >= kRanges) {
      refused = {ResourceExhausted("session ", m.session, " has begun steps with ", kRanges, " gaps between them since step ", s.oldest,
                                   ", which is not over; number steps without gaps"),
                 false};
    } else if (!s.begun.Insert(m.step, &s.steps_held)) {
      refused = {Prefix(s.steps_held.status(), StrCat("step ", m.step, ":")), false};
    } else {
      run->signature = signature->second;
      light = run->signature->IsLight() && request->body().size() <= StepMeeting::kLightValue;
      run->meeting = std::make_shared<StepMeeting>(name, m.step, run->signature->routes, run->deadline, channels_, &traffic_,
                                                   light ? run->signature->lent : nullptr, s.session->budget());
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
    // If its connection broke, the client still waits, and may hear of this from another task.
    const auto gone = [] { return Error(absl::StatusCode::kUnavailable, "the client waits no longer for the step, or cannot be reached"); };
    if (auto r = weak.lock()) r->Abort(gone(), true);
  });
  if (!light) return Job(run->session->account->runs(), [this, run] { Go(run); });
  const int64_t began = clock.Now();
  run->meeting->Hold();
  Go(run);
  run->meeting->Release();  // it waits for other tasks: now they need the values that it has made
  run->signature->lent->Used(clock.Now() - began);
}

// Drops steps that have ended everywhere. REQUIRES: mu.
void Worker::ClientSession::ForgetSteps() {
  aborted.Forget(oldest, &steps_held);
  begun.Forget(oldest, &steps_held);
}

void Worker::Signature::Ran() {
  constexpr uint32_t kLookEvery = 64;  // runs; the session may since have made a plan for other shapes
  if (runs.fetch_add(1, std::memory_order_relaxed) % kLookEvery != 0) return;
  light.store(callable->IsLight(), std::memory_order_relaxed);
  lent->Renew();
}

void Worker::Go(const std::shared_ptr<StepRun>& run) {
  try {
    const std::string_view body = run->request->body();
    auto feeds = GetTensors(body, body.size() > kSmallFeeds ? run->session->session->budget() : nullptr);
    const Callable& callable = *run->signature->callable;
    if (!feeds.ok()) return End(run, Prefix(feeds.status(), "feeds:"));
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
    if (run->deadline) options.deadline_ns = std::max<int64_t>(run->deadline - channels_.messenger->clock().Now(), 1);
    run->signature->callable->Start(run->feeds.data(), options, run->fetches.data(), [this, run](Status s) { End(run, std::move(s)); });
  } catch (...) {
    End(run, Thrown());
  }
}

// Appends the values for tasks beside the client to the body, and their length to the fields.
static Status PutCarriedOf(StepMeeting* meeting, WireWriter* fields, WireWriter* body) {
  const std::vector<CarriedValues> carried = meeting->TakeCarried();
  if (carried.empty()) return Status();
  const size_t before = body->bytes().size();
  body->Reserve(before + CarriedBytes(carried));
  RETURN_IF_ERROR(PutCarried(carried, body));
  fields->Number(uint64_t(body->bytes().size() - before));
  return Status();
}

// The session pays for the answer until it is on its way: a client that reads no answers gets
// RESOURCE_EXHAUSTED from its next steps.
Status Worker::PutFetches(const StepRun& run, Meter* paid, WireWriter* body) {
  uint64_t bytes = sizeof(uint32_t);
  for (const Tensor& t : run.fetches) bytes += WireBytes(t);
  if (bytes > kSmallFeeds) *paid = Meter(run.session->session->budget());
  if (!paid->TakeJust(bytes)) return Prefix(paid->status(), StrCat("an answer of ", bytes, " bytes:"));
  body->Reserve(bytes);
  return PutTensors(run.fetches.data(), run.fetches.size(), body);
}

void Worker::End(const std::shared_ptr<StepRun>& run, Status s) {
  WireWriter body, fields;
  Meter paid;
  try {
    if (s.ok()) s = PutFetches(*run, &paid, &body);
    if (s.ok() && run->stats) {
      const std::string stats = PutStats(*run->stats);
      fields.Number(uint64_t(stats.size()));
      body.Raw(stats.data(), stats.size());
    }
    if (s.ok()) s = PutCarriedOf(run->meeting.get(), &fields, &body);
  } catch (...) {
    s = Thrown();
  }
  run->feeds.clear();  // before the client is answered: its next step may need the memory
  run->fetches.clear();
  {
    std::lock_guard lock(run->session->mu);
    run->session->steps.erase(run->step);
  }
  run->signature->Ran();
  if (s.ok()) return run->request->Answer(PutAnswer(fields), Payload::Of(body.Take()).PaidBy(std::move(paid)));
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

// Without heartbeats, a step would wait for ever for a peer that has gone silent: the client has
// connections of its own and may not notice. If a membership service tells the client which tasks
// are alive, only the route needs checks, and transports make them.
void Worker::Beat() {
  const std::vector<std::shared_ptr<StepRun>> runs = AllRuns();
  Clock& clock = channels_.messenger->clock();
  const bool others_tell = others_tell_();
  std::map<ProcessName, Destination> late;
  for (const auto& run : runs) {
    run->meeting->AskLate(clock.Now() - kBeatEvery);
    if (!others_tell) run->meeting->AddLate(clock.Now() - kBeatEvery, &late);
  }
  {
    std::lock_guard lock(mu_);
    std::erase_if(lent_, [](const auto& of_owner) {
      const auto lent = of_owner.second.lock();
      if (lent) lent->Renew();
      return !lent;
    });
    beating_ = !runs.empty() && !closing_;
    if (!beating_) return;
    for (auto it = late.begin(); it != late.end();) it = asked_.insert(it->first).second ? std::next(it) : late.erase(it);
  }
  for (auto& entry : late) {
    Call call;
    call.to = entry.second;
    call.deadline = clock.Now() + kSilence;
    call.done = [this, who = entry.first](const Reply& reply) { AnswerOfBeat(who, reply.outcome.status); };
    channels_.messenger->Start(std::move(call));
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
    if (session->aborted.ranges() >= kRanges) return ResourceExhausted("session ", m.session, " has ended too many steps that never began");
    if (m.step >= session->oldest && !session->aborted.Add(m.step, m.why, &session->steps_held)) {
      return Prefix(session->steps_held.status(), StrCat("step ", m.step, ", which is ended:"));
    }
    if (auto it = session->steps.find(m.step); it != session->steps.end()) run = it->second;
  }
  channels_.mailbox->Abort(name, m.step, m.why);
  channels_.inbox->Abort(name, m.step);
  if (run) run->Abort(m.why, true);
  return Status();
}

}  // namespace thalweg::distributed
