// Inbox: values of steps that others send here without being asked. A value is found by its key, once, whichever side comes first: it waits
// for who takes it, or is handed to who waits already. There is a limit to what waits: what is beyond it stays with its sender and is asked
// for. The session pays for its values before they are made; one that it has no memory for stays with its sender, too. Values of steps that
// take no part any more, or of sessions that are not known, are dropped and counted. Threads: any.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/messages.h"
#include "distributed/messenger.h"
#include "distributed/step_boxes.h"
#include "distributed/step_set.h"

namespace thalweg::distributed {

class Inbox {
 public:
  // Hears of a value, at most once, with no lock held, on the thread that brings it; of one that has to be asked for: again with the value,
  // should it come.
  using Taker = std::function<void(PushedValue)>;
  enum class Found {
    kHere,  // in *out
    kAsk,   // there may be one with its sender: ask
    kLater  // the taker hears of it
  };
  explicit Inbox(uint64_t most_bytes = uint64_t{64} << 20) : most_bytes_(most_bytes) {}
  // From now on the session's values are taken. budget: pays for them; NULL: nobody.
  void Open(const SessionName& session, MemoryBudget* budget = nullptr);
  void Close(const SessionName& session);
  // The keys of those that there is no room for; all: of none. ABORTED if the step is over, or the session not known.
  StatusOr<std::vector<std::string>> Put(const SessionName& session, uint64_t step, std::vector<PushedValue> values, bool all = false);
  // Answers a kPush.
  void Serve(std::string_view fields, Incoming* request);
  Found Take(const SessionName& session, uint64_t step, const std::string& key, Taker taker, PushedValue* out);
  // Nobody waits for it any more.
  void Leave(const SessionName& session, uint64_t step, const std::string& key);
  // The step has failed: what came and what is still to come is dropped.
  void Abort(const SessionName& session, uint64_t step);
  // Steps before this one are over everywhere.
  void Forget(const SessionName& session, uint64_t oldest);
  uint64_t size() const;     // values, and takers, of all sessions
  uint64_t dropped() const;  // values

 private:
  struct Entry {
    PushedValue value;
    Taker taker;        // empty: the value is here
    uint64_t held = 0;  // bytes that the session pays for it
  };
  struct Box {
    bool full = false;  // something was left with its sender
    std::map<std::string, Entry> entries;
  };
  struct Session : BoxesOfSession<Box> {
    using BoxesOfSession::BoxesOfSession;
    uint64_t refused = 0;  // steps before this one may have left something with their sender
    StepSet over;          // steps that have failed
  };
  Box* Make(Session* session, uint64_t step);
  void Tidy(Session* session, uint64_t step);
  void Drop(Session* session, Box* box);
  static void Erase(Session* session, Box* box, std::map<std::string, Entry>::iterator entry);
  Status CheckStep(const SessionName& session, uint64_t step, uint64_t values);
  const uint64_t most_bytes_;
  mutable std::mutex mu_;
  uint64_t bytes_ = 0, dropped_ = 0;
  StepBoxes<Session> sessions_;
};

}  // namespace thalweg::distributed
