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
  sessions_.try_emplace(session);
}

void Mailbox::Close(const SessionName& session, const Status& why) {
  Session closed;
  {
    std::lock_guard lock(mu_);
    auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    closed = std::move(it->second);
    sessions_.erase(it);
  }
  for (auto& [step, box] : closed.boxes) {
    for (auto& [key, request] : box.asked) request->Fail({why, true});
  }
}

Status Mailbox::Put(const SessionName& session, uint64_t step, const std::string& key, Tensor value) {
  std::shared_ptr<Incoming> asked;
  {
    std::lock_guard lock(mu_);
    auto it = sessions_.find(session);
    if (it == sessions_.end()) return NoSession(session);
    if (step < it->second.oldest) return Error(absl::StatusCode::kAborted, "the step is over");
    Box& box = it->second.boxes[step];
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
    auto it = sessions_.find(session);
    if (it == sessions_.end()) {
      outcome = {NoSession(session), false};
    } else if (step < it->second.oldest) {
      outcome = {Error(absl::StatusCode::kAborted, "the step is over"), true};
    } else if (it->second.boxes.size() >= kSteps && !it->second.boxes.count(step)) {
      outcome = {ResourceExhausted("session ", id, " has values of ", kSteps, " steps under way, as many as a task takes"), false};
    } else {
      Box& box = it->second.boxes[step];
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
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  auto box = it->second.boxes.find(step);
  if (box == it->second.boxes.end()) return;
  auto found = box->second.asked.find(key);
  if (found == box->second.asked.end() || found->second.get() != request) return;
  gone = std::move(found->second);
  box->second.asked.erase(found);
}

void Mailbox::Abort(const SessionName& session, uint64_t step, const Status& why) {
  Box ended;
  {
    std::lock_guard lock(mu_);
    auto it = sessions_.find(session);
    if (it == sessions_.end() || step < it->second.oldest) return;
    Box& box = it->second.boxes[step];
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
    auto it = sessions_.find(session);
    if (it == sessions_.end() || oldest <= it->second.oldest) return;
    Session& s = it->second;
    s.oldest = oldest;
    for (auto box = s.boxes.begin(); box != s.boxes.end() && box->first < oldest; box = s.boxes.erase(box)) {
      over.push_back(std::move(box->second));
    }
  }
  for (Box& box : over) {
    for (auto& [key, request] : box.asked) request->Fail({Error(absl::StatusCode::kAborted, "the step is over"), true});
  }
}

uint64_t Mailbox::size() const {
  std::lock_guard lock(mu_);
  uint64_t n = 0;
  for (const auto& [id, session] : sessions_) {
    for (const auto& [step, box] : session.boxes) n += box.values.size() + box.asked.size();
  }
  return n;
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
