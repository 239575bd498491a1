#include "distributed/step_meeting.h"

#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/io/tensor_proto.h"

namespace thalweg::distributed {

// A value on its way here.
struct StepMeeting::Receipt {
  std::string key;
  Received done;
  TensorHead head;
  Tensor value;  // of a plain type: its memory is where the body goes
  uint64_t call = 0;
};

Status StepMeeting::Send(std::string_view key, Tensor value) {
  {
    std::lock_guard lock(mu_);
    if (!over_.status.ok()) return over_.status;
  }
  return mailbox_->Put(session_, step_, std::string(key), std::move(value));
}

void StepMeeting::Receive(std::string_view key, Received done) {
  auto source = sources_->find(key);
  if (source == sources_->end()) return done(Internal("nobody sends '", Shown(key), "'"), Tensor());
  auto receipt = std::make_shared<Receipt>();
  receipt->key = key;
  receipt->done = std::move(done);
  Call call;
  call.to = source->second;
  call.method = Method::kReceive;
  ReceiveRequest{session_, step_, receipt->key}.Put(&call.fields);
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
      receives_.insert(receipt->call);
    }
  }
  if (!over.status.ok()) receipt->done(over.status, Tensor());
}

void StepMeeting::Take(Receipt* receipt, const Reply& reply) {
  Status s = reply.outcome.status;
  if (s.ok() && receipt->value) {
    s = CheckElements(receipt->value);
  } else if (s.ok()) {
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
    if (!s.ok() && over_.status.ok() && reply.outcome.consequence) over_ = {s, true};
    if (!s.ok() && !over_.status.ok()) s = over_.status;
  }
  if (!s.ok()) receipt->value.reset();
  receipt->done(std::move(s), std::move(receipt->value));
}

void StepMeeting::StepFailed(const Status& why) {
  messenger_->clock().Soon([self = shared_from_this(), why] { self->End(why, false, false); });
}

void StepMeeting::Abort(const Status& why, bool consequence) { End(why, consequence, true); }

void StepMeeting::End(const Status& why, bool consequence, bool told) {
  std::set<uint64_t> receives;
  {
    std::lock_guard lock(mu_);
    if (over_.status.ok()) {
      over_ = {why, consequence};
      told_ = told;
    }
    receives.swap(receives_);
  }
  for (uint64_t call : receives) messenger_->Cancel(call);
  mailbox_->Abort(session_, step_, why);
}

Outcome StepMeeting::Ended(const Status& of_step) const {
  std::lock_guard lock(mu_);
  return told_ ? over_ : Outcome{of_step, over_.consequence};
}

}  // namespace thalweg::distributed
