#include "distributed/mailbox.h"

#include <utility>

#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr size_t kSteps = 1 << 20;     // of a session, from the oldest step that has not ended
constexpr uint64_t kSmallBody = 4096;  // bytes of an answer that are not charged

// Bytes of a waiting value, beside its own memory.
uint64_t OfValue(const std::string& key) { return 160 + 2 * key.size(); }

Status NoSession(const SessionName& session) {
  return Error(absl::StatusCode::kAborted, "session ", session.id, " of ", Shown(session.owner),
               " is not known here; its client has closed it, or the task was restarted");
}

}  // namespace

void Mailbox::Open(const SessionName& session, MemoryBudget* budget) {
  std::lock_guard lock(mu_);
  sessions_.Open(session, budget);
}

uint64_t Mailbox::OfValues(const Box& box) {
  uint64_t bytes = 0;
  for (const auto& [key, value] : box.values) bytes += OfValue(key);
  return bytes;
}

// REQUIRES: mu_. Deletes an empty box: one long step must not keep the boxes of all later steps.
void Mailbox::Tidy(Session* session, uint64_t step) {
  auto box = session->boxes.find(step);
  if (box != session->boxes.end() && box->second.values.empty() && box->second.asked.empty()) session->boxes.erase(box);
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
  Meter paid;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s) return NoSession(session);
    if (step < s->oldest) return Error(absl::StatusCode::kAborted, "the step is over");
    if (s->ended.Contains(step)) return s->ended.Why(step);
    Box& box = s->boxes[step];
    if (auto found = box.asked.find(key); found != box.asked.end()) {
      asked = std::move(found->second);
      box.asked.erase(found);
      paid = Meter(s->held.budget(), kSmallBody);
      Tidy(s, step);
    } else if (box.values.contains(key)) {
      return AlreadyExists("'", Shown(key), "' was sent twice");
    } else if (!s->held.Take(OfValue(key))) {
      Tidy(s, step);
      return Prefix(s->held.status(), StrCat("value '", Shown(key), "' that waits to be asked for:"));
    } else {
      box.values.emplace(key, value);
    }
  }
  if (asked) Answer(asked.get(), value, std::move(paid));
  return Status();
}

void Mailbox::Ask(const ReceiveRequest& m, std::shared_ptr<Incoming> request) {
  const SessionName session = m.name();
  const auto& [id, step, key, owner] = m;
  Tensor value;
  Meter paid;
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
    } else if (s->ended.Contains(step)) {
      outcome = {s->ended.Why(step), true};
    } else {
      Box& box = s->boxes[step];
      if (auto found = box.values.find(key); found != box.values.end()) {
        there = true;
        value = std::move(found->second);
        box.values.erase(found);
        s->held.Give(OfValue(key));
        paid = Meter(s->held.budget(), kSmallBody);
        Tidy(s, step);
      } else if (!box.asked.emplace(key, request).second) {
        outcome = {AlreadyExists("'", Shown(key), "' is asked for twice"), false};
      }
    }
  }
  if (!outcome.status.ok()) return request->Fail(outcome);
  if (there) return Answer(request.get(), value, std::move(paid));
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
  Tidy(sessions_.Find(session), step);
}

void Mailbox::Abort(const SessionName& session, uint64_t step, const Status& why) {
  Box ended;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s || step < s->oldest) return;
    // If there is no memory to record the failure, later requests wait until the step has ended
    // everywhere, or has ended at the requester.
    s->ended.Add(step, why, &s->held);
    auto box = s->boxes.find(step);
    if (box == s->boxes.end()) return;
    ended = std::move(box->second);
    s->boxes.erase(box);
    s->held.Give(OfValues(ended));
  }
  for (auto& [key, request] : ended.asked) request->Fail({why, true});
}

void Mailbox::Forget(const SessionName& session, uint64_t oldest) {
  std::vector<Box> over;
  {
    std::lock_guard lock(mu_);
    over = sessions_.Forget(session, oldest);
    if (Session* s = sessions_.Find(session)) {
      s->ended.Forget(oldest, &s->held);
      for (const Box& box : over) s->held.Give(OfValues(box));
    }
  }
  for (Box& box : over) {
    for (auto& [key, request] : box.asked) request->Fail({Error(absl::StatusCode::kAborted, "the step is over"), true});
  }
}

uint64_t Mailbox::size() const {
  std::lock_guard lock(mu_);
  return sessions_.Sum([](const Box& box) { return box.values.size() + box.asked.size(); });
}

// paid: pays for bytes that are allocated for the answer, which only strings need.
void Mailbox::Answer(Incoming* request, const Tensor& value, Meter paid) {
  if (!value) return request->Answer(PutAnswer(WireWriter()));
  if (value.dtype() == TW_STRING && !paid.TakeJust(WireBytes(value))) {
    return request->Fail({Prefix(paid.status(), StrCat("an answer of ", WireBytes(value), " bytes:")), false});
  }
  auto body = TensorBody(value);
  if (!body.ok()) return request->Fail({body.status(), false});
  WireWriter head;
  PutTensorHead(value, &head);
  request->Answer(PutAnswer(head), value.dtype() == TW_STRING ? (*std::move(body)).PaidBy(std::move(paid)) : *std::move(body));
}

}  // namespace thalweg::distributed
