#include "connection.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "../common/quoted.h"
#include "endpoint.h"
#include "place.h"

namespace thalweg::ucx_transport {
namespace {

constexpr uint64_t kCalls = 1 << 15;           // calls of one connection at once
constexpr std::chrono::seconds kPatience(10);  // for the whole meeting
constexpr int kDrains = 1000;                  // times that a lost channel is asked for what it still has

void Append(std::string* to, const void* bytes, size_t n) { to->append(static_cast<const char*>(bytes), n); }

// Takes n bytes off the front. Returns false if there are fewer.
bool Take(std::string_view* from, void* to, size_t n) {
  if (from->size() < n) return false;
  std::memcpy(to, from->data(), n);
  from->remove_prefix(n);
  return true;
}

}  // namespace

Connection::Connection(Endpoint* endpoint, int fd, bool mine, std::string name)
    : endpoint_(endpoint), mine_(mine), name_(std::move(name)), fd_(fd), state_(mine ? kConnecting : kMeeting) {
  endpoint_->Watch(fd_, this, Endpoint::kSocket, mine);
  watches_writes_ = mine;
}

bool Connection::over() const { return state_ == kLost && calls_.empty() && (!mine_ || closing_ || endpoint_->closing()); }

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

// ---- entries ----

tw_status* Connection::Ended(uint32_t code, const char* what) const { return endpoint_->Failure(code, common::Quoted(name_) + " " + what); }

tw_status* Connection::Start(uint64_t id, const tw_message* m) {
  if (state_ == kLost || !broken_.empty()) return Ended(code_, broken_.empty() ? "is lost; connect again" : broken_.c_str());
  if (calls_.size() >= kCalls) return Ended(TW_RESOURCE_EXHAUSTED, "takes no more calls now; wait for the answers to earlier ones");
  Call* c = Add(++count_);
  c->id = id;
  c->m = *m;
  c->head.assign(static_cast<const char*>(m->head), m->head_bytes);
  c->ready = true;
  numbers_[id] = c->number;
  endpoint_->Queue(c);
  return nullptr;
}

void Connection::Cancel(uint64_t id) {
  const auto it = numbers_.find(id);
  Call* c = it == numbers_.end() ? nullptr : Find(it->second);
  if (!c) return;
  c->cancelled = true;
  c->cancelled_at = Clock::now();
  endpoint_->Queue(c);
}

void Connection::Answer(Call* c, const tw_message* m) {
  c->m = *m;
  c->head.assign(static_cast<const char*>(m->head), m->head_bytes);
  c->ready = true;
  endpoint_->Queue(c);
}

Call* Connection::Find(uint64_t number) const {
  const auto it = calls_.find(number);
  return it == calls_.end() ? nullptr : it->second.get();
}

Call* Connection::Add(uint64_t number) { return (calls_[number] = std::make_unique<Call>(this, number)).get(); }

// REQUIRES: the call is not queued.
void Connection::Erase(Call* c) { calls_.erase(c->number); }

// ---- the socket ----

void Connection::Break(std::string why, uint32_t code) {
  if (!broken_.empty() || state_ == kLost) return;
  broken_ = std::move(why);
  code_ = code;
}

// Needs no memory.
void Connection::BreakNow() noexcept {
  if (broken_.empty() && state_ != kLost) broken_ = "is lost";
}

void Connection::Watch() {
  const bool writes = !out_.empty() || state_ == kConnecting;
  if (writes == watches_writes_ || fd_ < 0) return;
  watches_writes_ = writes;
  endpoint_->Rewatch(fd_, this, Endpoint::kSocket, writes);
}

void Connection::Say(uint32_t kind, const std::string& text) {
  const Record r = {uint32_t(text.size()), kind};
  Append(&out_, &r, sizeof r);
  out_ += text;
  WriteSocket();
}

void Connection::WriteSocket() {
  while (!out_.empty()) {
    const ssize_t n = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) Break(std::string("is lost: ") + std::strerror(errno));
    if (n <= 0) break;
    out_.erase(0, size_t(n));
  }
  Watch();
}

// Returns false if there is nothing more to read now.
bool Connection::ReadSocket() {
  char buffer[4096];
  const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
  if (n > 0) {
    in_.append(buffer, size_t(n));
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  ended_ = true;
  Break(n == 0 ? "is lost; connect again" : std::string("is lost: ") + std::strerror(errno));
  return false;
}

void Connection::OnSocket(Lock& l, uint32_t events) {
  if (state_ == kLost) return;
  try {
    if (state_ == kConnecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error) return Break(std::string("cannot be reached: ") + std::strerror(error));
      state_ = kMeeting;
      if (!FillRandom(my_nonce_.data(), my_nonce_.size())) return Break("cannot be met: the system has no random numbers");
      std::string hello(kMagic, sizeof kMagic);
      Append(&hello, my_nonce_.data(), my_nonce_.size());
      Say(kHello, hello);
    }
    WriteSocket();
    while (broken_.empty() && ReadSocket()) {
      Record r;
      while (broken_.empty() && in_.size() >= sizeof r) {
        std::memcpy(&r, in_.data(), sizeof r);
        if (r.bytes > kLongestRecord) return Break("says what no peer says; is it a thalweg process of this version?");
        if (in_.size() < sizeof r + r.bytes) break;
        const std::string text = in_.substr(sizeof r, r.bytes);
        in_.erase(0, sizeof r + r.bytes);
        OnRecord(l, r.kind, text);
      }
    }
  } catch (const std::exception&) {
    if (!l.owns_lock()) l.lock();
    BreakNow();
  }
}

void Connection::OnRecord(Lock& l, uint32_t kind, std::string_view text) {
  if (kind == kRefusal && mine_ && state_ < kUp) return Break("does not let us in: " + common::Quoted(text), TW_PERMISSION_DENIED);
  if (kind == kTrouble && mine_ && state_ < kUp) return Break("cannot take us: " + common::Quoted(text));
  if (kind == kHello && state_ == kMeeting) return OnHello(l, text);
  if (kind == kJoin && state_ == kJoining) return OnJoin(l, text);
  Break("says what no peer says; is it a thalweg process of this version?");
}

void Connection::OnHello(Lock& l, std::string_view text) {
  char magic[sizeof kMagic];
  Digest proof = {};
  const std::string& token = endpoint_->token();
  if (!Take(&text, magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof magic) != 0 ||
      !Take(&text, their_nonce_.data(), their_nonce_.size()) || (mine_ && !Take(&text, proof.data(), proof.size())) || !text.empty())
    return Break("says what no peer says; is it a thalweg process of this version?");
  if (!mine_) {
    if (!FillRandom(my_nonce_.data(), my_nonce_.size())) return Break("cannot be met: the system has no random numbers");
    proof = Proof(token, "listener", their_nonce_, my_nonce_);
    std::string hello(kMagic, sizeof kMagic);
    Append(&hello, my_nonce_.data(), my_nonce_.size());
    Append(&hello, proof.data(), proof.size());
    state_ = kJoining;
    return Say(kHello, hello);
  }
  const Digest wanted = Proof(token, "listener", my_nonce_, their_nonce_);
  if (!Same(wanted.data(), proof.data(), proof.size()))
    return Break("does not know the token of this cluster; use the same `credentials` at both ends", TW_PERMISSION_DENIED);
  if (!FillRandom(key_.data(), key_.size())) return Break("cannot be met: the system has no random numbers");
  if (!MakeChannel(l)) return;
  std::string join;
  Append(&join, key_.data(), key_.size());
  join += channel_->address();
  proof = Proof(token, "caller", my_nonce_, their_nonce_, join);
  join.insert(0, reinterpret_cast<const char*>(proof.data()), proof.size());
  state_ = kJoining;
  Say(kJoin, join);
}

void Connection::OnJoin(Lock& l, std::string_view text) {
  const std::string& token = endpoint_->token();
  Digest proof;
  if (!Take(&text, proof.data(), proof.size())) return Break("says what no peer says");
  const Digest wanted =
      mine_ ? Proof(token, "address", my_nonce_, their_nonce_, text) : Proof(token, "caller", their_nonce_, my_nonce_, text);
  if (!Same(wanted.data(), proof.data(), proof.size())) {
    if (!mine_) Say(kRefusal, "it does not know the token of this cluster");
    return Break("does not know the token of this cluster", TW_PERMISSION_DENIED);
  }
  if (mine_) return ConnectChannel(l, text);
  if (!Take(&text, key_.data(), key_.size())) return Break("says what no peer says");
  if (!MakeChannel(l)) return Say(kTrouble, broken_);
  ConnectChannel(l, text);
  if (state_ != kUp) return;
  proof = Proof(token, "address", their_nonce_, my_nonce_, channel_->address());
  Say(kJoin, std::string(proof.begin(), proof.end()) + channel_->address());
}

bool Connection::MakeChannel(Lock& l) {
  std::string why;
  l.unlock();
  auto channel = Channel::Create(endpoint_->context(), this, &why);
  l.lock();
  channel_ = std::move(channel);
  if (channel_) {
    endpoint_->Watch(channel_->fd(), this, Endpoint::kWork, false);
  } else {
    Break("cannot be met: " + why);
  }
  return channel_ != nullptr;
}

void Connection::ConnectChannel(Lock& l, std::string_view address) {
  std::string why;
  l.unlock();
  const bool connected = channel_->Connect(address, &why);
  l.lock();
  if (!connected) return Break("cannot be met: " + why);
  state_ = kUp;
  armed_ = false;
  for (auto& [number, c] : calls_) endpoint_->Queue(c.get());
}

// ---- losing it ----

// Destroys the channel. Memory of calls is then no longer touched by either side.
void Connection::Lose(Lock& l) {
  auto channel = std::move(channel_);
  state_ = kLost;
  if (fd_ >= 0) {
    endpoint_->Unwatch(fd_);
    shutdown(fd_, SHUT_RDWR);  // a forked child may have the socket, too
    close(fd_);
    fd_ = -1;
  }
  if (channel) endpoint_->Unwatch(channel->fd());
  // Nothing is added to the calls any more, so that they may be walked while the lock is released.
  for (auto& [number, c] : calls_) {
    void* const body = std::exchange(c->body, nullptr);
    if (!body || !channel) continue;
    l.unlock();
    channel->Drop(body);
    l.lock();
  }
  l.unlock();
  channel.reset();
  l.lock();
  for (auto& [number, c] : calls_) {
    c->sending = 0;
    c->receiving = false;
    endpoint_->Queue(c.get());
  }
}

// A peer that stands still may not keep the memory of cancelled calls.
void Connection::LookAtCancelled() {
  const auto now = Clock::now();
  if (now - looked_ < std::chrono::seconds(1)) return;
  looked_ = now;
  for (const auto& [number, c] : calls_) {
    if (mine_ && c->cancelled && c->m.done && now - c->cancelled_at > kPatience)
      return Break("does not fetch or send a body for ten seconds");
  }
}

bool Connection::Tend(Lock& l, bool spins) {
  if (state_ == kLost) return false;
  const bool closes = closing_ || endpoint_->closing();
  if (!closes && meets() && Clock::now() - since_ > kPatience) Break("does not finish the meeting within ten seconds");
  if (!closes) LookAtCancelled();
  if (!closes && ended_ && channel_ && state_ == kUp) {
    // The peer has ended. Its last messages may still be there.
    ended_ = false;
    l.unlock();
    for (int i = 0; i < kDrains && channel_->Progress(); ++i) continue;
    l.lock();
    return true;  // once more, after the steps of the calls that these belong to
  }
  if (closes || !broken_.empty()) {
    if (closes) code_ = TW_CANCELLED;
    Lose(l);
    return true;
  }
  if (!channel_ || armed_) return false;
  l.unlock();
  const bool progressed = channel_->Progress();
  const bool armed = !progressed && !spins && channel_->Arm();
  l.lock();
  armed_ = armed;
  if (progressed) endpoint_->KeepAwake();
  return !armed;
}

// ---- events of the channel, without the lock ----

void Connection::OnFailure(const char* why) {
  std::lock_guard l(endpoint_->mu());
  try {
    const std::string logged = TakeLastError();
    Break(std::string("is lost: ") + why + (logged.empty() ? "" : " (" + logged + ")"));
  } catch (const std::exception&) {
    BreakNow();
  }
}

void Connection::OnSent(void* call, bool ok) {
  auto* c = static_cast<Call*>(call);
  std::lock_guard l(endpoint_->mu());
  --c->sending;
  if (!ok) BreakNow();
  endpoint_->Queue(c);
}

void Connection::OnReceived(void* call, bool ok) {
  auto* c = static_cast<Call*>(call);
  std::lock_guard l(endpoint_->mu());
  c->receiving = false;
  c->body_over = ok;
  if (!ok) BreakNow();
  endpoint_->Queue(c);
}

void Connection::OnMessage(const Frame& f, const uint8_t* data, size_t bytes) {
  Lock l(endpoint_->mu());
  if (state_ == kLost || !Same(f.key.data(), key_.data(), key_.size())) return;  // too late, or from somebody who was not at the meeting
  try {
    const uint64_t eager = f.bytes <= kEager ? f.bytes : 0;
    if (f.head_bytes > TW_MESSAGE_HEAD || bytes != f.head_bytes + eager) return Break("sends a message of a wrong size");
    TakeMessage(l, f, data);
  } catch (const std::exception&) {
    if (!l.owns_lock()) l.lock();
    BreakNow();
  }
}

void Connection::TakeMessage(Lock& l, const Frame& f, const uint8_t* data) {
  Call* c = Find(f.number);
  if (f.kind == kCancel && !mine_) {
    if (!c) return;  // it has been answered
    c->cancelled = true;
    return endpoint_->Queue(c);
  }
  if (mine_ ? (f.kind != kAnswer && f.kind != kNoAnswer) || !c || c->arrived : f.kind != kRequest || (c && c->arrived))
    return Break("sends a message that fits no call");
  if (f.kind == kNoAnswer && (f.head_bytes || f.bytes || !c->cancelled)) return Break("gives no answer");
  if (!c && calls_.size() >= 2 * kCalls) return Break("sends too many requests");
  if (!c) c = Add(f.number);
  c->arrived = true;
  c->follows = f.bytes > kEager;
  c->refused = f.kind == kNoAnswer;
  endpoint_->Queue(c);
  if (c->cancelled) return;
  c->in_head.assign(reinterpret_cast<const char*>(data), f.head_bytes);
  c->in = {TW_SIZED(tw_incoming)};
  c->in.id = mine_ ? c->id : endpoint_->NextId();
  c->in.peer = name_.data();
  c->in.peer_len = name_.size();
  c->in.head = c->in_head.data();
  c->in.head_bytes = f.head_bytes;
  c->in.bytes = f.bytes;
  c->in.self = c;
  c->in.role = TW_PEER_ANY;
  c->placed = true;
  const tw_place_fn place = mine_ ? c->m.place : endpoint_->config().place;
  void* const arg = mine_ ? c->m.arg : endpoint_->config().arg;
  void* region = nullptr;
  l.unlock();
  tw_ask_place(place, arg, &c->in, &c->to, &region);
  if (c->to && !c->follows && f.bytes > 0) std::memcpy(c->to, data + f.head_bytes, f.bytes);
  l.lock();
  c->in.body = c->to;
}

bool Connection::OnBody(const Frame& f, size_t bytes, void* body) {
  std::lock_guard l(endpoint_->mu());
  if (state_ == kLost || !Same(f.key.data(), key_.data(), key_.size())) return false;
  try {
    Call* c = Find(f.number);
    if (f.kind != (mine_ ? kAnswer : kRequest) || (mine_ && !c) || (c && (c->body || c->body_over || c->receiving)) || bytes <= kEager ||
        calls_.size() >= 2 * kCalls) {
      Break("sends a body that fits no call");
      return false;
    }
    if (!c) c = Add(f.number);  // the body has overtaken its head
    c->body = body;
    c->body_bytes = bytes;
    endpoint_->Queue(c);
    return true;
  } catch (const std::exception&) {
    BreakNow();
    return false;
  }
}

// ---- calls ----

void Connection::Step(Lock& l, Call* c) {
  if (mine_) return StepMine(l, c);
  StepTheirs(l, c);
}

// Calls done once. s: taken.
void Connection::Done(Lock& l, Call* c, tw_status* s) {
  const tw_message m = std::exchange(c->m, tw_message{});
  if (mine_) numbers_.erase(c->id);
  if (!m.done) return;
  l.unlock();
  m.done(m.arg, s);
  l.lock();
}

void Connection::TakeBody(Lock& l, Call* c, bool wanted) {
  if (!c->body || !c->arrived || state_ == kLost) return;
  void* const body = std::exchange(c->body, nullptr);
  if (wanted && c->to && c->body_bytes != c->in.bytes) Break("sends a body of a wrong size");
  wanted = wanted && c->to && broken_.empty();
  c->receiving = wanted;
  Channel* const channel = channel_.get();
  armed_ = false;
  l.unlock();
  const auto went = wanted ? channel->Receive(body, c->to, c->body_bytes, &c->transfer) : Channel::Went::kDone;
  if (!wanted) channel->Drop(body);
  l.lock();
  if (went == Channel::Went::kWaits) return;
  c->receiving = false;
  c->body_over = went == Channel::Went::kDone;
  if (went == Channel::Went::kFailed) Break("is lost: its memory cannot be read");
}

// Sends the message and its body. Both are counted before UCX may call back.
void Connection::Transmit(Lock& l, Call* c, Kind kind) {
  const bool empty = kind == kNoAnswer;
  const uint64_t bytes = empty ? 0 : c->m.bytes;
  if (empty) c->head.clear();
  c->sent = true;
  c->frame = {key_, kind, uint32_t(c->head.size()), c->number, bytes};
  size_t n = 0;
  if (!c->head.empty()) c->parts[n++] = {c->head.data(), c->head.size()};
  if (bytes > 0 && bytes <= kEager) c->parts[n++] = {const_cast<void*>(c->m.body), bytes};
  c->body_part = {const_cast<void*>(c->m.body), bytes};
  const bool follows = bytes > kEager;
  c->sending = follows ? 2 : 1;
  Channel* const channel = channel_.get();
  armed_ = false;
  l.unlock();
  const auto first = channel->Send(kMessage, &c->frame, c->parts, n, &c->transfer);
  const auto second = follows ? channel->Send(kBody, &c->frame, &c->body_part, 1, &c->transfer) : Channel::Went::kWaits;
  l.lock();
  c->sending -= (first != Channel::Went::kWaits) + (second != Channel::Went::kWaits);
  if (first == Channel::Went::kFailed || second == Channel::Went::kFailed) Break("is lost; connect again");
}

void Connection::TellCancelled(Lock& l, Call* c) {
  c->told = true;
  c->frame.kind = kCancel;
  c->frame.head_bytes = 0;
  c->frame.bytes = 0;
  ++c->sending;
  Channel* const channel = channel_.get();
  armed_ = false;
  l.unlock();
  const auto went = channel->Send(kMessage, &c->frame, nullptr, 0, &c->transfer);
  l.lock();
  if (went != Channel::Went::kWaits) --c->sending;
  if (went == Channel::Went::kFailed) Break("is lost; connect again");
}

void Connection::StepMine(Lock& l, Call* c) {
  if (state_ == kLost) {
    Done(l, c, c->m.done ? code_ == TW_CANCELLED ? Ended(code_, "was closed") : Ended(code_, broken_.c_str()) : nullptr);
    return Erase(c);
  }
  if (!c->sent && c->cancelled) {
    Done(l, c, Ended(TW_CANCELLED, "is not waited for any more"));
    return Erase(c);
  }
  if (!c->sent && state_ == kUp) Transmit(l, c, kRequest);
  TakeBody(l, c, !c->cancelled && c->placed);
  if (!c->sent || c->sending > 0 || c->receiving || state_ == kLost) return;
  // The frame is free now, so that it can carry the cancellation.
  if (c->cancelled && !c->told && !c->arrived) TellCancelled(l, c);
  if (c->m.done && c->cancelled) {
    Done(l, c, Ended(TW_CANCELLED, "is not waited for any more"));
  } else if (c->m.done && c->whole()) {
    Done(l, c, nullptr);
  }
  if (c->whole() && c->sending == 0 && !c->queued) Erase(c);
}

void Connection::StepTheirs(Lock& l, Call* c) {
  const bool lost = state_ == kLost, ends = lost || c->cancelled;
  TakeBody(l, c, !ends && c->placed);
  if (c->receiving) return;
  const tw_endpoint_config& config = endpoint_->config();
  if (!ends && c->placed && !c->served && (!c->to || !c->follows || c->body_over)) {
    c->served = true;
    l.unlock();
    config.serve(config.arg, &c->in);
    l.lock();
  } else if (ends && c->placed && !c->ready && !c->gone) {
    c->gone = true;
    const uint64_t id = c->in.id;
    l.unlock();
    config.gone(config.arg, id);
    l.lock();
  }
  if (lost) {
    if (c->ready && c->m.done) Done(l, c, Ended(TW_UNAVAILABLE, "is lost"));
    if ((c->ready || !c->served) && !c->queued) Erase(c);
    return;
  }
  if (!c->arrived) return;
  if (!c->sent && c->cancelled && (c->ready || !c->served)) {
    if (c->m.done) Done(l, c, Ended(TW_CANCELLED, "does not wait for the answer any more"));
    Transmit(l, c, kNoAnswer);
  }
  if (!c->sent && c->ready) Transmit(l, c, kAnswer);
  if (!c->sent || c->sending > 0) return;
  if (c->m.done) Done(l, c, nullptr);
  if (c->whole() && !c->queued) Erase(c);
}

}  // namespace thalweg::ucx_transport
