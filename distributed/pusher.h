// Pusher: sends values of steps to tasks that have not requested them. A value that a task refuses,
// or that cannot be delivered, waits in the mailbox to be requested. So does a value beyond a limit
// of bytes on the way to one task, or to all; its receiver then only gets the key. Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "distributed/mailbox.h"
#include "distributed/messenger.h"

namespace thalweg::distributed {

// The receiver of a value.
struct Sink {
  Destination to;
  bool carried = false;  // the answer to a run may carry it there
};

class Pusher {
 public:
  Pusher(Mailbox* mailbox, Messenger* messenger, uint64_t most_bytes = uint64_t{16} << 20)
      : mailbox_(mailbox), messenger_(messenger), most_bytes_(most_bytes) {}
  // deadline: of the step; 0 for none. budget: pays for values on their way, beside the values
  // themselves; NULL for no charge. A value that it has no memory for waits in the mailbox, and its
  // receiver is told, or requests it when it does not come. RESOURCE_EXHAUSTED: the mailbox has no
  // memory either.
  Status Push(const Destination& to, const SessionName& session, uint64_t step, int64_t deadline, std::vector<PushedValue> values,
              MemoryBudget* budget = nullptr);

 private:
  struct Sent;
  struct UnderWay {
    uint64_t pushes = 0, bytes = 0;
  };
  bool Begin(Sent* sent, uint64_t bytes, MemoryBudget* budget, bool* fits);
  void Over(const Sent& sent);
  Status Keep(const SessionName& session, uint64_t step, PushedValue* value);
  void Answered(const Sent& sent, const Reply& reply);
  Mailbox* const mailbox_;
  Messenger* const messenger_;
  const uint64_t most_bytes_;
  std::mutex mu_;
  std::map<ProcessName, UnderWay> under_way_;  // pushes without an answer
  uint64_t all_ = 0;                           // their bytes
};

}  // namespace thalweg::distributed
