// StepMeeting: the rendezvous of one step in one worker. What the step sends goes to who gets it unasked, or to the mailbox; what it
// receives comes by itself, or is asked for from the worker that has it. Threads: any; held by shared_ptr, also by the calls that are under
// way.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/inbox.h"
#include "distributed/mailbox.h"
#include "distributed/messenger.h"
#include "distributed/pusher.h"
#include "distributed/task_status.h"
#include "framework/runtime/rendezvous.h"

namespace thalweg::distributed {

struct Source {
  Destination from;
  bool pushed = false;  // it comes by itself
};
// Who has the values that a signature receives, and who gets those that it sends unasked, by key.
struct Routes {
  std::map<std::string, Source, std::less<>> sources;
  std::map<std::string, Sink, std::less<>> sinks;
};

// The parts of a process that values of steps go through.
struct Channels {
  Messenger* messenger = nullptr;
  Mailbox* mailbox = nullptr;
  Inbox* inbox = nullptr;
  Pusher* pusher = nullptr;
};

// Of the time that a signature's runs hold threads of the transport: what is left, which long parts of them use up. All signatures of one
// client may have such a time together.
class LentTime {
 public:
  // of: the time that it is part of; NULL: none.
  explicit LentTime(std::shared_ptr<LentTime> of = nullptr) : of_(std::move(of)) {}
  bool over() const { return used_.load(std::memory_order_relaxed) >= kMost || (of_ && of_->over()); }
  void Used(int64_t ns) {
    if (ns <= kShort) return;
    used_.fetch_add(ns, std::memory_order_relaxed);
    if (of_) of_->Used(ns);
  }
  void Renew() { used_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr int64_t kShort = 300'000, kMost = 10'000'000;  // nanoseconds; a single part may have waited for a processor
  const std::shared_ptr<LentTime> of_;
  std::atomic<int64_t> used_{0};
};

class StepMeeting final : public Rendezvous, public std::enable_shared_from_this<StepMeeting> {
 public:
  // Bytes of a value that little is done with.
  static constexpr uint64_t kLightValue = 64 << 10;
  // session: its owner as every process knows it. traffic: told of values that came; NULL: nobody counts. lent: not NULL: the step is over
  // so soon that it may go on, on whatever thread brings a small value. budget: the session's account, which pays for values that come,
  // before they are made, for waiting for them, and for what is sent; NULL: nobody pays.
  StepMeeting(SessionName session, uint64_t step, std::shared_ptr<const Routes> routes, int64_t deadline, const Channels& channels,
              Traffic* traffic = nullptr, std::shared_ptr<LentTime> lent = nullptr, MemoryBudget* budget = nullptr)
      : session_(std::move(session)),
        step_(step),
        deadline_(deadline),
        routes_(std::move(routes)),
        channels_(channels),
        traffic_(traffic),
        lent_(std::move(lent)),
        held_for_receipts_(budget, kFree),
        moved_(channels.messenger->clock().Now()) {}
  ~StepMeeting() override;
  Status Send(std::string_view key, std::string_view iteration, Tensor value) override;
  void Receive(std::string_view key, std::string_view iteration, Received done) override;
  void StepFailed(const Status& why) override;
  // Until Release, or TakeCarried, values that nobody asks for stay here, so that they go together. For a moment only: others wait for
  // them.
  void Hold();
  void Release();
  // At a good end: the values that the answer to the run is to carry; the others go.
  std::vector<CarriedValues> TakeCarried();
  // What waits here, and at others for this step, ends with `why`. consequence: of a failure elsewhere. Again: no effect.
  void Abort(const Status& why, bool consequence);
  // What it waits for, and since when nothing has come or gone.
  void Look(RunStatus* to) const;
  // What was to come by itself, and has not since before that time, is asked for.
  void AskLate(int64_t since);
  // Adds who it has waited for since before that time.
  void AddLate(int64_t since, std::map<ProcessName, Destination>* to) const;
  // What it waits for from there does not come.
  void PeerLost(const ProcessName& who, const Status& why);
  // How the step ended, which failed with this status here.
  Outcome Ended(const Status& of_step) const;

 private:
  struct Receipt;
  using ReceiptPtr = std::shared_ptr<Receipt>;
  // Bytes of a step that cost nothing: a session that is full may run steps that make room.
  static constexpr uint64_t kFree = 4096;
  struct Held {
    const Sink* sink;
    PushedValue value;
  };
  MemoryBudget* budget() const { return held_for_receipts_.budget(); }
  MemoryBudget* PayerOf(uint64_t bytes);
  StatusOr<void*> Place(Receipt* receipt, std::string_view fields, uint64_t bytes);
  void Ask(const ReceiptPtr& receipt);
  void Await(const ReceiptPtr& receipt);
  void Answered(const ReceiptPtr& receipt, const Reply& reply);
  void Came(const ReceiptPtr& receipt, PushedValue value, bool brought = true);
  bool Claim(Receipt* receipt);
  void Finish(Receipt* receipt, Status s, Tensor value);
  void FinishHere(Receipt* receipt, Status s, Tensor value);
  std::vector<CarriedValues> LetGo(bool may_carry);
  void End(const Status& why, bool consequence, bool told);
  void EndReceipts(const std::vector<ReceiptPtr>& receipts, const Status& why);
  const SessionName session_;
  const uint64_t step_;
  const int64_t deadline_;
  const std::shared_ptr<const Routes> routes_;
  const Channels channels_;
  Traffic* const traffic_;
  const std::shared_ptr<LentTime> lent_;
  std::atomic<uint64_t> free_{kFree};  // bytes of values that cost nothing
  mutable std::mutex mu_;
  Meter held_for_receipts_;
  Outcome over_;       // not ok: the step has failed
  bool told_ = false;  // by others, who know better than the step how it ended
  bool holds_ = false;
  std::vector<Held> held_;
  int64_t moved_;                           // when a value came or went last
  uint64_t names_ = 0;                      // of receipts
  uint64_t timer_ = 0;                      // at the deadline, for what comes by itself; 0: none
  std::map<uint64_t, ReceiptPtr> waiting_;  // for what is to come
  std::map<ProcessName, Status> lost_;      // peers
};

}  // namespace thalweg::distributed
