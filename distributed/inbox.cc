#include "distributed/inbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kBoxBytes = 256;    // approximate bytes of a step with waiting entries
constexpr uint64_t kEntryBytes = 192;  // likewise of a value or a taker, beside key and value
constexpr uint64_t kSmall = 4096;      // bytes of lists and keys of a message that are not charged while it is read

}  // namespace

void Inbox::Open(const SessionName& session, MemoryBudget* budget) {
  std::lock_guard lock(mu_);
  sessions_.Open(session, budget);
}

void Inbox::Close(const SessionName& session) {
  Session closed;  // takers are destroyed outside the lock
  std::lock_guard lock(mu_);
  Session* s = sessions_.Find(session);
  if (!s) return;
  for (auto& [step, box] : s->boxes) Drop(s, &box);
  closed = sessions_.Remove(session);
}

// REQUIRES: mu_. Counts the values of the box as dropped.
void Inbox::Drop(Session* session, Box* box) {
  for (auto& [key, e] : box->entries) {
    session->held.Give(e.held);
    if (e.taker) continue;
    bytes_ -= e.value.bytes();
    ++dropped_;
  }
  bytes_ -= kBoxBytes;
}

// REQUIRES: mu_. Returns the existing box or a new one.
Inbox::Box* Inbox::Make(Session* session, uint64_t step) {
  auto [at, is_new] = session->boxes.try_emplace(step);
  if (is_new) {
    bytes_ += kBoxBytes;
    at->second.full = step < session->refused;
  }
  return &at->second;
}

// REQUIRES: mu_. Deletes an empty box: one long step must not keep the boxes of all later steps.
void Inbox::Tidy(Session* session, uint64_t step) {
  auto box = session->boxes.find(step);
  if (box == session->boxes.end() || box->second.full || !box->second.entries.empty()) return;
  bytes_ -= kBoxBytes;
  session->boxes.erase(box);
}

// REQUIRES: mu_.
void Inbox::Erase(Session* session, Box* box, std::map<std::string, Entry>::iterator entry) {
  session->held.Give(entry->second.held);
  box->entries.erase(entry);
}

// REQUIRES: mu_. Fails if the step has ended here, or its session is unknown; then counts `values`
// as dropped.
Status Inbox::CheckStep(const SessionName& session, uint64_t step, uint64_t values) {
  const Session* s = sessions_.Find(session);
  const bool known = s && step >= s->oldest;
  if (known && !s->over.Contains(step)) return Status();
  dropped_ += values;
  if (known) return Error(absl::StatusCode::kAborted, "step ", step, " has failed here");
  return Error(absl::StatusCode::kAborted, "step ", step, " of session ", session.id, " of ", Shown(session.owner), " is over here");
}

StatusOr<std::vector<std::string>> Inbox::Put(const SessionName& session, uint64_t step, std::vector<PushedValue> values, bool all) {
  std::vector<std::string> refused;
  std::vector<std::pair<Taker, PushedValue>> taken;
  {
    std::lock_guard lock(mu_);
    RETURN_IF_ERROR(CheckStep(session, step, values.size()));
    Session* s = sessions_.Find(session);
    if (!all && bytes_ >= most_bytes_ && !s->boxes.count(step)) {
      s->refused = std::max(s->refused, step + 1);
      for (PushedValue& v : values) refused.push_back(std::move(v.key));
      return refused;
    }
    Box& box = *Make(s, step);
    for (PushedValue& v : values) {
      auto e = box.entries.find(v.key);
      const uint64_t held = kEntryBytes + 2 * v.key.size();
      if (e != box.entries.end() && e->second.taker) {
        taken.emplace_back(e->second.taker, std::move(v));
        if (taken.back().second.state != PushedValue::kAsk) Erase(s, &box, e);
      } else if (e != box.entries.end()) {
        ++dropped_;  // it was sent twice; the first copy is kept
      } else if (const bool fits = v.bytes() <= most_bytes_ - std::min(bytes_, most_bytes_); !all && (!fits || !s->held.Take(held))) {
        box.full = true;
        refused.push_back(std::move(v.key));
      } else {
        bytes_ += v.bytes();
        Entry& entry = box.entries[v.key];
        entry.value = std::move(v);
        entry.held = all ? 0 : held;
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
  const std::string_view bytes = request->body();
  Meter read;  // the session's account pays
  {
    std::lock_guard lock(mu_);
    if (Status s = CheckStep(m->name(), m->step, WireReader(bytes).Count(sizeof(uint32_t) + 1)); !s.ok()) return request->Fail({s, true});
    read = Meter(sessions_.Find(m->name())->held.budget(), kSmall);
  }
  WireReader body(bytes, &read);
  std::vector<std::string> refused;
  auto values = GetPushed(&body, read.budget(), &refused);
  Status s = values.status();
  if (s.ok()) s = body.End("values that were sent");
  if (s.code() == absl::StatusCode::kResourceExhausted) s = Prefix(s, "values that were sent:");
  if (!s.ok()) return request->Fail({s, false});
  request->DropBody();
  auto more = Put(m->name(), m->step, *std::move(values));
  if (!more.ok()) return request->Fail({more.status(), true});
  refused.insert(refused.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
  WireWriter w;
  if (!refused.empty()) w.Texts(refused);
  request->Answer(PutAnswer(w));
}

Inbox::Found Inbox::Take(const SessionName& session, uint64_t step, const std::string& key, Taker taker, PushedValue* out) {
  std::lock_guard lock(mu_);
  Session* s = sessions_.Find(session);
  if (!s || step < s->oldest || s->over.Contains(step)) return Found::kAsk;  // the sender then tells why the step has ended
  Box& box = *Make(s, step);
  auto e = box.entries.find(key);
  if (e != box.entries.end() && !e->second.taker) {
    bytes_ -= e->second.value.bytes();
    *out = std::move(e->second.value);
    Erase(s, &box, e);
    if (out->state != PushedValue::kAsk) {
      Tidy(s, step);
      return Found::kHere;
    }
    e = box.entries.end();
    box.full = true;
  }
  box.entries[key].taker = std::move(taker);
  return box.full ? Found::kAsk : Found::kLater;
}

void Inbox::Leave(const SessionName& session, uint64_t step, const std::string& key) {
  Taker gone;  // destroyed outside the lock
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
  // If there is no memory to record the failure, later values wait, and are charged, until the step
  // has ended everywhere.
  s->over.Insert(step, &s->held);
  auto box = s->boxes.find(step);
  if (box == s->boxes.end()) return;
  Drop(s, &box->second);
  ended.entries.swap(box->second.entries);
  s->boxes.erase(box);
}

void Inbox::Forget(const SessionName& session, uint64_t oldest) {
  std::vector<Box> over;  // destroyed outside the lock
  std::lock_guard lock(mu_);
  over = sessions_.Forget(session, oldest);
  Session* s = sessions_.Find(session);
  if (!s) return;
  s->over.Forget(oldest, &s->held);
  for (Box& box : over) Drop(s, &box);
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
