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
  sessions_.try_emplace(session);
}

void Inbox::Close(const SessionName& session) {
  Session closed;  // takers end outside the lock
  std::lock_guard lock(mu_);
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  for (auto& [step, box] : it->second.boxes) Drop(&box);
  closed = std::move(it->second);
  sessions_.erase(it);
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
    auto it = sessions_.find(session);
    if (it == sessions_.end() || step < it->second.oldest) {
      dropped_ += values.size();
      return Error(absl::StatusCode::kAborted, "step ", step, " of session ", session.id, " of ", Shown(session.owner), " is over here");
    }
    if (!all && bytes_ >= most_bytes_ && !it->second.boxes.count(step)) {
      it->second.refused = std::max(it->second.refused, step + 1);
      for (PushedValue& v : values) refused.push_back(std::move(v.key));
      return refused;
    }
    Box& box = *Make(&it->second, step);
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
    Tidy(&it->second, step);
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
  auto it = sessions_.find(session);
  if (it == sessions_.end() || step < it->second.oldest) return Found::kAsk;  // whoever is asked says what has become of it
  Box& box = *Make(&it->second, step);
  auto e = box.entries.find(key);
  if (e != box.entries.end() && !e->second.taker) {
    bytes_ -= e->second.value.bytes();
    *out = std::move(e->second.value);
    box.entries.erase(e);
    if (out->state != PushedValue::kAsk) {
      Tidy(&it->second, step);
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
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  auto box = it->second.boxes.find(step);
  if (box == it->second.boxes.end()) return;
  auto e = box->second.entries.find(key);
  if (e == box->second.entries.end() || !e->second.taker) return;
  gone = std::move(e->second.taker);
  box->second.entries.erase(e);
  Tidy(&it->second, step);
}

void Inbox::Abort(const SessionName& session, uint64_t step) {
  Box ended;
  std::lock_guard lock(mu_);
  auto it = sessions_.find(session);
  if (it == sessions_.end() || step < it->second.oldest) return;
  Box& box = *Make(&it->second, step);
  Drop(&box);
  bytes_ += kBoxBytes;  // the box stays, to know what is dropped
  ended.entries.swap(box.entries);
  box.over = true;
}

void Inbox::Forget(const SessionName& session, uint64_t oldest) {
  std::vector<Box> over;  // ends outside the lock
  std::lock_guard lock(mu_);
  auto it = sessions_.find(session);
  if (it == sessions_.end() || oldest <= it->second.oldest) return;
  Session& s = it->second;
  s.oldest = oldest;
  for (auto box = s.boxes.begin(); box != s.boxes.end() && box->first < oldest; box = s.boxes.erase(box)) {
    Drop(&box->second);
    over.push_back(std::move(box->second));
  }
}

uint64_t Inbox::size() const {
  std::lock_guard lock(mu_);
  uint64_t n = 0;
  for (const auto& [name, session] : sessions_) {
    for (const auto& [step, box] : session.boxes) n += box.entries.size();
  }
  return n;
}

uint64_t Inbox::dropped() const {
  std::lock_guard lock(mu_);
  return dropped_;
}

}  // namespace thalweg::distributed
