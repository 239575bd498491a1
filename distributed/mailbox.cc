#include "distributed/mailbox.h"

#include <utility>

#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr size_t kSteps = 1 << 20;  // of a session, from the oldest that is not over

Status NoSession(const SessionName& session) {
  return Error(absl::StatusCode::kAborted, "session ", session.id, " of ", Shown(session.owner),
               " is not known here; its client has closed it, or the task was restarted");
}

}  // namespace

void Mailbox::Open(const SessionName& session) {
  std::lock_guard lock(mu_);
  sessions_.Open(session);
}

void Mailbox::Close(const SessionName& session, const Status& why) {
  Session closed;
  {
    std::lock_guard lock(mu_);
    if (!sessions_.Find(session)) return;
    closed = sessions_.Remove(session);
  }
  for (auto& [step, box] : closed.boxes) {
    for (auto& [key, request] : box.asked) request->Fail({why, true});
  }
}

Status Mailbox::Put(const SessionName& session, uint64_t step, const std::string& key, Tensor value) {
  std::shared_ptr<Incoming> asked;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s) return NoSession(session);
    if (step < s->oldest) return Error(absl::StatusCode::kAborted, "the step is over");
    Box& box = s->boxes[step];
    if (!box.over.ok()) return box.over;
    if (auto found = box.asked.find(key); found != box.asked.end()) {
      asked = std::move(found->second);
      box.asked.erase(found);
    } else if (!box.values.emplace(key, value).second) {
      return AlreadyExists("'", Shown(key), "' was sent twice");
    }
  }
  if (asked) Answer(asked.get(), value);
  return Status();
}

void Mailbox::Ask(const ReceiveRequest& m, std::shared_ptr<Incoming> request) {
  const SessionName session = m.name();
  const auto& [id, step, key, owner] = m;
  Tensor value;
  bool there = false;
  Outcome outcome;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s) {
      outcome = {NoSession(session), false};
    } else if (step < s->oldest) {
      outcome = {Error(absl::StatusCode::kAborted, "the step is over"), true};
    } else if (s->boxes.size() >= kSteps && !s->boxes.count(step)) {
      outcome = {ResourceExhausted("session ", id, " has values of ", kSteps, " steps under way, as many as a task takes"), false};
    } else {
      Box& box = s->boxes[step];
      if (!box.over.ok()) {
        outcome = {box.over, true};
      } else if (auto found = box.values.find(key); found != box.values.end()) {
        there = true;
        value = std::move(found->second);
        box.values.erase(found);
      } else if (!box.asked.emplace(key, request).second) {
        outcome = {AlreadyExists("'", Shown(key), "' is asked for twice"), false};
      }
    }
  }
  if (!outcome.status.ok()) return request->Fail(outcome);
  if (there) return Answer(request.get(), value);
  Incoming* self = request.get();
  request->WhenGone([this, at = m, self] { Leave(at.name(), at.step, at.key, self); });
}

// Nobody waits for the answer any more.
void Mailbox::Leave(const SessionName& session, uint64_t step, const std::string& key, const Incoming* request) {
  std::shared_ptr<Incoming> gone;  // answered outside the lock
  std::lock_guard lock(mu_);
  Box* box = sessions_.Find(session, step);
  if (!box) return;
  auto found = box->asked.find(key);
  if (found == box->asked.end() || found->second.get() != request) return;
  gone = std::move(found->second);
  box->asked.erase(found);
}

void Mailbox::Abort(const SessionName& session, uint64_t step, const Status& why) {
  Box ended;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s || step < s->oldest) return;
    Box& box = s->boxes[step];
    if (!box.over.ok()) return;
    box.over = why;
    ended.values.swap(box.values);
    ended.asked.swap(box.asked);
  }
  for (auto& [key, request] : ended.asked) request->Fail({why, true});
}

void Mailbox::Forget(const SessionName& session, uint64_t oldest) {
  std::vector<Box> over;
  {
    std::lock_guard lock(mu_);
    over = sessions_.Forget(session, oldest);
  }
  for (Box& box : over) {
    for (auto& [key, request] : box.asked) request->Fail({Error(absl::StatusCode::kAborted, "the step is over"), true});
  }
}

uint64_t Mailbox::size() const {
  std::lock_guard lock(mu_);
  return sessions_.Sum([](const Box& box) { return box.values.size() + box.asked.size(); });
}

void Mailbox::Answer(Incoming* request, const Tensor& value) {
  if (!value) return request->Answer(PutAnswer(WireWriter()));
  auto body = TensorBody(value);
  if (!body.ok()) return request->Fail({body.status(), false});
  WireWriter head;
  PutTensorHead(value, &head);
  request->Answer(PutAnswer(head), *std::move(body));
}

}  // namespace thalweg::distributed
