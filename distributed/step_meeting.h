// StepMeeting: the rendezvous of one step in one worker. Values that the step sends are pushed to
// their receiver or go to the mailbox; values that it receives arrive as pushes, or are requested
// from the worker that has them. Threads: any; held by shared_ptr, also by pending calls.
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
  bool pushed = false;  // it arrives without a request
};
// The senders of the values that a signature receives, and the receivers of the values that it
// pushes, by key.
struct Routes {
  std::map<std::string, Source, std::less<>> sources;
  std::map<std::string, Sink, std::less<>> sinks;
};

// The parts of a process that values of steps pass through.
struct Channels {
  Messenger* messenger = nullptr;
  Mailbox* mailbox = nullptr;
  Inbox* inbox = nullptr;
  Pusher* pusher = nullptr;
};

// The time for which a signature's runs hold threads of the transport; only long parts of runs
// count. The signatures of one client may share one such limit.
class LentTime {
 public:
  // of: the shared limit; NULL for none.
  explicit LentTime(std::shared_ptr<LentTime> of = nullptr) : of_(std::move(of)) {}
  bool over() const { return used_.load(std::memory_order_relaxed) >= kMost || (of_ && of_->over()); }
  void Used(int64_t ns) {
    if (ns <= kShort) return;
    used_.fetch_add(ns, std::memory_order_relaxed);
    if (of_) of_->Used(ns);
  }
  void Renew() { used_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr int64_t kShort = 300'000, kMost = 10'000'000;  // nanoseconds; a short part may only have waited for a processor
  const std::shared_ptr<LentTime> of_;
  std::atomic<int64_t> used_{0};
};

class StepMeeting final : public Rendezvous, public std::enable_shared_from_this<StepMeeting> {
 public:
  // Most bytes of a value that is cheap to process.
  static constexpr uint64_t kLightValue = 64 << 10;
  // session: with the owner's name that every process uses. traffic: counts received values; NULL
  // if nobody does. lent: if not NULL, the step is so short that it may continue on the thread that
  // brings a small value. budget: the session's account, which pays in advance for received values,
  // for waiting receipts, and for sent values; NULL for no charge.
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
  // Until Release or TakeCarried, pushed values stay here, so that they are sent together. Only for
  // a moment: other tasks wait for them.
  void Hold();
  void Release();
  // After success: returns the values that the answer to the run is to carry; sends the others.
  std::vector<CarriedValues> TakeCarried();
  // Ends waits here, and requests at others for this step, with `why`. consequence: of a failure
  // elsewhere. A second call has no effect.
  void Abort(const Status& why, bool consequence);
  // Reports the values that the step waits for, and how long no value has come or gone.
  void Look(RunStatus* to) const;
  // Requests pushed values that have been awaited since before that time.
  void AskLate(int64_t since);
  // Adds the peers that have been awaited since before that time.
  void AddLate(int64_t since, std::map<ProcessName, Destination>* to) const;
  // Fails the values that are awaited from that peer.
  void PeerLost(const ProcessName& who, const Status& why);
  // Returns the outcome of the step, which failed here with status `of_step`.
  Outcome Ended(const Status& of_step) const;

 private:
  struct Receipt;
  using ReceiptPtr = std::shared_ptr<Receipt>;
  // Bytes of a step that are free of charge: a full session may run steps that make room.
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
  std::atomic<uint64_t> free_{kFree};  // bytes of values that are free of charge
  mutable std::mutex mu_;
  Meter held_for_receipts_;
  Outcome over_;       // not ok if the step has failed
  bool told_ = false;  // by other processes, which know better than the step how it ended
  bool holds_ = false;
  std::vector<Held> held_;
  int64_t moved_;                           // time when a value last came or went
  uint64_t names_ = 0;                      // of receipts
  uint64_t timer_ = 0;                      // at the deadline, for pushed values; 0 for none
  std::map<uint64_t, ReceiptPtr> waiting_;  // receipts of values still to come
  std::map<ProcessName, Status> lost_;      // peers
};

}  // namespace thalweg::distributed
