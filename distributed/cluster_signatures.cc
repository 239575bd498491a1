#include <algorithm>
#include <utility>

#include "distributed/cluster_session.h"
#include "thalweg/version.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kRegisterTime = 60'000'000'000;  // nanoseconds to register a signature with a task
constexpr int kAttempts = 5;

// Adds both versions to failures that a difference of versions may explain: an op that the task
// does not have, or, if the versions differ, an attribute or a type that the task does not know.
Status WithVersions(const Status& s, const std::string& version) {
  const std::string own = StrCat(TW_VERSION_MAJOR, ".", TW_VERSION_MINOR, ".", TW_VERSION_PATCH);
  const auto code = s.code();
  const bool of_op = code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kUnimplemented;
  if (code != absl::StatusCode::kNotFound && !(of_op && version != own)) return s;
  return WithMessage(s, StrCat(Message(s), " (the task runs version ", version, ", this program ", own, ")"));
}

}  // namespace

ClusterSession::SpecKey ClusterSession::KeyOf(const CallableSpec& spec) {
  SpecKey key;
  for (const auto* list : {&spec.feeds, &spec.fetches}) {
    key.push_back(list->size());
    for (const Edge& e : *list) {
      key.push_back(reinterpret_cast<uintptr_t>(e.node));
      key.push_back(uint64_t(e.port));
    }
  }
  for (const auto* list : {&spec.targets, &spec.over}) {
    key.push_back(list->size());
    for (const Node* n : *list) key.push_back(reinterpret_cast<uintptr_t>(n));
  }
  return key;
}

StatusOr<std::shared_ptr<const Prepared>> ClusterSession::Find(const CallableSpec& spec) {
  {
    std::lock_guard lock(mu_);
    if (closed_) return Closed();
    if (auto found = FindLocked(spec)) return found;
  }
  auto prepared = Prepare(spec);
  std::lock_guard lock(mu_);
  // Tasks may have answered that they no longer know the session, which is not a failure of theirs.
  if (!prepared.ok() && closed_) return Error(absl::StatusCode::kCancelled, "the session was closed meanwhile");
  return prepared;
}

std::shared_ptr<const Prepared> ClusterSession::FindLocked(const CallableSpec& spec) {
  auto it = prepared_.find(KeyOf(spec));
  if (it == prepared_.end()) return nullptr;
  it->second.used = ++uses_;
  return it->second.prepared;
}

bool ClusterSession::Keep(const CallableSpec& spec, const std::shared_ptr<const Prepared>& prepared) {
  {
    std::lock_guard lock(mu_);
    // Under the lock: a task that is lost from here on takes the signature out of `prepared_`.
    if (!std::all_of(prepared->tasks.begin(), prepared->tasks.end(), [&](const Prepared::Task& t) { return KnowsLocked(t); })) {
      lapsed_.push_back(prepared);
      return false;
    }
    prepared_[KeyOf(spec)] = {prepared, ++uses_};
    while (prepared_.size() > options_.max_plans) {
      auto oldest = prepared_.end();
      for (auto it = prepared_.begin(); it != prepared_.end(); ++it) {
        const bool idle = it->second.prepared.use_count() == 1;  // no step uses it
        if (idle && (oldest == prepared_.end() || it->second.used < oldest->second.used)) oldest = it;
      }
      if (oldest == prepared_.end()) break;
      lapsed_.push_back(std::move(oldest->second.prepared));
      prepared_.erase(oldest);
    }
  }
  ForgetLapsed();
  return true;
}

void ClusterSession::ForgetLapsed() {
  std::vector<Call> calls;
  {
    std::lock_guard lock(mu_);
    std::erase_if(lapsed_, [&](const std::shared_ptr<const Prepared>& p) {
      if (p.use_count() > 1) return false;
      for (const Prepared::Task& t : p->tasks) {
        if (!KnowsLocked(t)) continue;  // the session has ended there, and the signature with it
        Call& call = calls.emplace_back();
        call.to = t.to;
        call.method = Method::kForget;
        HandleMessage{id_, t.handle}.Put(&call.fields);
        call.deadline = clock_->Now() + kRegisterTime;
        call.done = [](const Reply&) {};  // a lost task has forgotten it anyway
      }
      return true;
    });
  }
  for (Call& call : calls) messenger_->Start(std::move(call));
}

// REQUIRES: prepare_mu_.
void ClusterSession::DropForgotten() {
  std::lock_guard lock(mu_);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (std::exchange(tasks_[i].forgot, false)) partition_->Forget(int32_t(i));
  }
}

StatusOr<std::shared_ptr<const Prepared>> ClusterSession::Prepare(const CallableSpec& spec) {
  RETURN_IF_ERROR(CheckSpec(*graph_, spec));
  std::lock_guard one_at_a_time(prepare_mu_);
  const int64_t deadline = clock_->Now() + int64_t{options_.target_timeout_ms} * 1'000'000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    {
      std::lock_guard lock(mu_);
      if (auto found = FindLocked(spec)) return found;
    }
    DropForgotten();
    ForgetLapsed();  // before their successors are registered
    ASSIGN_OR_RETURN(Parts parts, partition_->Split(spec));
    auto prepared = std::make_shared<Prepared>();
    ASSIGN_OR_RETURN(const bool told, Tell(&parts, deadline, prepared.get()));
    if (!told) continue;
    prepared->fetches = parts.fetches;
    if (Keep(spec, prepared)) return std::shared_ptr<const Prepared>(std::move(prepared));
  }
  return Error(absl::StatusCode::kUnavailable, "tasks of the cluster come and go too fast for a signature to be registered; run again");
}

StatusOr<bool> ClusterSession::OpenAll(const Parts& parts, int64_t deadline) {
  for (const Part& part : parts.parts) RETURN_IF_ERROR(Open(part.task, deadline));
  std::lock_guard lock(mu_);
  return std::none_of(parts.parts.begin(), parts.parts.end(), [&](const Part& p) {
    const TaskState& t = tasks_[size_t(p.task)];
    return t.forgot || !t.open;
  });
}

// REQUIRES: mu_. Adds the tasks that this task requests values from, and those that it pushes
// values to.
void ClusterSession::AddRoutes(Part* part) const {
  const auto pushes = [&](const Part::Crossing& c) {
    return c.small && (tasks_[size_t(c.task)].features & tasks_[size_t(part->task)].features & kTakesPushes);
  };
  PieceMessage& piece = part->piece;
  for (const Part::Crossing& c : part->comes) {
    const Destination& from = tasks_[size_t(c.task)].to;
    piece.sources.push_back({c.key, from.address, from.title, from.incarnation});
    if (pushes(c)) piece.pushed.push_back(c.key);
  }
  for (const Part::Crossing& c : part->goes) {
    const Destination& to = tasks_[size_t(c.task)].to;
    if (pushes(c)) piece.sinks.push_back({c.key, to.address, to.title, to.incarnation, tasks_[size_t(c.task)].here != nullptr});
  }
}

StatusOr<bool> ClusterSession::Tell(Parts* parts, int64_t deadline, Prepared* to) {
  ASSIGN_OR_RETURN(const bool open, OpenAll(*parts, deadline));
  if (!open) return false;
  {
    std::lock_guard lock(mu_);
    for (Part& part : parts->parts) {
      AddRoutes(&part);
      const TaskState& t = tasks_[size_t(part.task)];
      to->tasks.push_back({part.task, t.to, t.here, t.owner, 0, part.feeds, part.piece.fetches.size(), t.opened});
    }
  }
  std::vector<std::shared_ptr<Waiting>> waiting;
  WireWriter w;
  SessionRequest{id_}.Put(&w);
  const int64_t until = clock_->Now() + kRegisterTime;
  for (size_t i = 0; i < parts->parts.size(); ++i) {
    waiting.push_back(Ask(to->tasks[i].to, Method::kRegister, w, Payload::Of(parts->parts[i].piece.Put()), until));
  }
  Status failure;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const Answered a = Await(waiting[i].get());
    const auto handle = a.outcome.status.ok() ? HandleMessage::Get(a.fields) : StatusOr<HandleMessage>(a.outcome.status);
    if (handle.ok()) to->tasks[i].handle = handle->handle;
    if (handle.ok() || !failure.ok()) continue;
    failure = handle.status();
    std::lock_guard lock(mu_);
    failure = WithVersions(failure, tasks_[size_t(to->tasks[i].task)].version);
  }
  if (failure.ok()) {
    for (const Part& part : parts->parts) partition_->Told(part);
    return true;
  }
  for (const Part& part : parts->parts) Lose(part.task);  // how far registration came there is unknown
  return failure;
}

}  // namespace thalweg::distributed
