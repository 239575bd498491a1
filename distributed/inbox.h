// Inbox: values of steps that other tasks push to this one. A value is found by its key, once,
// whichever side comes first: it waits for its taker, or is handed to a taker that waits already.
// The waiting bytes are limited: a value beyond the limit stays with its sender and is requested
// later. The session pays for its values before they are allocated; a value that it has no memory
// for also stays with its sender. Values of steps that have ended, or of unknown sessions, are
// dropped and counted. Threads: any.
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
  // Called at most once, with no lock held, on the thread that brings the value. If it was told to
  // request the value, it is called again should the value arrive.
  using Taker = std::function<void(PushedValue)>;
  enum class Found {
    kHere,  // in *out
    kAsk,   // its sender may have it: request it
    kLater  // the taker is called
  };
  explicit Inbox(uint64_t most_bytes = uint64_t{64} << 20) : most_bytes_(most_bytes) {}
  // Accepts the session's values from now on. budget: pays for them; NULL for no charge.
  void Open(const SessionName& session, MemoryBudget* budget = nullptr);
  void Close(const SessionName& session);
  // Returns the keys of the values that there is no room for; with `all` there are none. ABORTED if
  // the step has ended, or the session is unknown.
  StatusOr<std::vector<std::string>> Put(const SessionName& session, uint64_t step, std::vector<PushedValue> values, bool all = false);
  // Answers a kPush.
  void Serve(std::string_view fields, Incoming* request);
  Found Take(const SessionName& session, uint64_t step, const std::string& key, Taker taker, PushedValue* out);
  // Removes the taker of a value.
  void Leave(const SessionName& session, uint64_t step, const std::string& key);
  // Marks the step as failed: values that came, and those still to come, are dropped.
  void Abort(const SessionName& session, uint64_t step);
  // Drops steps before `oldest`, which have ended everywhere.
  void Forget(const SessionName& session, uint64_t oldest);
  uint64_t size() const;     // values, and takers, of all sessions
  uint64_t dropped() const;  // values

 private:
  struct Entry {
    PushedValue value;
    Taker taker;        // if empty, the value is here
    uint64_t held = 0;  // bytes that the session pays for the value
  };
  struct Box {
    bool full = false;  // some value was left with its sender
    std::map<std::string, Entry> entries;
  };
  struct Session : BoxesOfSession<Box> {
    using BoxesOfSession::BoxesOfSession;
    uint64_t refused = 0;  // steps before this one may have left values with their senders
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
