// StepMeeting: the rendezvous of one step in one worker. What the step sends goes to the mailbox; what it receives is asked for from the
// worker that has it. Threads: any; held by shared_ptr, also by the calls that are under way.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "distributed/mailbox.h"
#include "distributed/messenger.h"
#include "distributed/task_status.h"
#include "framework/runtime/rendezvous.h"

namespace thalweg::distributed {

// Who has the values that a signature receives, by key.
using Sources = std::map<std::string, Destination, std::less<>>;

class StepMeeting final : public Rendezvous, public std::enable_shared_from_this<StepMeeting> {
 public:
  // session: its owner as every process knows it. traffic: told of values that came; NULL: nobody counts.
  StepMeeting(SessionName session, uint64_t step, std::shared_ptr<const Sources> sources, int64_t deadline, Mailbox* mailbox,
              Messenger* messenger, Traffic* traffic = nullptr)
      : session_(std::move(session)),
        step_(step),
        deadline_(deadline),
        sources_(std::move(sources)),
        mailbox_(mailbox),
        messenger_(messenger),
        traffic_(traffic),
        moved_(messenger->clock().Now()) {}
  Status Send(std::string_view key, std::string_view iteration, Tensor value) override;
  void Receive(std::string_view key, std::string_view iteration, Received done) override;
  void StepFailed(const Status& why) override;
  // What waits here, and at others for this step, ends with `why`. consequence: of a failure elsewhere. Again: no effect.
  void Abort(const Status& why, bool consequence);
  // What it waits for, and since when nothing has come or gone.
  void Look(RunStatus* to) const;
  // Adds who it has waited for since before that time.
  void AddLate(int64_t since, std::map<ProcessName, Destination>* to) const;
  // What it waits for from there does not come.
  void PeerLost(const ProcessName& who, const Status& why);
  // How the step ended, which failed with this status here.
  Outcome Ended(const Status& of_step) const;

 private:
  struct Receipt;
  void Take(Receipt* receipt, const Reply& reply);
  void End(const Status& why, bool consequence, bool told);
  const SessionName session_;
  const uint64_t step_;
  const int64_t deadline_;
  const std::shared_ptr<const Sources> sources_;
  Mailbox* const mailbox_;
  Messenger* const messenger_;
  mutable std::mutex mu_;
  Outcome over_;       // not ok: the step has failed
  bool told_ = false;  // by others, who know better than the step how it ended
  Traffic* const traffic_;
  int64_t moved_;                                // when a value came or went last
  std::map<uint64_t, const Receipt*> receives_;  // calls under way
  std::map<ProcessName, Status> lost_;           // peers
};

}  // namespace thalweg::distributed
