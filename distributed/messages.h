// What processes of a cluster say to each other. Each message is a head, encoded here, and maybe a body, which the one who sends it makes.
// A request's head: version, method, the incarnation that it is meant for, then the method's fields. An answer's head: a code, flags, then
// the failure's text or the method's fields. Whoever reads one gets INVALID_ARGUMENT for bytes that are none.
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
  kHello = 1,        // who are you? Also the sign of life that is asked for while steps run
  kOpen = 2,         // a session of a client
  kWatch = 3,        // answered when the session ends here; the session ends when nobody waits for the answer any more
  kRegister = 4,     // nodes and a signature; the body is a PieceMessage
  kRun = 5,          // a step of a signature; the body holds the feeds, the answer's body the fetches
  kReceive = 6,      // a value of a step, from another worker
  kAbort = 7,        // a step is over because it failed elsewhere
  kForget = 8,       // a signature is not run any more
  kStatus = 9,       // what the task does, and for whom; the answer's body is a TaskStatus
  kWatchedRun = 10,  // as kRun; behind the fetches the answer's body holds statistics, of as many bytes as its fields say
  kPush = 11,        // values of a step that the other worker has not asked for; the body holds them
  kReset = 12        // empties a container of state; the answer's fields are a ResetAnswer
};

// What a process can do beyond what all can: bits of Hello::features.
constexpr uint32_t kTakesPushes = 1;  // and sends them

// A session of a client: the number is the client's choice, so it means something only beside whose it is, as far as that is proven.
struct SessionName {
  std::string owner;
  uint64_t id = 0;
  friend auto operator<=>(const SessionName&, const SessionName&) = default;
};

struct RequestHead {
  Method method = Method::kHello;
  uint64_t incarnation = 0;  // of the process that is meant; 0: whoever is there
  std::string_view fields;   // of the method
};
std::string PutRequest(Method method, uint64_t incarnation, const WireWriter& fields);
StatusOr<RequestHead> GetRequest(std::string_view head);

// consequence: not the cause of a step's failure, but of another one.
struct Outcome {
  Status status;
  bool consequence = false;
};
std::string PutAnswer(const WireWriter& fields);
std::string PutFailure(const Outcome& outcome);
// fields: what stands behind; for a failure nothing.
StatusOr<Outcome> GetAnswer(std::string_view head, std::string_view* fields);

struct Hello {
  std::string job;
  int32_t index = 0;
  uint64_t incarnation = 0;
  std::string version;  // of the runtime
  uint64_t steps = 0, sessions = 0;
  uint32_t features = 0;  // in the message only if there are some, and then only for those who ask for them: whose request has fields
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

struct SessionRequest {  // of kWatch, kRegister, and kStatus, there 0 for all
  uint64_t session = 0;
  void Put(WireWriter* to) const;
  static StatusOr<SessionRequest> Get(std::string_view fields);
};

struct ResetRequest {
  std::string container;  // empty: the task's default one
  void Put(WireWriter* to) const;
  static StatusOr<ResetRequest> Get(std::string_view fields);
};
struct ResetAnswer {
  uint64_t count = 0;  // of the things that were in it
  void Put(WireWriter* to) const;
  static StatusOr<ResetAnswer> Get(std::string_view fields);
};

struct HandleMessage {  // the answer to kRegister; the request kForget
  uint64_t session = 0, handle = 0;
  void Put(WireWriter* to) const;
  static StatusOr<HandleMessage> Get(std::string_view fields);
};

struct RunRequest {
  uint64_t session = 0, handle = 0, step = 0;
  uint64_t oldest = 0;    // steps of the session before this one are over everywhere
  int64_t time_left = 0;  // nanoseconds; 0: any
  void Put(WireWriter* to) const;
  static StatusOr<RunRequest> Get(std::string_view fields);
};

struct ReceiveRequest {
  uint64_t session = 0, step = 0;
  std::string key;
  std::string owner;  // of the session, as the one who asks knows it
  SessionName name() const { return {owner, session}; }
  void Put(WireWriter* to) const;
  static StatusOr<ReceiveRequest> Get(std::string_view fields);
};

// A value that goes to a task which has not asked for it.
struct PushedValue {
  enum State : uint8_t { kDead = 0, kHere = 1, kAsk = 2 };  // kAsk: there is one, but the other side has to ask for it
  std::string key;
  Tensor value;  // of kHere
  State state = kHere;
  // About as much as it takes in a message, and in memory.
  uint64_t bytes() const { return 64 + key.size() + (value ? value.bytes() : 0); }
};
struct PushRequest {  // its answer's fields: the keys that there was no room for; none: all were taken
  uint64_t session = 0, step = 0;
  std::string owner;
  SessionName name() const { return {owner, session}; }
  void Put(WireWriter* to) const;
  static StatusOr<PushRequest> Get(std::string_view fields);
};
Status PutPushed(const std::vector<PushedValue>& values, WireWriter* to);
// budget: pays for the values; NULL: nobody. refused: not NULL: gets the keys of values that there is no memory for, which are then kAsk.
StatusOr<std::vector<PushedValue>> GetPushed(WireReader* from, MemoryBudget* budget = nullptr, std::vector<std::string>* refused = nullptr);

// Values that came with the answer to a run, for a task in the process of who asked: by its incarnation.
struct CarriedValues {
  uint64_t incarnation = 0;
  std::vector<PushedValue> values;
};
Status PutCarried(const std::vector<CarriedValues>& all, WireWriter* to);
StatusOr<std::vector<CarriedValues>> GetCarried(std::string_view bytes);

struct AbortRequest {
  uint64_t session = 0, step = 0;
  Status why;
  void Put(WireWriter* to) const;
  static StatusOr<AbortRequest> Get(std::string_view fields);
};

}  // namespace thalweg::distributed
