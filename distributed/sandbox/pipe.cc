#include "distributed/sandbox/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <sys/eventfd.h>
#include <sys/socket.h>

#include "framework/base/signals.h"

namespace thalweg::distributed {
namespace {

constexpr size_t kPart = 64 << 10;          // bytes of a body in one packet
constexpr size_t kMostCalls = 1 << 14;      // pending at once
constexpr int kTurns = 64;                  // packets, before other work has its turn
constexpr uint64_t kMostUndone = 64 << 10;  // bytes of answers that wait until the holder next looks
constexpr int64_t kRest = 1'000'000;        // nanoseconds after a loan in which the own thread does not watch the socket

constexpr size_t kMostPacket = 24 + TW_MESSAGE_HEAD + kPart;
static_assert(kMostPacket < kRingBytes / 2);

// Nanoseconds that a thread polls the ring before it sleeps: a wake-up takes longer than most
// steps. A lent thread polls for the answer; the thread of a sandbox polls for the next request, if
// the last ones came that quickly.
constexpr int64_t kSpin = 300'000;
constexpr int64_t kAlone = 20'000;  // of these nanoseconds it keeps its processor; then it yields between polls

// A polling thread needs a processor, and so does the thread that it waits for.
bool MaySpin() {
  static const bool may = std::thread::hardware_concurrency() > 1;
  return may;
}

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void Ring(int wake) {
  const uint64_t one = 1;
  (void)!write(wake, &one, sizeof one);  // fails only if it is rung already
}
void Silence(int wake) {
  uint64_t n;
  (void)!read(wake, &n, sizeof n);
}

}  // namespace

// ---- Beginning and end ----

Pipe::Pipe(const tw_endpoint_config& config) : config_(config), mine_(config.flags & TW_ENDPOINT_CALLS) {}

StatusOr<std::unique_ptr<Pipe>> Pipe::Open(const tw_endpoint_config& config) {
  std::unique_ptr<Pipe> p(new Pipe(config));
  if (!p->mine_) RETURN_IF_ERROR(p->TakeSocket({config.address, size_t(config.address_len)}));
  static_assert(sizeof(Header) + TW_MESSAGE_HEAD + kPart == kMostPacket);
  p->buffer_ = std::make_unique_for_overwrite<char[]>(kMostPacket);
  p->own_wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  p->lent_wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (p->own_wake_ < 0 || p->lent_wake_ < 0) return ResourceExhausted("pipe: no descriptor is left; raise the limit on open files");
  p->thread_ = std::thread([pipe = p.get()] { pipe->Work(); });
  return p;
}

Pipe::~Pipe() {
  if (thread_.joinable()) {
    {
      std::lock_guard lock(mu_);
      closing_ = look_at_all_ = true;
      WakeHolder();
    }
    thread_.join();
  }
  for (int fd : {fd_, own_wake_, lent_wake_}) {
    if (fd >= 0) close(fd);
  }
}

Status Pipe::TakeSocket(std::string_view address) {
  int fd = -1, memory = -1, type = 0, domain = 0;
  socklen_t n = sizeof type;
  const auto number = [](std::string_view digits, int* to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *to);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  bool numbers = address.starts_with("fd");
  std::string_view socket = numbers ? address.substr(2) : std::string_view();
  std::string_view rings;
  if (const size_t m = socket.find('m'); m != socket.npos) rings = socket.substr(m + 1), socket = socket.substr(0, m);
  if (const size_t dash = socket.find('-'); dash != socket.npos) socket = mine_ ? socket.substr(dash + 1) : socket.substr(0, dash);
  numbers = numbers && number(socket, &fd) && number(rings, &memory);
  if (!numbers || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) != 0 || type != SOCK_SEQPACKET ||
      getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) != 0 || domain != AF_UNIX) {
    return InvalidArgument("pipe '", address, "' names no Unix socket of packets and its memory by their descriptors, as fd3m5 does");
  }
  ASSIGN_OR_RETURN(memory_, RingPair::Map(memory));
  fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (fd_ < 0) return ResourceExhausted("pipe: no descriptor is left; raise the limit on open files");
  in_.emplace(mine_ ? memory_->to_caller() : memory_->to_server());
  ring_.emplace(mine_ ? memory_->to_server() : memory_->to_caller());
  name_ = StrCat("pipe:", address);
  return Status();
}

Status Pipe::Connect(std::string_view address) {
  std::lock_guard lock(mu_);
  if (!mine_) return FailedPrecondition("a sandboxed worker serves sessions of one task; keep what the session runs on one task");
  if (fd_ >= 0) return Error(absl::StatusCode::kUnavailable, name_, " is lost, and there is no other");
  RETURN_IF_ERROR(TakeSocket(address));
  WakeHolder();
  return Status();
}

tw_status* Pipe::Ended(bool lost) const {
  return Guard([&] {
    return lost ? Error(absl::StatusCode::kUnavailable, name_, ": the process at the other end is gone")
                : Error(absl::StatusCode::kCancelled, name_, ": nobody waits for the answer any more");
  });
}

// ---- Entries ----

Status Pipe::Call(uint64_t id, const tw_message& m) {
  std::lock_guard lock(mu_);
  if (fd_ < 0 || lost_ || over()) return Error(absl::StatusCode::kUnavailable, name_, ": the process at the other end is gone");
  if (exchanges_.size() >= kMostCalls) return ResourceExhausted(name_, " has ", kMostCalls, " calls under way; wait for some");
  auto x = std::make_unique<Exchange>();
  x->pipe = this;
  x->header = {kRequest, uint32_t(m.head_bytes), id, m.bytes};
  x->head.assign(static_cast<const char*>(m.head), size_t(m.head_bytes));
  x->m = m;
  Exchange* made = x.get();
  exchanges_.emplace(id, std::move(x));
  Send(made);
  return Status();
}

void Pipe::Cancel(uint64_t id) {
  std::lock_guard lock(mu_);
  Exchange* x = Find(id);
  if (!x) return;
  x->cancelled = true;
  Look(id);
  WakeHolder();
}

void Pipe::Answer(void* self, const tw_message& m) {
  auto* x = static_cast<Exchange*>(self);
  Pipe* p = x->pipe;
  std::lock_guard lock(p->mu_);
  x->header = {kAnswer, uint32_t(m.head_bytes), x->header.id, m.bytes};
  x->head.assign(static_cast<const char*>(m.head), size_t(m.head_bytes));
  x->m = m;
  x->answered = true;
  if (p->lost_ || p->over() || x->cancelled) {
    p->Look(x->header.id);
    return p->WakeHolder();
  }
  p->Send(x);
}

void Pipe::ClosePeer() {
  std::lock_guard lock(mu_);
  peer_closed_ = look_at_all_ = true;
  WakeHolder();
}

void Pipe::Wake() {
  std::lock_guard lock(mu_);
  if (lent_) Ring(lent_wake_);
}

// REQUIRES: mu_.
void Pipe::WakeHolder() {
  if (holder_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;  // the holder looks by itself before it waits
  if (lent_) return Ring(lent_wake_);
  asked_ = true;
  Ring(own_wake_);
}

Pipe::Exchange* Pipe::Find(uint64_t id) const {
  auto it = exchanges_.find(id);
  return it == exchanges_.end() ? nullptr : it->second.get();
}

// ---- Sending ----

// Writes at once, as far as there is room and no message waits before this one.
void Pipe::Send(Outgoing* o) {
  o->sent = 0;
  o->began = false;
  for (int turn = 0; out_.empty() && turn < 4; ++turn) {
    if (!Write(o)) break;
    if (o->complete()) return Written(o);
  }
  o->queued = true;
  out_.push_back(o);
  WakeHolder();
}

// Writes a packet. Returns false if there is no room now, or the other side is lost.
bool Pipe::Write(Outgoing* o) {
  if (lost_ || fd_ < 0) return false;
  const uint64_t n = std::min<uint64_t>(o->m.bytes - o->sent, kPart);
  const Header piece = {kPiece, 0, o->header.id, 0};
  const std::string_view header(reinterpret_cast<const char*>(o->began ? &piece : &o->header), sizeof(Header));
  const std::string_view head = o->began ? std::string_view() : std::string_view(o->head);
  const std::string_view part = n == 0 ? std::string_view() : std::string_view(static_cast<const char*>(o->m.body) + o->sent, size_t(n));
  if (!ring_->Put({header, head, part})) {
    if (ring_->broken()) {
      Lose();
      WakeHolder();
    }
    return false;
  }
  if (ring_->ReaderSleeps()) Bell();
  o->began = true;
  o->sent += n;
  return true;
}

// If the socket is full of bells, no further wake-up is needed.
void Pipe::Bell() {
  if (lost_) return;
  iovec byte = {const_cast<char*>(""), 1};
  msghdr bell = {};  // the only way of sending that a sandbox allows
  bell.msg_iov = &byte;
  bell.msg_iovlen = 1;
  ssize_t sent;
  do sent = sendmsg(fd_, &bell, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0 || errno == EAGAIN || errno == ENOBUFS) return;
  Lose();
  WakeHolder();
}

void Pipe::WriteAll() {
  for (int turn = 0; turn < kTurns && !out_.empty(); ++turn) {
    Outgoing* o = out_.front();
    if (!Write(o)) return;
    out_.pop_front();
    if (!o->complete()) {
      out_.push_back(o);
      continue;
    }
    o->queued = false;
    Written(o);
  }
}

// The message is fully written. The memory of an answer is released when the holder next looks;
// only large answers wake the holder.
void Pipe::Written(Outgoing* o) {
  if (o->header.kind == kCancel) {
    notes_.erase(o);
  } else if (o->header.kind == kAnswer) {
    Look(o->header.id);
    if ((undone_ += o->m.bytes) > kMostUndone) WakeHolder();
  }
}

void Pipe::Unqueue(Outgoing* o) {
  if (std::exchange(o->queued, false)) out_.erase(std::find(out_.begin(), out_.end(), o));
}

void Pipe::Lose() {
  if (std::exchange(lost_, true)) return;
  look_at_all_ = true;
  shutdown(fd_, SHUT_RDWR);
}

// ---- Receiving: the holder ----

void Pipe::Read() {
  for (int turn = 0; turn < kTurns && ReadOne(); ++turn) continue;
  if (!in_->WriterWaits()) return;
  std::lock_guard lock(mu_);
  Bell();
}

void Pipe::ReadWhat(Found found) {
  const bool there = found != kSocket || TakeBells();
  Read();
  if (there) return;
  // Reads the packets that the other side wrote before it went. A ring holds at most this many.
  for (size_t turn = 0; turn < kRingBytes / sizeof(Header) && ReadOne(); ++turn) continue;
  std::lock_guard lock(mu_);
  Lose();
}

// Returns false if the other side is gone.
bool Pipe::TakeBells() {
  char bell[8];
  for (int turn = 0; turn < kTurns; ++turn) {
    const ssize_t n = recv(fd_, bell, sizeof bell, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return true;
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
  }
  return true;
}

// Returns true if there is a packet.
bool Pipe::Spin(int64_t until) {
  const int64_t alone = until - kSpin + kAlone;
  for (int64_t now = Now(); now < until; now = Now()) {
    if (in_->ready()) return true;
    if (now > alone) std::this_thread::yield();
  }
  return false;
}

// Returns false if there is nothing more, or the other side is lost.
bool Pipe::ReadOne() {
  const size_t n = in_->Take(buffer_.get(), kMostPacket);
  if (n == 0 && !in_->broken()) return false;
  Header h = {};
  bool good = n >= sizeof h;
  if (good) {
    std::memcpy(&h, buffer_.get(), sizeof h);
    const std::string_view rest(buffer_.get() + sizeof h, n - sizeof h);
    if (h.kind == kPiece) {
      std::unique_lock lock(mu_);
      Exchange* x = Find(h.id);
      lock.unlock();  // only the holder ends it
      const bool comes = x && x->placed && !x->served;
      good = !rest.empty() && (!comes || Advance(x, rest));
    } else {
      good = h.head <= std::min<size_t>(rest.size(), TW_MESSAGE_HEAD) && rest.size() - h.head <= h.bytes;
      good = good && (mine_ ? TakeAnswer(h, rest) : TakeRequest(h, rest));
    }
  }
  if (good) return true;
  std::lock_guard lock(mu_);
  Lose();
  return false;
}

bool Pipe::TakeAnswer(const Header& h, std::string_view rest) {
  if (h.kind != kAnswer) return false;
  Exchange* x;
  {
    std::lock_guard lock(mu_);
    x = Find(h.id);
    if (!x || x->cancelled) return true;            // it was cancelled
    if (x->placed || !x->complete()) return false;  // a second answer, or one to half a request
  }
  return Begin(x, h, rest);
}

bool Pipe::TakeRequest(const Header& h, std::string_view rest) {
  Exchange* x;
  {
    std::lock_guard lock(mu_);
    x = Find(h.id);
    if (h.kind == kCancel) {
      if (x) x->cancelled = true, Look(h.id);
      return true;
    }
    if (h.kind != kRequest || x || exchanges_.size() >= 2 * kMostCalls) return false;
    auto made = std::make_unique<Exchange>();
    x = made.get();
    x->pipe = this;
    x->header.id = h.id;
    exchanges_.emplace(h.id, std::move(made));
  }
  return Begin(x, h, rest);
}

// The head has arrived.
bool Pipe::Begin(Exchange* x, const Header& h, std::string_view rest) {
  x->head_in = rest.substr(0, h.head);
  const uint64_t id = mine_ ? h.id : ++count_;
  static constexpr std::string_view kClient = "the other end of the pipe";
  const std::string_view peer = mine_ ? std::string_view(name_) : kClient;
  x->in = {TW_SIZED(tw_incoming), id, peer.data(), peer.size(), x->head_in.data(), x->head_in.size(), nullptr, h.bytes, x, TW_PEER_ANY, 0};
  void *data = nullptr, *region = nullptr;
  const tw_place_fn place = mine_ ? x->m.place : config_.place;
  if (place) tw_ask_place(place, mine_ ? x->m.arg : config_.arg, &x->in, &data, &region);
  x->in.body = x->to = static_cast<char*>(data);
  x->rest = h.bytes;
  x->placed = true;
  return Advance(x, rest.substr(h.head));
}

// Takes a further part of the body. Returns false if it exceeds the announced length.
bool Pipe::Advance(Exchange* x, std::string_view part) {
  if (part.size() > x->rest) return false;
  if (x->to) {
    std::memcpy(x->to, part.data(), part.size());
    x->to += part.size();
  }
  x->rest -= part.size();
  if (x->rest > 0) return true;
  std::unique_ptr<Exchange> ended;
  {
    std::lock_guard lock(mu_);
    x->served = true;
    if (mine_) {
      auto it = exchanges_.find(x->header.id);
      ended = std::move(it->second);
      exchanges_.erase(it);
    }
  }
  if (ended) {
    ended->m.done(ended->m.arg, nullptr);
  } else {
    config_.serve(config_.arg, &x->in);
  }
  return true;
}

// ---- Ends: the holder ----

void Pipe::TendOne(Exchange* x, std::vector<Ending>* ends, std::vector<uint64_t>* gone) {
  const bool dead = lost_ || over() || x->cancelled;
  const bool ends_well = !mine_ && x->answered && x->complete();
  if (!dead && !ends_well) return;
  const bool waits = !mine_ && x->served && !x->answered;  // the host still has to answer it
  if (!mine_ && !x->answered && x->placed && !std::exchange(x->told_gone, true)) gone->push_back(x->in.id);
  if (waits) return;
  Unqueue(x);
  if (x->header.kind == kAnswer && x->complete()) undone_ -= std::min(undone_, x->m.bytes);
  if (mine_ && x->began && !lost_ && !over()) {
    auto note = std::make_unique<Outgoing>();
    note->header = {kCancel, 0, x->header.id, 0};
    Outgoing* o = note.get();
    notes_.emplace(o, std::move(note));
    Send(o);
  }
  auto it = exchanges_.find(x->header.id);
  Ending e = {std::move(it->second), ends_well ? nullptr : Ended(lost_ && !over() && !x->cancelled)};
  exchanges_.erase(it);
  ends->push_back(std::move(e));
}

void Pipe::Tend() {
  std::vector<Ending> ends;
  std::vector<uint64_t> gone;
  {
    std::lock_guard lock(mu_);
    if (over() && fd_ >= 0) Lose();
    if (!out_.empty()) WriteAll();
    if (look_.empty() && !look_at_all_) return;
    std::vector<uint64_t> ids = std::exchange(look_, {});
    if (std::exchange(look_at_all_, false)) {
      ids.clear();
      for (const auto& [id, x] : exchanges_) ids.push_back(id);
    }
    for (uint64_t id : ids) {
      if (Exchange* x = Find(id)) TendOne(x, &ends, &gone);
    }
  }
  for (uint64_t id : gone) config_.gone(config_.arg, id);
  for (Ending& e : ends) {
    if (e.exchange->m.done) {
      e.exchange->m.done(e.exchange->m.arg, e.why);
    } else {
      (void)FromC(e.why);  // a request that was never served: there is nobody to tell
    }
  }
}

// Waits until there may be work; with `socket`, also until the other side rings. Releases the lock
// meanwhile.
Pipe::Found Pipe::Wait(std::unique_lock<std::mutex>* lock, int wake, int64_t ns, bool socket) {
  socket = socket && fd_ >= 0 && !lost_;
  if (socket) {
    const bool empty = in_->Sleep();
    const bool no_room = out_.empty() || ring_->WaitForRoom();
    if (!empty || !no_room) return kPackets;
  }
  pollfd p[2] = {{wake, POLLIN, 0}, {socket ? fd_ : -1, POLLIN, 0}};
  lock->unlock();
  const timespec time = {ns / 1'000'000'000, ns % 1'000'000'000};
  (void)ppoll(p, 2, ns < 0 ? nullptr : &time, nullptr);
  if (p[0].revents) Silence(wake);
  lock->lock();
  return p[1].revents ? kSocket : kNothing;
}

void Pipe::Work() {
  LeaveSignalsToTheProgram();
  int64_t usual_gap = kSpin;  // approximate time from an idle ring to the next packet
  std::unique_lock lock(mu_);
  for (;;) {
    const int64_t rests = last_lent_ + kRest - Now();
    if (lent_ || (!asked_ && rests > 0)) {
      resting_ = lent_;
      Wait(&lock, own_wake_, lent_ ? -1 : rests, false);
      resting_ = false;
      continue;
    }
    asked_ = false;
    working_ = true;
    holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    lock.unlock();
    Tend();
    lock.lock();
    if (closing_ && exchanges_.empty()) return;
    const bool more = look_at_all_ || asked_ || !look_.empty();
    const int64_t done = Now();
    Found found = kNothing;
    if (!more && !mine_ && !lost_ && out_.empty() && usual_gap < kSpin && MaySpin()) {
      lock.unlock();
      if (Spin(done + kSpin)) found = kPackets;
      lock.lock();
    }
    working_ = false;
    holder_.store({}, std::memory_order_relaxed);
    if (more) continue;
    if (found == kNothing) {
      at_socket_ = true;
      found = Wait(&lock, own_wake_, -1, true);
      at_socket_ = false;
      if (lent_ || found == kNothing) continue;
      in_->Awake();
    }
    working_ = true;
    holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    lock.unlock();
    usual_gap += (std::min(Now() - done, 4 * kSpin) - usual_gap) / 4;
    ReadWhat(found);
    lock.lock();
  }
}

bool Pipe::Poll(uint64_t ns, uint32_t (*over_for)(void*), void* arg) {
  std::unique_lock lock(mu_);
  if (lent_ || working_ || over()) return false;
  lent_ = true;
  if (in_) in_->Awake();  // also if the own thread sleeps: the lent thread looks
  holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  const int64_t began = Now(), until = began + int64_t(std::min<uint64_t>(ns, INT64_MAX / 4));
  const int64_t spins_until = MaySpin() ? began + kSpin : 0;
  for (;;) {
    lock.unlock();
    const bool enough = over_for(arg) != 0;
    if (!enough) Tend();
    lock.lock();
    const int64_t now = Now(), left = until - now;
    if (enough || left <= 0) break;
    if (look_at_all_ || !look_.empty()) continue;
    if (now < spins_until && in_ && !lost_ && out_.empty()) {
      lock.unlock();
      if (in_->ready()) {
        Read();
      } else if (now > began + kAlone) {
        std::this_thread::yield();
      }
      lock.lock();
      continue;
    }
    const Found found = Wait(&lock, lent_wake_, left, true);
    if (found == kNothing) continue;
    in_->Awake();
    lock.unlock();
    ReadWhat(found);
    lock.lock();
  }
  lent_ = false;
  last_lent_ = Now();
  holder_.store({}, std::memory_order_relaxed);
  if (!look_.empty() || !out_.empty() || over() || lost_) asked_ = true;
  if (at_socket_ && in_ && !in_->Sleep()) asked_ = true;  // the own thread is to be rung again
  if (resting_ || asked_) Ring(own_wake_);
  return true;
}

}  // namespace thalweg::distributed
