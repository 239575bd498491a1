// Pusher: sends values of steps to tasks that have not asked for them. What one task does not take, or cannot be reached to take, waits in
// the mailbox to be asked for; so does what is beyond a limit of bytes that are on their way to one task, or to all of them: who gets it is
// then only told of it. Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "distributed/mailbox.h"
#include "distributed/messenger.h"

namespace thalweg::distributed {

// Who is sent a value.
struct Sink {
  Destination to;
  bool carried = false;  // the answer to a run may bring it there
};

class Pusher {
 public:
  Pusher(Mailbox* mailbox, Messenger* messenger, uint64_t most_bytes = uint64_t{16} << 20)
      : mailbox_(mailbox), messenger_(messenger), most_bytes_(most_bytes) {}
  // deadline: of the step; 0: none. budget: pays for what is on its way, beside the values themselves; NULL: nobody. What it has no memory
  // for waits in the mailbox, and who gets it is told, or asks for what does not come. RESOURCE_EXHAUSTED: the mailbox has none either.
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
  std::map<ProcessName, UnderWay> under_way_;  // what is not answered
  uint64_t all_ = 0;                           // bytes of it
};

}  // namespace thalweg::distributed
