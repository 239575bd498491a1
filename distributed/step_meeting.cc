#include "distributed/step_meeting.h"

#include <algorithm>
#include <utility>

#include "framework/base/shown.h"
#include "framework/proto/tensor_proto.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg::distributed {

// A value that is awaited.
struct StepMeeting::Receipt {
  uint64_t name = 0;
  std::string key;
  Destination from;
  bool pushed = false;
  int64_t since = 0;  // start of the wait
  Received done;
  TensorHead head;
  Meter body;         // charged for the answer's body while it is kept beside the value
  Tensor value;       // of a requested value of a plain type: the body is written into its memory
  uint64_t call = 0;  // the call that requests it; 0 if none
  bool over = false;  // `done` was called, or is about to be; guarded by the meeting's lock
};

namespace {

// Bytes of an awaited value, here and in the inbox.
uint64_t OfReceipt(const std::string& key) { return 640 + 4 * key.size(); }

// Returns the key of a value in an iteration. Keys end with a task, which contains no ':'.
std::string KeyIn(std::string_view key, std::string_view iteration) {
  return iteration.empty() ? std::string(key) : StrCat(key, ":", iteration);
}

}  // namespace

StepMeeting::~StepMeeting() {
  if (timer_) channels_.messenger->clock().Forget(timer_);
}

// ---- Sending ----

Status StepMeeting::Send(std::string_view key, std::string_view iteration, Tensor value) {
  const auto sink = routes_->sinks.find(key);
  const bool pushed = sink != routes_->sinks.end();
  PushedValue v{KeyIn(key, iteration), std::move(value)};
  if (!v.value) v.state = PushedValue::kDead;
  {
    std::lock_guard lock(mu_);
    if (!over_.status.ok()) return over_.status;
    moved_ = channels_.messenger->clock().Now();
    if (pushed && holds_) {
      held_.push_back({&sink->second, std::move(v)});
      return Status();
    }
  }
  if (!pushed) return channels_.mailbox->Put(session_, step_, v.key, std::move(v.value));
  return channels_.pusher->Push(sink->second.to, session_, step_, deadline_, {std::move(v)}, budget());
}

void StepMeeting::Hold() {
  std::lock_guard lock(mu_);
  holds_ = true;
}

void StepMeeting::Release() { LetGo(false); }

std::vector<CarriedValues> StepMeeting::TakeCarried() { return LetGo(true); }

// Sends the values for one task together.
std::vector<CarriedValues> StepMeeting::LetGo(bool may_carry) {
  std::vector<Held> held;
  {
    std::lock_guard lock(mu_);
    holds_ = false;
    held.swap(held_);
  }
  std::vector<CarriedValues> carried;
  std::map<ProcessName, std::pair<const Destination*, std::vector<PushedValue>>> pushed;
  for (Held& h : held) {
    if (!may_carry || !h.sink->carried) {
      auto& to = pushed[h.sink->to.process()];
      to.first = &h.sink->to;
      to.second.push_back(std::move(h.value));
      continue;
    }
    const uint64_t incarnation = h.sink->to.incarnation;
    auto to = std::find_if(carried.begin(), carried.end(), [&](const CarriedValues& c) { return c.incarnation == incarnation; });
    if (to == carried.end()) to = carried.insert(to, {incarnation, {}});
    to->values.push_back(std::move(h.value));
  }
  for (auto& [who, to] : pushed) {
    const Status s = channels_.pusher->Push(*to.first, session_, step_, deadline_, std::move(to.second), budget());
    if (!s.ok()) StepFailed(s);
  }
  return carried;
}

// ---- Receiving ----

void StepMeeting::Receive(std::string_view key, std::string_view iteration, Received done) {
  auto source = routes_->sources.find(key);
  if (source == routes_->sources.end()) return done(Internal("nobody sends '", Shown(key), "'"), Tensor());
  auto receipt = std::make_shared<Receipt>();
  receipt->key = KeyIn(key, iteration);
  receipt->from = source->second.from;
  receipt->pushed = source->second.pushed;
  receipt->since = channels_.messenger->clock().Now();
  receipt->done = std::move(done);
  Outcome over;
  {
    std::lock_guard lock(mu_);
    over = over_;
    if (over.status.ok() && !held_for_receipts_.TakeJust(OfReceipt(receipt->key))) {
      over.status = Prefix(held_for_receipts_.status(), StrCat("value '", Shown(receipt->key), "' from ", receipt->from.title, ":"));
    }
    receipt->name = ++names_;
    if (over.status.ok()) waiting_.emplace(receipt->name, receipt);
  }
  if (!over.status.ok()) return receipt->done(over.status, Tensor());
  return receipt->pushed ? Await(receipt) : Ask(receipt);
}

void StepMeeting::Await(const ReceiptPtr& receipt) {
  PushedValue value;
  const auto found = channels_.inbox->Take(
      session_, step_, receipt->key, [self = shared_from_this(), receipt](PushedValue v) { self->Came(receipt, std::move(v)); }, &value);
  if (found == Inbox::Found::kHere) return Came(receipt, std::move(value), false);
  if (found == Inbox::Found::kAsk) return Ask(receipt);
  std::lock_guard lock(mu_);
  if (!deadline_ || timer_ || receipt->over) return;
  // A request at that time fails at once, and names the task that has not answered in time.
  timer_ = channels_.messenger->clock().At(deadline_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->AskLate(INT64_MAX);
  });
}

// Requests the value, unless it has arrived or was requested already.
void StepMeeting::Ask(const ReceiptPtr& receipt) {
  Call call;
  call.to = receipt->from;
  call.method = Method::kReceive;
  ReceiveRequest{session_.id, step_, receipt->key, session_.owner}.Put(&call.fields);
  call.deadline = deadline_;
  call.kept = receipt;
  call.place = [self = shared_from_this(), r = receipt.get()](std::string_view fields, uint64_t bytes) {
    return self->Place(r, fields, bytes);
  };
  call.done = [self = shared_from_this(), receipt](const Reply& reply) { self->Answered(receipt, reply); };
  // The call cannot end before it is recorded, because its end takes the lock.
  std::lock_guard lock(mu_);
  if (!receipt->over && !receipt->call) receipt->call = channels_.messenger->Start(std::move(call));
}

// Returns the payer of a value of so many bytes: the session, once the free bytes are used up.
MemoryBudget* StepMeeting::PayerOf(uint64_t bytes) {
  bytes += MemoryBudget::kPerBuffer;
  uint64_t left = free_.load(std::memory_order_relaxed);
  while (bytes <= left) {
    if (free_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return nullptr;
  }
  return budget();
}

// Returns the value's memory, or NULL if the layout of the body differs from that of the value;
// then the body is charged, too.
StatusOr<void*> StepMeeting::Place(Receipt* r, std::string_view fields, uint64_t bytes) {
  const auto refused = [&](const Status& why) { return Prefix(why, StrCat("value '", Shown(r->key), "':")); };
  WireReader reader(fields);
  r->head = GetTensorHead(&reader);
  if (!reader.End("").ok() || r->head.dtype == TW_STRING || !CheckTensorHead(r->head, bytes).ok()) {
    r->body = Meter(budget(), kFree);
    if (!r->body.TakeJust(bytes)) return refused(r->body.status());
    return static_cast<void*>(nullptr);
  }
  auto made = MakeTensor(r->head, PayerOf(bytes));
  if (!made.ok()) return refused(made.status());
  r->value = *std::move(made);
  return r->value.data();
}

// REQUIRES: mu_. Returns false if another thread has ended the receipt.
bool StepMeeting::Claim(Receipt* receipt) {
  waiting_.erase(receipt->name);
  if (std::exchange(receipt->over, true)) return false;
  held_for_receipts_.Give(OfReceipt(receipt->key));
  return true;
}

void StepMeeting::Answered(const ReceiptPtr& receipt, const Reply& reply) {
  Status s = reply.outcome.status;
  if (s.ok() && receipt->value) {
    s = CheckElements(receipt->value);
  } else if (s.ok() && !reply.fields.empty()) {
    WireReader fields(reply.fields);
    receipt->head = GetTensorHead(&fields);
    s = fields.End("the head of a value");
    if (s.ok()) {
      auto value = TensorFrom(receipt->head, reply.body, PayerOf(reply.body.size()));
      s = value.status();
      if (!s.ok()) s = Prefix(s, StrCat(receipt->from.title, ": value '", Shown(receipt->key), "':"));
      if (value.ok()) receipt->value = *std::move(value);
    }
  }
  {
    std::lock_guard lock(mu_);
    if (!Claim(receipt.get())) return;
    moved_ = channels_.messenger->clock().Now();
    if (!s.ok() && over_.status.ok() && reply.outcome.consequence) over_ = {s, true};
    const auto lost = s.ok() ? lost_.end() : lost_.find(receipt->from.process());
    if (lost != lost_.end()) s = lost->second;
    if (!s.ok() && !over_.status.ok()) s = over_.status;
  }
  if (receipt->pushed) channels_.inbox->Leave(session_, step_, receipt->key);
  // If the call failed, the transport may still write into the value; it is released with
  // call.kept.
  Tensor value = s.ok() ? std::move(receipt->value) : Tensor();
  FinishHere(receipt.get(), std::move(s), std::move(value));
}

// Handles a value that was pushed, or whose sender says that it has to be requested. brought: this
// thread brought it; else it was there already.
void StepMeeting::Came(const ReceiptPtr& receipt, PushedValue value, bool brought) {
  if (value.state == PushedValue::kAsk) return Ask(receipt);
  uint64_t call;
  {
    std::lock_guard lock(mu_);
    if (!Claim(receipt.get())) return;
    moved_ = channels_.messenger->clock().Now();
    call = receipt->call;
  }
  if (call) channels_.messenger->Cancel(call);
  if (brought) return FinishHere(receipt.get(), Status(), std::move(value.value));
  Finish(receipt.get(), Status(), std::move(value.value));
}

void StepMeeting::Finish(Receipt* receipt, Status s, Tensor value) {
  if (traffic_ && s.ok()) traffic_->Received(receipt->from.title, value ? value.bytes() : 0);
  auto done = std::move(receipt->done);
  done(std::move(s), std::move(value));
}

// Runs on a thread of the transport, which others need too: short processing of the value happens
// here, and its time counts. The caller holds a reference to the meeting, since the end of the
// step, in here, may release the last other one.
void StepMeeting::FinishHere(Receipt* receipt, Status s, Tensor value) {
  if (!lent_ || (value && value.bytes() > kLightValue)) return Finish(receipt, std::move(s), std::move(value));
  const Clock& clock = channels_.messenger->clock();
  const int64_t began = clock.Now();
  {
    const ThreadPool::TasksHere here;
    Finish(receipt, std::move(s), std::move(value));
  }
  lent_->Used(clock.Now() - began);
}

// ---- Ends ----

void StepMeeting::StepFailed(const Status& why) {
  channels_.messenger->clock().Soon([self = shared_from_this(), why] { self->End(why, false, false); });
}

void StepMeeting::Abort(const Status& why, bool consequence) { End(why, consequence, true); }

void StepMeeting::End(const Status& why, bool consequence, bool told) {
  std::vector<ReceiptPtr> receipts;
  std::vector<Held> dropped;
  Status over;
  {
    std::lock_guard lock(mu_);
    if (over_.status.ok()) {
      over_ = {why, consequence};
      told_ = told;
    }
    over = over_.status;
    dropped.swap(held_);
    for (const auto& [name, receipt] : waiting_) receipts.push_back(receipt);
  }
  EndReceipts(receipts, over);
  channels_.mailbox->Abort(session_, step_, why);
  channels_.inbox->Abort(session_, step_);
}

// Receipts with a request end with their calls.
void StepMeeting::EndReceipts(const std::vector<ReceiptPtr>& receipts, const Status& why) {
  for (const ReceiptPtr& receipt : receipts) {
    uint64_t call;
    {
      std::lock_guard lock(mu_);
      call = receipt->call;
      if (!call && !Claim(receipt.get())) continue;
    }
    if (call) {
      channels_.messenger->Cancel(call);
      continue;
    }
    channels_.inbox->Leave(session_, step_, receipt->key);
    Finish(receipt.get(), why, Tensor());
  }
}

void StepMeeting::AskLate(int64_t since) {
  std::vector<ReceiptPtr> late;
  {
    std::lock_guard lock(mu_);
    for (const auto& [name, receipt] : waiting_) {
      if (!receipt->call && receipt->since < since) late.push_back(receipt);
    }
  }
  for (const ReceiptPtr& receipt : late) Ask(receipt);
}

void StepMeeting::PeerLost(const ProcessName& who, const Status& why) {
  std::vector<ReceiptPtr> receipts;
  {
    std::lock_guard lock(mu_);
    for (const auto& [name, receipt] : waiting_) {
      if (receipt->from.process() == who) receipts.push_back(receipt);
    }
    if (!receipts.empty()) lost_[who] = why;
  }
  EndReceipts(receipts, why);
}

Outcome StepMeeting::Ended(const Status& of_step) const {
  std::lock_guard lock(mu_);
  return told_ ? over_ : Outcome{of_step, over_.consequence};
}

// ---- Status ----

void StepMeeting::Look(RunStatus* to) const {
  constexpr size_t kShown = 8;
  const int64_t now = channels_.messenger->clock().Now();
  std::lock_guard lock(mu_);
  to->idle = std::max<int64_t>(now - moved_, 0);
  to->n_waits = uint32_t(waiting_.size());
  for (auto it = waiting_.begin(); it != waiting_.end() && to->waits.size() < kShown; ++it) {
    to->waits.emplace_back(it->second->key, it->second->from.title);
  }
}

void StepMeeting::AddLate(int64_t since, std::map<ProcessName, Destination>* to) const {
  std::lock_guard lock(mu_);
  for (const auto& [name, receipt] : waiting_) {
    if (receipt->since < since) to->emplace(receipt->from.process(), receipt->from);
  }
}

}  // namespace thalweg::distributed
