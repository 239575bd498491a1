// The messages between processes of a cluster. A message is a head, encoded here, and an optional
// body, which the sender makes. A request's head holds: version, method, the incarnation that it is
// meant for, the method's fields. An answer's head holds: a code, flags, then the failure's text or
// the method's fields. A reader of malformed bytes gets INVALID_ARGUMENT.
// Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/wire.h"
#include "framework/base/status.h"

namespace thalweg::distributed {

constexpr uint8_t kProtocol = 1;

enum class Method : uint8_t {
  kHello = 1,        // asks for the identity; also the heartbeat while steps run
  kOpen = 2,         // opens a session of a client
  kWatch = 3,        // answered when the session ends here; the session ends when nobody waits for the answer any more
  kRegister = 4,     // adds nodes and a signature; the body is a PieceMessage
  kRun = 5,          // runs a step of a signature; the body holds the feeds, the answer's body the fetches
  kReceive = 6,      // requests a value of a step, from another worker
  kAbort = 7,        // ends a step that failed elsewhere
  kForget = 8,       // drops a signature
  kStatus = 9,       // asks for the activity of the task; the answer's body is a TaskStatus
  kWatchedRun = 10,  // same as kRun; after the fetches the answer's body holds statistics, whose length is in its fields
  kPush = 11,        // delivers values of a step that the receiver has not requested; the body holds them
  kReset = 12        // empties a container of state; the answer's fields are a ResetAnswer
};

// Optional features of a process: bits of Hello::features.
constexpr uint32_t kTakesPushes = 1;  // the process accepts pushes, and sends them

// A session of a client. The client chooses the number, so it is unique only together with the
// owner, the client's proven name.
struct SessionName {
  std::string owner;
  uint64_t id = 0;
  friend auto operator<=>(const SessionName&, const SessionName&) = default;
};

struct RequestHead {
  Method method = Method::kHello;
  uint64_t incarnation = 0;  // of the intended process; 0 means any
  std::string_view fields;   // of the method
};
std::string PutRequest(Method method, uint64_t incarnation, const WireWriter& fields);
StatusOr<RequestHead> GetRequest(std::string_view head);

// consequence: the failure follows from another one and is not the cause of the step's failure.
struct Outcome {
  Status status;
  bool consequence = false;
};
std::string PutAnswer(const WireWriter& fields);
std::string PutFailure(const Outcome& outcome);
// fields: the method's fields; empty for a failure.
StatusOr<Outcome> GetAnswer(std::string_view head, std::string_view* fields);

struct Hello {
  std::string job;
  int32_t index = 0;
  uint64_t incarnation = 0;
  std::string version;  // of the runtime
  uint64_t steps = 0, sessions = 0;
  uint32_t features = 0;  // in the message only if not 0, and only for a request with fields, which asks for them
  void Put(WireWriter* to) const;
  static StatusOr<Hello> Get(std::string_view fields);
};

// The options of a session, "key=value".
struct OpenRequest {
  uint64_t session = 0;
  std::vector<std::string> options;
  void Put(WireWriter* to) const;
  static StatusOr<OpenRequest> Get(std::string_view fields);
};

struct SessionRequest {  // for kWatch, kRegister and kStatus; there 0 means all sessions
  uint64_t session = 0;
  void Put(WireWriter* to) const;
  static StatusOr<SessionRequest> Get(std::string_view fields);
};

struct ResetRequest {
  std::string container;  // empty means the task's default one
  void Put(WireWriter* to) const;
  static StatusOr<ResetRequest> Get(std::string_view fields);
};
struct ResetAnswer {
  uint64_t count = 0;  // number of resources that were in it
  void Put(WireWriter* to) const;
  static StatusOr<ResetAnswer> Get(std::string_view fields);
};

struct HandleMessage {  // the answer to kRegister; the request of kForget
  uint64_t session = 0, handle = 0;
  void Put(WireWriter* to) const;
  static StatusOr<HandleMessage> Get(std::string_view fields);
};

struct RunRequest {
  uint64_t session = 0, handle = 0, step = 0;
  uint64_t oldest = 0;    // steps of the session before this one have ended everywhere
  int64_t time_left = 0;  // nanoseconds; 0 means no limit
  void Put(WireWriter* to) const;
  static StatusOr<RunRequest> Get(std::string_view fields);
};

struct ReceiveRequest {
  uint64_t session = 0, step = 0;
  std::string key;
  std::string owner;  // owner of the session, as the requester names it
  SessionName name() const { return {owner, session}; }
  void Put(WireWriter* to) const;
  static StatusOr<ReceiveRequest> Get(std::string_view fields);
};

// A value that is sent to a task which has not requested it.
struct PushedValue {
  enum State : uint8_t { kDead = 0, kHere = 1, kAsk = 2 };  // kAsk: the sender has a value, but the receiver has to request it
  std::string key;
  Tensor value;  // for kHere
  State state = kHere;
  // Approximate size in a message, and in memory.
  uint64_t bytes() const { return 64 + key.size() + (value ? value.bytes() : 0); }
};
struct PushRequest {  // the answer's fields: the keys that there was no room for; no fields if all were taken
  uint64_t session = 0, step = 0;
  std::string owner;
  SessionName name() const { return {owner, session}; }
  void Put(WireWriter* to) const;
  static StatusOr<PushRequest> Get(std::string_view fields);
};
Status PutPushed(const std::vector<PushedValue>& values, WireWriter* to);
// budget: pays for the values; NULL for no charge. refused: if not NULL, receives the keys of
// values that there is no memory for; these become kAsk.
StatusOr<std::vector<PushedValue>> GetPushed(WireReader* from, MemoryBudget* budget = nullptr, std::vector<std::string>* refused = nullptr);

// Values that came with the answer to a run, for a task in the requester's process, named by its
// incarnation.
struct CarriedValues {
  uint64_t incarnation = 0;
  std::vector<PushedValue> values;
};
// The number of bytes that PutCarried writes.
uint64_t CarriedBytes(const std::vector<CarriedValues>& all);
Status PutCarried(const std::vector<CarriedValues>& all, WireWriter* to);
StatusOr<std::vector<CarriedValues>> GetCarried(std::string_view bytes);

struct AbortRequest {
  uint64_t session = 0, step = 0;
  Status why;
  void Put(WireWriter* to) const;
  static StatusOr<AbortRequest> Get(std::string_view fields);
};

}  // namespace thalweg::distributed
