#include "distributed/inbox.h"

#include <algorithm>
#include <utility>

#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kBoxBytes = 256;  // about what a step takes whose values are dropped

}  // namespace

void Inbox::Open(const SessionName& session) {
  std::lock_guard lock(mu_);
  sessions_.Open(session);
}

void Inbox::Close(const SessionName& session) {
  Session closed;  // takers end outside the lock
  std::lock_guard lock(mu_);
  Session* s = sessions_.Find(session);
  if (!s) return;
  for (auto& [step, box] : s->boxes) Drop(&box);
  closed = sessions_.Remove(session);
}

// REQUIRES: mu_. Its values are counted as dropped.
void Inbox::Drop(Box* box) {
  for (auto& [key, e] : box->entries) {
    if (e.taker) continue;
    bytes_ -= e.value.bytes();
    ++dropped_;
  }
  bytes_ -= kBoxBytes;
}

// REQUIRES: mu_. The one that there is, or a new one.
Inbox::Box* Inbox::Make(Session* session, uint64_t step) {
  auto [at, is_new] = session->boxes.try_emplace(step);
  if (is_new) {
    bytes_ += kBoxBytes;
    at->second.full = step < session->refused;
  }
  return &at->second;
}

// REQUIRES: mu_. A box that says nothing goes: one long step must not keep those of all that come after it.
void Inbox::Tidy(Session* session, uint64_t step) {
  auto box = session->boxes.find(step);
  if (box == session->boxes.end() || box->second.over || box->second.full || !box->second.entries.empty()) return;
  bytes_ -= kBoxBytes;
  session->boxes.erase(box);
}

StatusOr<std::vector<std::string>> Inbox::Put(const SessionName& session, uint64_t step, std::vector<PushedValue> values, bool all) {
  std::vector<std::string> refused;
  std::vector<std::pair<Taker, PushedValue>> taken;
  {
    std::lock_guard lock(mu_);
    Session* s = sessions_.Find(session);
    if (!s || step < s->oldest) {
      dropped_ += values.size();
      return Error(absl::StatusCode::kAborted, "step ", step, " of session ", session.id, " of ", Shown(session.owner), " is over here");
    }
    if (!all && bytes_ >= most_bytes_ && !s->boxes.count(step)) {
      s->refused = std::max(s->refused, step + 1);
      for (PushedValue& v : values) refused.push_back(std::move(v.key));
      return refused;
    }
    Box& box = *Make(s, step);
    if (box.over) {
      dropped_ += values.size();
      return Error(absl::StatusCode::kAborted, "step ", step, " has failed here");
    }
    for (PushedValue& v : values) {
      auto e = box.entries.find(v.key);
      if (e != box.entries.end() && e->second.taker) {
        taken.emplace_back(e->second.taker, std::move(v));
        if (taken.back().second.state != PushedValue::kAsk) box.entries.erase(e);
      } else if (e != box.entries.end()) {
        ++dropped_;  // it was sent twice: the first is as good
      } else if (!all && v.bytes() > most_bytes_ - std::min(bytes_, most_bytes_)) {
        box.full = true;
        refused.push_back(std::move(v.key));
      } else {
        bytes_ += v.bytes();
        box.entries[v.key].value = std::move(v);
      }
    }
    Tidy(s, step);
  }
  for (auto& [taker, value] : taken) taker(std::move(value));
  return refused;
}

void Inbox::Serve(std::string_view fields, Incoming* request) {
  const auto m = PushRequest::Get(fields);
  if (!m.ok()) return request->Fail({m.status(), false});
  WireReader body(request->body());
  auto values = GetPushed(&body);
  Status s = values.status();
  if (s.ok()) s = body.End("values that were sent");
  if (!s.ok()) return request->Fail({s, false});
  request->DropBody();
  const auto refused = Put(m->name(), m->step, *std::move(values));
  if (!refused.ok()) return request->Fail({refused.status(), true});
  WireWriter w;
  if (!refused->empty()) w.Texts(*refused);
  request->Answer(PutAnswer(w));
}

Inbox::Found Inbox::Take(const SessionName& session, uint64_t step, const std::string& key, Taker taker, PushedValue* out) {
  std::lock_guard lock(mu_);
  Session* s = sessions_.Find(session);
  if (!s || step < s->oldest) return Found::kAsk;  // whoever is asked says what has become of it
  Box& box = *Make(s, step);
  auto e = box.entries.find(key);
  if (e != box.entries.end() && !e->second.taker) {
    bytes_ -= e->second.value.bytes();
    *out = std::move(e->second.value);
    box.entries.erase(e);
    if (out->state != PushedValue::kAsk) {
      Tidy(s, step);
      return Found::kHere;
    }
    e = box.entries.end();
    box.full = true;
  }
  if (box.over) return Found::kAsk;
  box.entries[key].taker = std::move(taker);
  return box.full ? Found::kAsk : Found::kLater;
}

void Inbox::Leave(const SessionName& session, uint64_t step, const std::string& key) {
  Taker gone;  // ends outside the lock
  std::lock_guard lock(mu_);
  Box* box = sessions_.Find(session, step);
  if (!box) return;
  auto e = box->entries.find(key);
  if (e == box->entries.end() || !e->second.taker) return;
  gone = std::move(e->second.taker);
  box->entries.erase(e);
  Tidy(sessions_.Find(session), step);
}

void Inbox::Abort(const SessionName& session, uint64_t step) {
  Box ended;
  std::lock_guard lock(mu_);
  Session* s = sessions_.Find(session);
  if (!s || step < s->oldest) return;
  Box& box = *Make(s, step);
  Drop(&box);
  bytes_ += kBoxBytes;  // the box stays, to know what is dropped
  ended.entries.swap(box.entries);
  box.over = true;
}

void Inbox::Forget(const SessionName& session, uint64_t oldest) {
  std::vector<Box> over;  // ends outside the lock
  std::lock_guard lock(mu_);
  over = sessions_.Forget(session, oldest);
  for (Box& box : over) Drop(&box);
}

uint64_t Inbox::size() const {
  std::lock_guard lock(mu_);
  return sessions_.Sum([](const Box& box) { return box.entries.size(); });
}

uint64_t Inbox::dropped() const {
  std::lock_guard lock(mu_);
  return dropped_;
}

}  // namespace thalweg::distributed
