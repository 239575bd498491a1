// Calls to other processes over a transport: with a deadline each, failures told with who was called and where, and peers that are
// connected again after they were lost. The other way round: requests that come in, which are answered once. Threads: any. Callbacks come
// from the transport's threads or the clock's, never inside a call of ours, and must not block.
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

// Title and incarnation: a task that was restarted is another process.
using ProcessName = std::pair<std::string, uint64_t>;

// Who is called.
struct Destination {
  std::string address;       // without its scheme
  std::string title;         // for messages: "task /job:ps/task:0 at unix:ps0"
  uint64_t incarnation = 0;  // 0: whoever is there
  ProcessName process() const { return {title, incarnation}; }
};

// How a messenger meets others.
struct EndpointOptions {
  std::string_view address;     // without its scheme; empty: a free one
  std::string_view credential;  // as the transport takes it; empty: none
  uint64_t largest = 0;         // bytes of a body
  bool open = false;            // peers need not prove who they are
  bool calls_only = false;      // nobody has to reach it
};

class Messenger;

// A request that came in. Whoever holds it answers it once; one that nobody holds any more is answered as failed.
class Incoming {
 public:
  ~Incoming();
  // One of this program's own, which no transport brought: peer is whose it is; answer is called once, by whoever answers it.
  using AnswerTo = std::function<void(std::string head, Payload body)>;
  static std::shared_ptr<Incoming> Local(std::string peer, Payload body, AnswerTo answer);
  const std::string& head() const { return head_; }
  std::string_view body() const { return {static_cast<const char*>(local_.data ? local_.data : body_.get()), size_t(bytes_)}; }
  // The body was read: its memory goes. REQUIRES: nobody else reads it.
  void DropBody();
  const std::string& peer() const { return peer_; }  // as far as it is proven
  uint32_t role() const { return role_; }            // TW_PEER_*
  // Who pays for what it makes this process hold; NULL: it is a local one.
  const std::shared_ptr<PeerAccount>& account() const { return account_; }
  // Nobody waits for the answer any more: f is called once, maybe before this returns. REQUIRES: once.
  void WhenGone(std::function<void()> f);
  void Answer(std::string head, Payload body = {});
  void Fail(const Outcome& outcome) { Answer(PutFailure(outcome)); }

 private:
  friend class Messenger;
  void Give(std::string head, Payload body);
  Messenger* messenger_ = nullptr;  // NULL: it is a local one
  AnswerTo answer_;                 // of a local one
  Payload local_;                   // likewise: its body
  uint64_t id_ = 0;
  void* self_ = nullptr;  // the transport's
  std::string head_, peer_;
  uint32_t role_ = TW_PEER_ANY;
  std::shared_ptr<PeerAccount> account_;
  RequestShare share_;
  Status refused_;   // not ok: there was no room for it
  Meter body_room_;  // before the body: it goes after it
  std::unique_ptr<char[]> body_;
  uint64_t bytes_ = 0;
  std::mutex mu_;
  bool gone_ = false, answered_ = false;
  std::function<void()> when_gone_;
};

// How a call ended. A status that is not ok and no consequence is the messenger's own (UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED) or the
// other side's.
struct Reply {
  Outcome outcome;
  bool reached = true;      // the other side answered
  std::string_view fields;  // of the method; valid during the callback
  std::string_view body;    // likewise; empty where `place` took it
};

struct Call {
  Destination to;
  Method method = Method::kHello;
  WireWriter fields;
  Payload body;
  int64_t deadline = 0;  // on the clock; 0: none
  // Where the body of the answer goes, once the head is there: called at most once, and not after `done`. What it answers must be good
  // until `kept` goes. NULL, or none: the messenger keeps the body for `done`. An error: the body is not taken, and so the call ends.
  std::function<StatusOr<void*>(std::string_view fields, uint64_t bytes)> place;
  std::shared_ptr<void> kept;
  std::function<void(const Reply&)> done;  // once
};

class Messenger {
 public:
  using Serve = std::function<void(std::shared_ptr<Incoming>)>;
  // accounts: of those who ask; NULL: as of a machine's own.
  static StatusOr<std::unique_ptr<Messenger>> Create(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options,
                                                     Clock* clock, Serve serve, std::shared_ptr<PeerAccounts> accounts = nullptr);
  ~Messenger();
  const std::string& address() const { return address_; }  // the one that it is reached at
  Clock& clock() { return *clock_; }
  // Answers a name for Cancel. In a child that was forked every call fails with FAILED_PRECONDITION.
  uint64_t Start(Call call);
  // `done` is called soon, with CANCELLED, unless the call is over. Never inside this call.
  void Cancel(uint64_t name);
  // Lends this thread to the transport until `over`, which Wake makes it look at again. Returns at once where there is no use for it: wait
  // otherwise. Calls of this and of others are answered, and requests served, inside.
  void Lend(const std::atomic<bool>& over);
  // The same, once, for so many nanoseconds at most. False: there is no use for it.
  bool LendFor(const std::atomic<bool>& over, uint64_t ns);
  void Wake() { transport_->def.wake(transport_->host, endpoint_); }
  // Ends all calls and requests; then no callback runs any more. REQUIRES: nobody is lent.
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
  void PlaceAnswer(Outgoing* o, const tw_incoming* m, void** out_data);
  Status MakeRoom(Incoming* request, uint64_t bytes);
  void PlaceRequest(const tw_incoming* m, void** out_data);
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
  std::unordered_map<uint64_t, std::shared_ptr<Outgoing>> calls_;     // that the transport still works on
  std::unordered_map<uint64_t, std::shared_ptr<Incoming>> arriving_;  // their bodies are on the way
  std::unordered_map<uint64_t, std::weak_ptr<Incoming>> serving_;
};

}  // namespace thalweg::distributed
