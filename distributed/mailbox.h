// Mailbox: the values that steps of this process hold for others. A value is found by its key,
// once, whichever side comes first: it waits here until it is requested, or the request waits until
// the value is there. A request for a step that failed, or that has ended everywhere, is answered
// with the failure at once. Threads: any.
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
  // Accepts the session's values and requests from now on. budget: pays for the records of values,
  // beside their own memory, and for answers made of them; NULL for no charge.
  void Open(const SessionName& session, MemoryBudget* budget = nullptr);
  // Ends all steps of the session. Errors as for Abort.
  void Close(const SessionName& session, const Status& why);
  // `value` is empty for a dead tensor; the answer then has no tensor fields. ABORTED with the
  // reason if the step has ended; ALREADY_EXISTS for a key that was used; RESOURCE_EXHAUSTED.
  Status Put(const SessionName& session, uint64_t step, const std::string& key, Tensor value);
  // Answers the request, now or later. ABORTED if its owner has no such session here;
  // RESOURCE_EXHAUSTED for a new step if there are too many.
  void Ask(const ReceiveRequest& m, std::shared_ptr<Incoming> request);
  // Fails requests for values of the step with `why`, as a consequence; drops values that wait to
  // be requested.
  void Abort(const SessionName& session, uint64_t step, const Status& why);
  // Drops steps before `oldest`, which have ended everywhere.
  void Forget(const SessionName& session, uint64_t oldest);
  // Number of values that nobody has requested, and of waiting requests, over all sessions.
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
