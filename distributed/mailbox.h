// Mailbox: the values that steps of this process have for others. A value is found by its key, once, whichever side comes first: it waits
// here until somebody asks for it, or the question waits until it is there. What takes no part any more (a step that failed, or that is
// over everywhere) is answered so at once. Threads: any.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/messenger.h"
#include "distributed/step_boxes.h"
#include "distributed/step_set.h"
#include "framework/tensor/tensor.h"

namespace thalweg::distributed {

class Mailbox {
 public:
  // From now on the session's values are taken, and asked for. budget: pays for what they take here beside their own memory, and for
  // answers that are made of them; NULL: nobody.
  void Open(const SessionName& session, MemoryBudget* budget = nullptr);
  // All of it is over. Errors as of Abort.
  void Close(const SessionName& session, const Status& why);
  // value: empty: dead, which is told with an answer that says nothing of a value. ABORTED if the step is over, with the reason;
  // ALREADY_EXISTS for a key that was used; RESOURCE_EXHAUSTED.
  Status Put(const SessionName& session, uint64_t step, const std::string& key, Tensor value);
  // Answers it, now or later. ABORTED where its owner has no such session here; RESOURCE_EXHAUSTED for a new step where there are too many.
  void Ask(const ReceiveRequest& m, std::shared_ptr<Incoming> request);
  // What waits for values of the step is answered with `why`, as a consequence; what waits to be asked for goes.
  void Abort(const SessionName& session, uint64_t step, const Status& why);
  // Steps before this one are over everywhere.
  void Forget(const SessionName& session, uint64_t oldest);
  // Values that nobody has asked for, and questions, of all sessions.
  uint64_t size() const;

 private:
  struct Box {
    std::map<std::string, Tensor> values;
    std::map<std::string, std::shared_ptr<Incoming>> asked;
  };
  struct Session : BoxesOfSession<Box> {
    using BoxesOfSession::BoxesOfSession;
    EndedSteps ended;
  };
  static void Answer(Incoming* request, const Tensor& value, Meter paid);
  static uint64_t OfValues(const Box& box);
  static void Tidy(Session* session, uint64_t step);
  void Leave(const SessionName& session, uint64_t step, const std::string& key, const Incoming* request);
  mutable std::mutex mu_;
  StepBoxes<Session> sessions_;
};

}  // namespace thalweg::distributed
