#include "distributed/messenger.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "framework/base/shown.h"
#include "framework/base/thread_reserve.h"

namespace thalweg::distributed {
namespace {

Status Unavailable(std::string_view a, std::string_view b) { return Error(absl::StatusCode::kUnavailable, a, b); }

tw_status* AppendTo(tw_sink* sink, const void* bytes, uint64_t n) {
  return Guard([&] {
    static_cast<std::string*>(sink->user)->append(static_cast<const char*>(bytes), size_t(n));
    return Status();
  });
}

}  // namespace

// A connection. The messenger calls the transport with its lock held: these calls do not block and
// do not call back.
struct Messenger::Peer {
  const TransportRole* transport = nullptr;
  void* handle = nullptr;
  ~Peer() {
    if (handle) transport->def.close_peer(transport->host, handle);
  }
};

// A call from Start until the transport no longer touches its memory.
struct Messenger::Outgoing {
  Messenger* messenger = nullptr;
  uint64_t name = 0, timer = 0;
  Call call;
  std::shared_ptr<Peer> peer;
  std::string head;  // of the answer
  std::unique_ptr<char[]> body;
  uint64_t bytes = 0;
  uint64_t refused = 0;  // bytes of a body that there was no memory for, or that exceeds the limit
  Status unwanted;       // why `place` refused the body
  bool placed = false;
  bool late = false;  // its deadline has passed
  bool over = false;  // `done` was called, or is about to be; guarded by the messenger's lock
};

// An answer on its way.
struct Messenger::Sent {
  Meter room;
  RequestShare share;
  Payload body;  // declared last, so destroyed first
};

// ---- Incoming ----

Incoming::~Incoming() {
  if (!answered_) Give(PutFailure({Error(absl::StatusCode::kUnavailable, "the request was dropped"), false}), {});
}

std::shared_ptr<Incoming> Incoming::Local(std::string peer, Payload body, AnswerTo answer) {
  auto request = std::make_shared<Incoming>();
  request->peer_ = std::move(peer);
  request->bytes_ = body.bytes;
  request->local_ = std::move(body);
  request->answer_ = std::move(answer);
  return request;
}

void Incoming::Give(std::string head, Payload body) {
  if (answer_) return std::exchange(answer_, nullptr)(std::move(head), std::move(body));
  messenger_->Put(this, std::move(head), std::move(body));
}

void Incoming::DropBody() {
  body_.reset();
  local_ = {};
  bytes_ = 0;
  body_room_ = Meter();
}

void Incoming::WhenGone(std::function<void()> f) {
  {
    std::lock_guard lock(mu_);
    if (!gone_) {
      when_gone_ = std::move(f);
      return;
    }
  }
  f();
}

void Incoming::Answer(std::string head, Payload body) {
  {
    std::lock_guard lock(mu_);
    if (std::exchange(answered_, true)) return;
  }
  Give(std::move(head), std::move(body));
}

// ---- Messenger ----

Messenger::Messenger(std::shared_ptr<const TransportRole> transport, uint64_t largest, Clock* clock, Serve serve,
                     std::shared_ptr<PeerAccounts> accounts)
    : transport_(std::move(transport)),
      largest_(largest),
      accounts_(accounts ? std::move(accounts) : std::make_shared<PeerAccounts>(PeerLimits(), nullptr)),
      clock_(clock),
      serve_(std::move(serve)) {}

StatusOr<std::unique_ptr<Messenger>> Messenger::Create(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options,
                                                       Clock* clock, Serve serve, std::shared_ptr<PeerAccounts> accounts) {
  std::unique_ptr<Messenger> m(new Messenger(std::move(transport), options.largest, clock, std::move(serve), std::move(accounts)));
  RETURN_IF_ERROR(m->Listen(options));
  return m;
}

Status Messenger::Listen(const EndpointOptions& options) {
  tw_endpoint_config c = {TW_SIZED(tw_endpoint_config)};
  c.flags = (options.open ? TW_ENDPOINT_OPEN : 0) | (options.calls_only ? TW_ENDPOINT_CALLS : 0);
  c.address = options.address.data();
  c.address_len = options.address.size();
  c.credential = options.credential.data();
  c.credential_len = options.credential.size();
  c.largest = largest_;
  c.arg = this;
  c.place = [](void* arg, const tw_incoming* m, tw_placing* to) { static_cast<Messenger*>(arg)->PlaceRequest(m, to); };
  c.serve = [](void* arg, const tw_incoming* m) { static_cast<Messenger*>(arg)->ServeRequest(m); };
  c.gone = [](void* arg, uint64_t id) { static_cast<Messenger*>(arg)->Gone(id); };
  tw_sink bound = {TW_SIZED(tw_sink), &address_, AppendTo};
  Status s = FromC(transport_->def.listen(transport_->host, transport_->def.user, &c, &bound, &endpoint_));
  return s.ok() || options.calls_only ? s : Prefix(s, StrCat("cannot listen at ", transport_->name, ":", options.address, ":"));
}

Messenger::~Messenger() { Close(); }

void Messenger::Close() {
  std::vector<std::shared_ptr<Incoming>> open;
  {
    std::lock_guard lock(mu_);
    if (!endpoint_ || std::exchange(closing_, true)) return;
    for (auto& [id, weak] : serving_) {
      if (auto request = weak.lock()) open.push_back(std::move(request));
    }
  }
  for (auto& request : open) request->Fail({Unavailable("the process is going away", ""), false});
  open.clear();
  std::map<std::string, std::shared_ptr<Peer>> peers;
  {
    std::lock_guard lock(mu_);
    peers.swap(peers_);
  }
  peers.clear();  // pending calls hold their peers until they end
  std::vector<uint64_t> calls;
  {
    std::lock_guard lock(mu_);
    for (auto& [name, o] : calls_) calls.push_back(name);
  }
  for (uint64_t name : calls) Cancel(name);
  transport_->def.close(transport_->host, endpoint_);
  std::lock_guard lock(mu_);
  endpoint_ = nullptr;
}

void Messenger::Lend(const std::atomic<bool>& over) {
  constexpr uint64_t kLook = 1'000'000'000;  // nanoseconds: bounds the cost of a lost wake-up
  while (!over.load(std::memory_order_acquire)) {
    if (!LendFor(over, kLook)) return;
  }
}

bool Messenger::LendFor(const std::atomic<bool>& over, uint64_t ns) {
  const auto is_over = [](void* arg) -> uint32_t { return static_cast<const std::atomic<bool>*>(arg)->load(std::memory_order_acquire); };
  return transport_->def.poll(transport_->host, endpoint_, ns, is_over, const_cast<std::atomic<bool>*>(&over)) != 0;
}

// ---- Calls ----

StatusOr<std::shared_ptr<Messenger::Peer>> Messenger::PeerAt(const std::string& address) {
  if (closing_) return Error(absl::StatusCode::kCancelled, "this process is going away");
  if (auto it = peers_.find(address); it != peers_.end()) return it->second;
  auto peer = std::make_shared<Peer>();
  peer->transport = transport_.get();
  RETURN_IF_ERROR(FromC(transport_->def.connect(transport_->host, endpoint_, address.data(), address.size(), &peer->handle)));
  return peers_[address] = std::move(peer);
}

uint64_t Messenger::Start(Call call) {
  if (!origin_.here()) {  // the threads of clock and transport do not exist here, and a lock may be held for ever
    StartThread([done = std::move(call.done)] {
      Reply reply;
      reply.reached = false;
      reply.outcome.status = FailedPrecondition("this process was forked from the one that has the connections");
      done(reply);
    }).detach();
    return 0;
  }
  auto o = std::make_shared<Outgoing>();
  o->messenger = this;
  o->call = std::move(call);
  uint64_t name;
  Status s;
  {
    std::lock_guard lock(mu_);
    name = o->name = ++names_;
    calls_.emplace(name, o);
    s = Send(o);
    if (!s.ok()) o->peer.reset();  // so that closing the endpoint does not wait for it
    if (s.ok() && o->call.deadline && !o->over) {
      o->timer = clock_->At(o->call.deadline, [this, name] {
        std::shared_ptr<Outgoing> late;
        {
          std::lock_guard inner(mu_);
          auto it = calls_.find(name);
          if (it == calls_.end() || it->second->over) return;
          late = it->second;
          late->late = true;  // also if the transport reports the cancelled call first
          transport_->def.cancel(transport_->host, late->peer->handle, name);
        }
        End(late, Error(absl::StatusCode::kCancelled, ""), false);
      });
    }
  }
  // Not from this call: a caller may hold locks that its callback takes.
  if (!s.ok()) {
    clock_->Soon([this, o, s] {
      End(o, s, false);
      Drop(o->name);
    });
  }
  return name;
}

// REQUIRES: mu_.
Status Messenger::Send(const std::shared_ptr<Outgoing>& o) {
  const std::string head = PutRequest(o->call.method, o->call.to.incarnation, o->call.fields);
  if (head.size() > TW_MESSAGE_HEAD) return ResourceExhausted("a request has a head of ", head.size(), " bytes, more than a message takes");
  tw_message m = {TW_SIZED(tw_message)};
  m.head = head.data();
  m.head_bytes = head.size();
  m.body = o->call.body.data;
  m.bytes = o->call.body.bytes;
  m.arg = o.get();
  m.place = [](void* arg, const tw_incoming* in, tw_placing* to) {
    auto* self = static_cast<Outgoing*>(arg);
    self->messenger->PlaceAnswer(self, in, to);
  };
  m.done = [](void* arg, tw_status* s) {
    auto* self = static_cast<Outgoing*>(arg);
    self->messenger->Done(self, FromC(s));
  };
  // An idle connection may have been lost. Then nothing was sent, and a new connection is made.
  for (bool again = peers_.count(o->call.to.address) > 0;; again = false) {
    ASSIGN_OR_RETURN(o->peer, PeerAt(o->call.to.address));
    Status s = FromC(transport_->def.call(transport_->host, o->peer->handle, o->name, &m));
    if (s.code() != absl::StatusCode::kUnavailable) return s;
    peers_.erase(o->call.to.address);
    if (!again) return s;
  }
}

void Messenger::Cancel(uint64_t name) {
  std::lock_guard lock(mu_);
  auto it = calls_.find(name);
  if (it != calls_.end() && it->second->peer) transport_->def.cancel(transport_->host, it->second->peer->handle, name);
}

void Messenger::PlaceAnswer(Outgoing* o, const tw_incoming* m, tw_placing* to) {
  void* data = nullptr;
  o->head.assign(static_cast<const char*>(m->head), size_t(m->head_bytes));
  if (m->bytes == 0) return;
  o->refused = m->bytes;
  if (m->bytes > largest_) return;
  std::function<StatusOr<void*>(std::string_view, uint64_t)> place;
  {
    std::lock_guard lock(mu_);
    if (o->over) return;
    place = o->call.place;
  }
  try {
    if (place) {
      std::string_view fields;
      auto outcome = GetAnswer(o->head, &fields);
      if (!outcome.ok() || !outcome->status.ok()) return;  // `place` takes no body of a failure
      const auto where = place(fields, m->bytes);
      o->unwanted = where.status();
      if (!where.ok()) return;
      data = *where;
    }
    if (!data) {
      o->body = std::make_unique_for_overwrite<char[]>(size_t(m->bytes));
      data = o->body.get();
    }
  } catch (...) {  // no memory: the body is not wanted
  }
  o->placed = data != nullptr;
  o->bytes = o->placed ? m->bytes : 0;
  if (o->placed) o->refused = 0;
  tw_put_place(to, data);
}

void Messenger::Done(Outgoing* o, Status s) {
  std::shared_ptr<Outgoing> mine;
  {
    std::lock_guard lock(mu_);
    mine = calls_.at(o->name);
    if (s.code() == absl::StatusCode::kUnavailable || s.code() == absl::StatusCode::kPermissionDenied) {
      auto it = peers_.find(o->call.to.address);
      if (it != peers_.end() && it->second == o->peer) peers_.erase(it);  // the next call connects again
    }
  }
  End(mine, std::move(s), true);
  Drop(mine->name);
}

// why: the failure of the transport or the messenger; ok if the answer arrived.
void Messenger::End(const std::shared_ptr<Outgoing>& o, Status why, bool reached) {
  {
    std::lock_guard lock(mu_);
    if (std::exchange(o->over, true)) return;
    if (o->late && !why.ok()) why = Error(absl::StatusCode::kDeadlineExceeded, "has not answered in time");
  }
  if (o->timer) clock_->Forget(o->timer);
  Reply reply;
  reply.reached = reached && why.ok();
  const std::string& who = o->call.to.title;
  if (why.ok()) {
    auto outcome = GetAnswer(o->head, &reply.fields);
    if (outcome.ok()) {
      reply.outcome = *std::move(outcome);
      if (reply.outcome.status.ok()) reply.outcome.status = o->unwanted;
      if (reply.outcome.status.ok() && o->refused) {
        reply.outcome.status = ResourceExhausted("an answer of ", o->refused, " bytes is more than is taken (", largest_, ")");
      }
      if (!reply.outcome.status.ok()) reply.outcome.status = Prefix(reply.outcome.status, StrCat(who, ":"));
      if (o->body) reply.body = {o->body.get(), size_t(o->bytes)};
    } else {
      reply.outcome.status = Prefix(outcome.status(), StrCat(who, ":"));
    }
  } else {
    const bool lost = why.code() == absl::StatusCode::kUnavailable;
    reply.outcome.status = Prefix(why, StrCat(who, lost ? " cannot be reached:" : ":"));
  }
  auto done = std::move(o->call.done);
  done(reply);
}

void Messenger::Drop(uint64_t name) {
  std::shared_ptr<Outgoing> gone;  // destroyed outside the lock
  std::lock_guard lock(mu_);
  auto it = calls_.find(name);
  if (it == calls_.end()) return;
  gone = std::move(it->second);
  gone->peer.reset();  // before the endpoint ends
  calls_.erase(it);
}

// ---- Requests ----

// Charges the peer's account for the request and its body, before either is allocated.
Status Messenger::MakeRoom(Incoming* request, uint64_t bytes) {
  request->account_ = accounts_->Find(request->peer_, request->role_ == TW_PEER_CLIENT);
  ASSIGN_OR_RETURN(request->share_, request->account_->Begin());
  if (bytes > largest_) return ResourceExhausted("a message of ", bytes, " bytes is more than is taken (", largest_, ")");
  if (bytes <= PeerAccounts::kSmall) return Status();
  request->body_room_ = Meter(request->account_->budget());
  if (request->body_room_.TakeJust(bytes)) return Status();
  return Prefix(request->body_room_.status(), StrCat("a message of ", bytes, " bytes:"));
}

void Messenger::PlaceRequest(const tw_incoming* m, tw_placing* to) {
  try {
    auto request = std::make_shared<Incoming>();
    request->messenger_ = this;
    request->answered_ = true;  // nothing to answer before it is served
    request->head_.assign(static_cast<const char*>(m->head), size_t(m->head_bytes));
    request->peer_.assign(m->peer, size_t(m->peer_len));
    request->role_ = TW_HAS(m, role) ? m->role : uint32_t{TW_PEER_ANY};
    request->refused_ = MakeRoom(request.get(), m->bytes);
    if (request->refused_.ok() && m->bytes > 0) {
      request->body_ = std::make_unique_for_overwrite<char[]>(size_t(m->bytes));
      request->bytes_ = m->bytes;
    }
    std::lock_guard lock(mu_);
    const auto arriving = arriving_.emplace(m->id, std::move(request)).first->second;
    tw_put_place(to, arriving->body_.get());
  } catch (...) {  // no memory: ServeRequest finds no request and reports that
  }
}

// REQUIRES: mu_. Returns NULL if there is none.
std::shared_ptr<Incoming> Messenger::TakeArriving(uint64_t id) {
  auto it = arriving_.find(id);
  if (it == arriving_.end()) return nullptr;
  auto request = std::move(it->second);
  arriving_.erase(it);
  return request;
}

void Messenger::ServeRequest(const tw_incoming* m) {
  std::shared_ptr<Incoming> request;
  bool refused = false;
  {
    std::lock_guard lock(mu_);
    request = TakeArriving(m->id);
    refused = closing_;
    if (!request) request = std::make_shared<Incoming>();
    request->messenger_ = this;
    request->id_ = m->id;
    request->self_ = m->self;
    request->answered_ = false;
    serving_.emplace(m->id, request);
  }
  if (refused) return request->Fail({Unavailable("the process is going away", ""), false});
  if (!request->refused_.ok()) return request->Fail({request->refused_, false});
  if (request->bytes_ != m->bytes || !request->account_)
    return request->Fail({ResourceExhausted("a message of ", m->bytes, " bytes: the task has no memory for it now; send it later"), false});
  try {
    serve_(request);
  } catch (...) {
    request->Fail({Thrown(), false});
  }
}

void Messenger::Gone(uint64_t id) {
  std::shared_ptr<Incoming> request;
  std::function<void()> f;
  {
    std::lock_guard lock(mu_);
    if (TakeArriving(id)) return;
    auto it = serving_.find(id);
    if (it != serving_.end()) request = it->second.lock();
  }
  if (!request) return;
  {
    std::lock_guard lock(request->mu_);
    request->gone_ = true;
    f = std::move(request->when_gone_);
  }
  if (f) f();
}

void Messenger::Put(Incoming* request, std::string head, Payload body) {
  {
    std::lock_guard lock(mu_);
    serving_.erase(request->id_);
  }
  if (head.size() > TW_MESSAGE_HEAD)
    head = PutFailure({ResourceExhausted("an answer has a head of ", head.size(), " bytes"), false}), body = {};
  // The memory of the answer is kept until the transport has sent it, and the peer pays for it. A
  // peer that reads no answers gets a failure instead, and then no further answers are made for it.
  auto* kept = new Sent{Meter(), std::move(request->share_), std::move(body)};
  if (kept->body.bytes > PeerAccounts::kSmall && !kept->body.charged && request->account_) {
    kept->room = Meter(request->account_->budget());
    if (!kept->room.TakeJust(kept->body.bytes)) {
      head = PutFailure({Prefix(kept->room.status(), StrCat("an answer of ", kept->body.bytes, " bytes:")), false});
      kept->body = {};
    }
  }
  tw_message m = {TW_SIZED(tw_message)};
  m.head = head.data();
  m.head_bytes = head.size();
  m.body = kept->body.data;
  m.bytes = kept->body.bytes;
  m.arg = kept;
  m.done = [](void* arg, tw_status* s) {
    (void)FromC(s);  // nobody waits for the answer, or it is on its way: nothing to do
    delete static_cast<Sent*>(arg);
  };
  transport_->def.answer(transport_->host, request->self_, &m);
}

}  // namespace thalweg::distributed
