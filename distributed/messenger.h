// Messenger: calls to other processes over a transport, with a deadline each, failures that name
// the callee and its address, and reconnection to lost peers; and incoming requests, which are
// answered once. Threads: any. Callbacks run on threads of the transport or the clock, never inside
// a call to the messenger, and must not block.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "distributed/clock.h"
#include "distributed/messages.h"
#include "distributed/meter.h"
#include "distributed/peer_accounts.h"
#include "distributed/wire.h"
#include "framework/base/origin.h"
#include "framework/registry/role.h"

namespace thalweg::distributed {

// Title and incarnation: a restarted task is another process.
using ProcessName = std::pair<std::string, uint64_t>;

// The process to call.
struct Destination {
  std::string address;       // without its scheme
  std::string title;         // for messages: "task /job:ps/task:0 at unix:ps0"
  uint64_t incarnation = 0;  // 0 means any
  ProcessName process() const { return {title, incarnation}; }
};

// How a messenger connects to peers.
struct EndpointOptions {
  std::string_view address;     // without its scheme; empty means any free one
  std::string_view credential;  // as the transport takes it; empty for none
  uint64_t largest = 0;         // most bytes of a body
  bool open = false;            // peers need not prove who they are
  bool calls_only = false;      // no peer has to reach this endpoint
};

class Messenger;

// An incoming request. Its holder answers it once; a request that nobody holds any more is answered
// as failed.
class Incoming {
 public:
  ~Incoming();
  // Makes a request of this program itself, which no transport brought. peer: its owner. answer:
  // called once, by the thread that answers.
  using AnswerTo = std::function<void(std::string head, Payload body)>;
  static std::shared_ptr<Incoming> Local(std::string peer, Payload body, AnswerTo answer);
  const std::string& head() const { return head_; }
  std::string_view body() const { return {static_cast<const char*>(local_.data ? local_.data : body_.get()), size_t(bytes_)}; }
  // Frees the memory of the body after it was read. REQUIRES: no other thread reads it.
  void DropBody();
  const std::string& peer() const { return peer_; }  // as far as the peer has proven it
  uint32_t role() const { return role_; }            // TW_PEER_*
  // Pays for the memory that the request makes this process hold; NULL for a local request.
  const std::shared_ptr<PeerAccount>& account() const { return account_; }
  // Calls f once when nobody waits for the answer any more, possibly before this returns. REQUIRES:
  // called once.
  void WhenGone(std::function<void()> f);
  void Answer(std::string head, Payload body = {});
  void Fail(const Outcome& outcome) { Answer(PutFailure(outcome)); }

 private:
  friend class Messenger;
  void Give(std::string head, Payload body);
  Messenger* messenger_ = nullptr;  // NULL for a local request
  AnswerTo answer_;                 // for a local request
  Payload local_;                   // for a local request: its body
  uint64_t id_ = 0;
  void* self_ = nullptr;  // the transport's handle
  std::string head_, peer_;
  uint32_t role_ = TW_PEER_ANY;
  std::shared_ptr<PeerAccount> account_;
  RequestShare share_;
  Status refused_;   // not ok if there was no room for the request
  Meter body_room_;  // declared before the body, so it is destroyed after it
  std::unique_ptr<char[]> body_;
  uint64_t bytes_ = 0;
  std::mutex mu_;
  bool gone_ = false, answered_ = false;
  std::function<void()> when_gone_;
};

// The outcome of a call. A status that is not ok and no consequence comes from the messenger itself
// (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED) or from the other side.
struct Reply {
  Outcome outcome;
  bool reached = true;      // whether the other side answered
  std::string_view fields;  // of the method; valid during the callback
  std::string_view body;    // likewise; empty if `place` took it
};

struct Call {
  Destination to;
  Method method = Method::kHello;
  WireWriter fields;
  Payload body;
  int64_t deadline = 0;  // on the clock; 0 means none
  // Returns memory for the body of the answer, once the head is there; called at most once, and not
  // after `done`. The memory must be valid until `kept` is released. If the function is not set or
  // returns NULL, the messenger keeps the body for `done`. If it returns an error, the body is not
  // taken, and the call ends with this error.
  std::function<StatusOr<void*>(std::string_view fields, uint64_t bytes)> place;
  std::shared_ptr<void> kept;
  std::function<void(const Reply&)> done;  // called once
};

class Messenger {
 public:
  using Serve = std::function<void(std::shared_ptr<Incoming>)>;
  // accounts: of the peers that send requests; if NULL, accounts with the machine's default limits.
  static StatusOr<std::unique_ptr<Messenger>> Create(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options,
                                                     Clock* clock, Serve serve, std::shared_ptr<PeerAccounts> accounts = nullptr);
  ~Messenger();
  const std::string& address() const { return address_; }  // where peers reach it
  Clock& clock() { return *clock_; }
  // Returns a name for Cancel. In a forked child every call fails with FAILED_PRECONDITION.
  uint64_t Start(Call call);
  // Calls `done` soon with CANCELLED, unless the call has ended. Never calls it inside Cancel.
  void Cancel(uint64_t name);
  // Lends this thread to the transport until `over` is true; Wake makes it check `over` again.
  // Returns at once if the transport cannot use the thread; the caller then waits in another way.
  // Meanwhile the thread answers calls, its own and others, and serves requests.
  void Lend(const std::atomic<bool>& over);
  // Lends the thread once, for at most `ns` nanoseconds. Returns false if the transport cannot use
  // it.
  bool LendFor(const std::atomic<bool>& over, uint64_t ns);
  void Wake() { transport_->def.wake(transport_->host, endpoint_); }
  // Ends all calls and requests; afterwards no callback runs. REQUIRES: no thread is lent.
  void Close();

 private:
  friend class Incoming;
  struct Outgoing;
  struct Peer;
  struct Sent;
  Messenger(std::shared_ptr<const TransportRole> transport, uint64_t largest, Clock* clock, Serve serve,
            std::shared_ptr<PeerAccounts> accounts);
  Status Listen(const EndpointOptions& options);
  StatusOr<std::shared_ptr<Peer>> PeerAt(const std::string& address);
  Status Send(const std::shared_ptr<Outgoing>& o);
  void End(const std::shared_ptr<Outgoing>& o, Status why, bool reached);
  void Drop(uint64_t name);
  void Done(Outgoing* o, Status s);
  void PlaceAnswer(Outgoing* o, const tw_incoming* m, tw_placing* to);
  Status MakeRoom(Incoming* request, uint64_t bytes);
  void PlaceRequest(const tw_incoming* m, tw_placing* to);
  void ServeRequest(const tw_incoming* m);
  std::shared_ptr<Incoming> TakeArriving(uint64_t id);
  void Gone(uint64_t id);
  void Put(Incoming* request, std::string head, Payload body);

  const Origin origin_;
  const std::shared_ptr<const TransportRole> transport_;
  const uint64_t largest_;
  const std::shared_ptr<PeerAccounts> accounts_;
  Clock* const clock_;
  const Serve serve_;
  void* endpoint_ = nullptr;
  std::string address_;
  std::mutex mu_;
  bool closing_ = false;
  uint64_t names_ = 0;
  std::map<std::string, std::shared_ptr<Peer>> peers_;
  std::unordered_map<uint64_t, std::shared_ptr<Outgoing>> calls_;     // calls that the transport still works on
  std::unordered_map<uint64_t, std::shared_ptr<Incoming>> arriving_;  // requests whose bodies are arriving
  std::unordered_map<uint64_t, std::weak_ptr<Incoming>> serving_;
};

}  // namespace thalweg::distributed
