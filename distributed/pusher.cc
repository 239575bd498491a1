#include "distributed/pusher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "distributed/wire.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kPushTime = 60'000'000'000;  // nanoseconds for an answer, in a step that has as many
constexpr uint64_t kTasks = 4;                 // so many may have as much on their way to them as one

}  // namespace

struct Pusher::Sent {
  ProcessName to;
  SessionName session;
  uint64_t step = 0, bytes = 0;
  std::vector<PushedValue> values;
};

void Pusher::Push(const Destination& to, const SessionName& session, uint64_t step, int64_t deadline, std::vector<PushedValue> values) {
  auto sent = std::make_shared<Sent>();
  sent->to = to.process();
  sent->session = session;
  sent->step = step;
  for (const PushedValue& v : values) sent->bytes += v.bytes();
  bool fits;
  {
    std::lock_guard lock(mu_);
    auto [it, is_new] = under_way_.try_emplace(sent->to);
    fits = it->second + sent->bytes <= most_bytes_ && all_ + sent->bytes <= kTasks * most_bytes_;
    if (fits) it->second += sent->bytes;
    if (fits) all_ += sent->bytes;
    if (!fits && is_new) under_way_.erase(it);
    if (!fits) sent->bytes = 0;
  }
  if (fits) {
    sent->values = values;
  } else {
    for (PushedValue& v : values) {
      // The mailbox has it before the other side can ask. A step that is over needs it no more.
      mailbox_->Put(session, step, v.key, std::move(v.value)).IgnoreError();
      v = {std::move(v.key), Tensor(), PushedValue::kAsk};
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
  PutPushed(values, &body).IgnoreError();  // what cannot travel has no sink
  call.body = Payload::Of(body.Take());
  messenger_->Start(std::move(call));
}

void Pusher::Answered(const Sent& sent, const Reply& reply) {
  if (sent.bytes) {
    std::lock_guard lock(mu_);
    all_ -= sent.bytes;
    auto it = under_way_.find(sent.to);
    if ((it->second -= sent.bytes) == 0) under_way_.erase(it);
  }
  const Status& s = reply.outcome.status;
  if (s.code() == absl::StatusCode::kAborted) return;  // the step is over there
  std::vector<std::string> refused;
  if (s.ok() && !reply.fields.empty()) refused = WireReader(reply.fields).Texts();
  for (const PushedValue& v : sent.values) {
    if (s.ok() && std::find(refused.begin(), refused.end(), v.key) == refused.end()) continue;
    mailbox_->Put(sent.session, sent.step, v.key, v.value).IgnoreError();  // the step may be over here
  }
}

}  // namespace thalweg::distributed
