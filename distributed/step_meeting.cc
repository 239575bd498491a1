#include "distributed/step_meeting.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/io/tensor_proto.h"

namespace thalweg::distributed {

// A value on its way here.
struct StepMeeting::Receipt {
  std::string key;
  Destination from;
  int64_t asked = 0;
  Received done;
  TensorHead head;
  Tensor value;  // of a plain type: its memory is where the body goes
  uint64_t call = 0;
};

namespace {

// Under which a value of an iteration is kept. Keys end with a task, which has no ':'.
std::string KeyIn(std::string_view key, std::string_view iteration) {
  return iteration.empty() ? std::string(key) : StrCat(key, ":", iteration);
}

}  // namespace

Status StepMeeting::Send(std::string_view key, std::string_view iteration, Tensor value) {
  {
    std::lock_guard lock(mu_);
    if (!over_.status.ok()) return over_.status;
    moved_ = messenger_->clock().Now();
  }
  return mailbox_->Put(session_, step_, KeyIn(key, iteration), std::move(value));
}

void StepMeeting::Receive(std::string_view key, std::string_view iteration, Received done) {
  auto source = sources_->find(key);
  if (source == sources_->end()) return done(Internal("nobody sends '", Shown(key), "'"), Tensor());
  auto receipt = std::make_shared<Receipt>();
  receipt->key = KeyIn(key, iteration);
  receipt->from = source->second;
  receipt->asked = messenger_->clock().Now();
  receipt->done = std::move(done);
  Call call;
  call.to = source->second;
  call.method = Method::kReceive;
  ReceiveRequest{session_.id, step_, receipt->key, session_.owner}.Put(&call.fields);
  call.deadline = deadline_;
  call.kept = receipt;
  call.place = [r = receipt.get()](std::string_view fields, uint64_t bytes) -> void* {
    WireReader reader(fields);
    r->head = GetTensorHead(&reader);
    if (!reader.End("").ok() || r->head.dtype == TW_STRING || !CheckTensorHead(r->head, bytes).ok()) return nullptr;
    auto made = MakeTensor(r->head);
    if (!made.ok()) return nullptr;
    r->value = *std::move(made);
    return r->value.data();
  };
  call.done = [self = shared_from_this(), receipt](const Reply& reply) { self->Take(receipt.get(), reply); };
  Outcome over;
  {
    // The call cannot end before it is noted: its end takes the lock.
    std::lock_guard lock(mu_);
    over = over_;
    if (over.status.ok()) {
      receipt->call = messenger_->Start(std::move(call));
      receives_.emplace(receipt->call, receipt.get());
    }
  }
  if (!over.status.ok()) receipt->done(over.status, Tensor());
}

void StepMeeting::Take(Receipt* receipt, const Reply& reply) {
  Status s = reply.outcome.status;
  if (s.ok() && receipt->value) {
    s = CheckElements(receipt->value);
  } else if (s.ok() && !reply.fields.empty()) {
    WireReader fields(reply.fields);
    receipt->head = GetTensorHead(&fields);
    s = fields.End("the head of a value");
    if (s.ok()) {
      auto value = TensorFrom(receipt->head, reply.body);
      s = value.status();
      if (value.ok()) receipt->value = *std::move(value);
    }
  }
  {
    std::lock_guard lock(mu_);
    receives_.erase(receipt->call);
    moved_ = messenger_->clock().Now();
    if (!s.ok() && over_.status.ok() && reply.outcome.consequence) over_ = {s, true};
    const auto lost = s.ok() ? lost_.end() : lost_.find(receipt->from.process());
    if (lost != lost_.end()) s = lost->second;
    if (!s.ok() && !over_.status.ok()) s = over_.status;
  }
  if (traffic_ && s.ok()) traffic_->Received(receipt->from.title, receipt->value ? receipt->value.bytes() : 0);
  // Of a call that failed, the transport may still write into the value; it goes with what the call keeps.
  Tensor value = s.ok() ? std::move(receipt->value) : Tensor();
  receipt->done(std::move(s), std::move(value));
}

void StepMeeting::StepFailed(const Status& why) {
  messenger_->clock().Soon([self = shared_from_this(), why] { self->End(why, false, false); });
}

void StepMeeting::Abort(const Status& why, bool consequence) { End(why, consequence, true); }

void StepMeeting::End(const Status& why, bool consequence, bool told) {
  std::map<uint64_t, const Receipt*> receives;
  {
    std::lock_guard lock(mu_);
    if (over_.status.ok()) {
      over_ = {why, consequence};
      told_ = told;
    }
    receives.swap(receives_);
  }
  for (const auto& [call, receipt] : receives) messenger_->Cancel(call);
  mailbox_->Abort(session_, step_, why);
}

void StepMeeting::Look(RunStatus* to) const {
  constexpr size_t kShown = 8;
  const int64_t now = messenger_->clock().Now();
  std::lock_guard lock(mu_);
  to->idle = std::max<int64_t>(now - moved_, 0);
  to->n_waits = uint32_t(receives_.size());
  for (auto it = receives_.begin(); it != receives_.end() && to->waits.size() < kShown; ++it) {
    to->waits.emplace_back(it->second->key, it->second->from.title);
  }
}

void StepMeeting::AddLate(int64_t since, std::map<ProcessName, Destination>* to) const {
  std::lock_guard lock(mu_);
  for (const auto& [call, receipt] : receives_) {
    if (receipt->asked < since) to->emplace(receipt->from.process(), receipt->from);
  }
}

void StepMeeting::PeerLost(const ProcessName& who, const Status& why) {
  std::vector<uint64_t> calls;
  {
    std::lock_guard lock(mu_);
    for (const auto& [call, receipt] : receives_) {
      if (receipt->from.process() == who) calls.push_back(call);
    }
    if (!calls.empty()) lost_[who] = why;
  }
  for (uint64_t call : calls) messenger_->Cancel(call);
}

Outcome StepMeeting::Ended(const Status& of_step) const {
  std::lock_guard lock(mu_);
  return told_ ? over_ : Outcome{of_step, over_.consequence};
}

}  // namespace thalweg::distributed
