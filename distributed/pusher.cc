#include "distributed/pusher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "distributed/wire.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kPushTime = 60'000'000'000;  // nanoseconds for an answer, if the step's deadline allows
constexpr uint64_t kTasks = 4;                 // all tasks together may have as much on the way as so many single tasks
constexpr uint64_t kPush = 1536;               // bytes of a push beside its values: records of call, message and transport
constexpr uint64_t kFreePushes = 16;           // to one task: so many pushes have kFreeBytes each, with their values, free of charge
constexpr uint64_t kFreeBytes = 4096;

}  // namespace

struct Pusher::Sent {
  ProcessName to;
  SessionName session;
  uint64_t step = 0, bytes = 0;
  Meter paid;  // for the push while it is on its way
  std::vector<PushedValue> values;
};

// Returns false if there is no memory for any message. *fits: whether the values may go with it.
bool Pusher::Begin(Sent* sent, uint64_t bytes, MemoryBudget* budget, bool* fits) {
  std::lock_guard lock(mu_);
  auto [it, is_new] = under_way_.try_emplace(sent->to);
  UnderWay& way = it->second;
  *fits = way.bytes + bytes <= most_bytes_ && all_ + bytes <= kTasks * most_bytes_;
  sent->paid = Meter(budget, way.pushes < kFreePushes ? kFreeBytes : 0);
  const bool paid = (*fits && sent->paid.TakeJust(kPush + bytes)) || ((*fits = false), sent->paid.TakeJust(kPush));
  if (!paid) {
    if (is_new) under_way_.erase(it);
    return false;
  }
  ++way.pushes;
  sent->bytes = *fits ? bytes : 0;
  way.bytes += sent->bytes;
  all_ += sent->bytes;
  return true;
}

// Puts the value into the mailbox before the other side can request it. A step that has ended does
// not need it any more.
Status Pusher::Keep(const SessionName& session, uint64_t step, PushedValue* value) {
  if (value->state == PushedValue::kAsk) return Status();
  Status s = mailbox_->Put(session, step, value->key, std::move(value->value));
  *value = {std::move(value->key), Tensor(), PushedValue::kAsk};
  return s.code() == absl::StatusCode::kResourceExhausted ? s : Status();
}

Status Pusher::Push(const Destination& to, const SessionName& session, uint64_t step, int64_t deadline, std::vector<PushedValue> values,
                    MemoryBudget* budget) {
  auto sent = std::make_shared<Sent>();
  sent->to = to.process();
  sent->session = session;
  sent->step = step;
  uint64_t bytes = 0;
  for (const PushedValue& v : values) bytes += v.bytes();
  bool fits;
  const bool told = Begin(sent.get(), bytes, budget, &fits);
  if (fits) {
    sent->values = values;
  } else {
    Status s;
    for (PushedValue& v : values) {
      if (Status of_one = Keep(session, step, &v); s.ok()) s = std::move(of_one);
    }
    if (!s.ok() || !told) {
      if (told) Over(*sent);
      return s;
    }
  }
  WireWriter body;
  Call call;
  call.to = to;
  call.method = Method::kPush;
  PushRequest{session.id, step, session.owner}.Put(&call.fields);
  const int64_t own = messenger_->clock().Now() + kPushTime;
  call.deadline = deadline ? std::min(deadline, own) : own;
  call.done = [this, sent](const Reply& reply) { Answered(*sent, reply); };
  PutPushed(values, &body).IgnoreError();  // a value that cannot travel has no sink
  call.body = Payload::Of(body.Take());
  messenger_->Start(std::move(call));
  return Status();
}

void Pusher::Over(const Sent& sent) {
  std::lock_guard lock(mu_);
  all_ -= sent.bytes;
  auto it = under_way_.find(sent.to);
  it->second.bytes -= sent.bytes;
  if (--it->second.pushes == 0) under_way_.erase(it);
}

void Pusher::Answered(const Sent& sent, const Reply& reply) {
  Over(sent);
  const Status& s = reply.outcome.status;
  if (s.code() == absl::StatusCode::kAborted) return;  // the step has ended there
  std::vector<std::string> refused;
  if (s.ok() && !reply.fields.empty()) refused = WireReader(reply.fields).Texts();
  for (const PushedValue& v : sent.values) {
    if (s.ok() && std::find(refused.begin(), refused.end(), v.key) == refused.end()) continue;
    mailbox_->Put(sent.session, sent.step, v.key, v.value).IgnoreError();  // the step may have ended here
  }
}

}  // namespace thalweg::distributed
