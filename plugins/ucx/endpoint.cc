#include "endpoint.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "../common/quoted.h"
#include "../common/setting.h"
#include "../common/thread.h"
#include "place.h"

namespace thalweg::ucx_transport {
namespace {

constexpr size_t kConnections = 1024;             // that others made
constexpr size_t kMeetings = 128;                 // of those, the ones that have not been admitted
constexpr std::chrono::milliseconds kLook(1000);  // the longest sleep: for the time limits of connections
constexpr std::chrono::milliseconds kGlance(1);   // a driver that always has work looks at the sockets so often
constexpr std::chrono::microseconds kRest(400);   // a thread that was lent is soon lent again

// Which UCX transports an endpoint uses. Within the machine these are only the ones whose memory
// belongs to the user: no port is opened, and no other user can reach them.
//
// shares: UCX may use shared memory. A peer then names the process and the memory that this one reads or
// maps, so only peers that belong to the user, or know the token, may do that.
std::string Transports(bool network, bool shares) {
  if (!shares) return "self,tcp,ib";
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  // Without the right to read another process, cross-memory attach would fail at the first body.
  const bool reads = scope == 0 || (scope < 3 && geteuid() == 0);
  return std::string("self,posix") + (reads ? ",cma" : "") + (network ? ",tcp,ib" : "");
}

// The kernel ends a connection whose host has been silent for ten seconds.
void KeepAlive(int fd) {
  const int on = 1, idle = 4, interval = 2, count = 3, most_ms = 10000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool IsTcp(int fd) {
  int family = 0;
  socklen_t size = sizeof family;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family != AF_UNIX;
}

// A connection is aligned, so that the low bits of its address are free for the source.
uint64_t TagOf(Connection* c, Endpoint::Source source) { return reinterpret_cast<uintptr_t>(c) | source; }
static_assert(alignof(Connection) >= 4);

}  // namespace

// ---- starting ----

Endpoint::Endpoint(const tw_host* h, const tw_endpoint_config* c)
    : host_(h),
      config_(*c),
      address_(c->address, c->address_len),
      credential_(c->credential, c->credential_len),
      open_(c->flags & TW_ENDPOINT_OPEN),
      calls_only_(c->flags & TW_ENDPOINT_CALLS) {}

tw_status* Endpoint::Failure(uint32_t code, const std::string& text) const {
  const std::string whole = "ucx transport: " + text;
  return host_->status->make(host_, code, whole.data(), whole.size(), nullptr);
}

tw_status* Endpoint::Forked() const {
  if (here()) return nullptr;
  return Failure(TW_FAILED_PRECONDITION, "this process was forked and has no connections; start a runtime of its own after the fork");
}

tw_status* Endpoint::Listen(const tw_host* h, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  std::unique_ptr<Endpoint> e(new Endpoint(h, c));
  TW_TRY(e->Start(bound));
  *out_endpoint = e.release();
  return nullptr;
}

// Decides who is let in. UCX neither encrypts nor authenticates, so it leaves the machine only if the
// program says that the network is trusted.
tw_status* Endpoint::Admission() {
  const bool trusted = common::NumberSetting(host_, "trusted_network", 0, 0, 1) == 1;
  spin_ = std::chrono::microseconds(common::NumberSetting(host_, "spin_us", 0, 0, 1000000));
  network_ = open_ || trusted;
  if (!network_ && (!credential_.empty() || LeadsOut(address_))) {
    return Failure(TW_PERMISSION_DENIED,
                   common::Quoted(address_) +
                       ": UCX neither encrypts nor authenticates, so only processes of this user on this machine are let "
                       "in; use a loopback address without credentials, or the transport grpc, or set "
                       "plugin.org.thalweg.ucx.trusted_network=1 if everybody on the network may read and send what he likes");
  }
  if (network_ && !open_ && credential_.empty()) {
    return Failure(TW_PERMISSION_DENIED, common::Quoted(address_) +
                                             ": on a trusted network members show that they know the token of the cluster; set "
                                             "`credentials`, or the option `insecure` to let everybody in");
  }
  if (credential_.empty()) return nullptr;
  const std::string wrong = ReadToken(credential_, &token_);
  return wrong.empty() ? nullptr : Failure(TW_INVALID_ARGUMENT, wrong);
}

tw_status* Endpoint::Start(tw_sink* bound) {
  TW_TRY(Admission());
  const bool shares = common::NumberSetting(host_, "shared_memory", 1, 0, 1) == 1;
  if (!shares && !network_) {
    return Failure(TW_INVALID_ARGUMENT,
                   "without shared_memory there is no way between processes of this machine; it may be 0 on a "
                   "trusted network only");
  }
  std::string why;
  const Library* ucx = LoadUcx(&why);
  if (!ucx) return Failure(TW_UNAVAILABLE, why);
  const bool knows_peers = !network_ || !token_.empty();
  // An endpoint that only this machine reaches opens no port of UCX to the network.
  const char* const devices = network_ && !calls_only_ && !LeadsOut(address_) ? "lo" : "";
  context_ = Context::Create(ucx, Transports(network_, shares && knows_peers), devices, &why);
  if (!context_) return Failure(TW_UNAVAILABLE, why);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || bell_ < 0) return Failure(TW_RESOURCE_EXHAUSTED, std::string("no descriptors: ") + std::strerror(errno));
  Watch(bell_, nullptr, kBell, false);
  if (!calls_only_) {
    Meeting m;
    const Found found = ListenAt(address_, network_, &m);
    if (found != Found::kYes)
      return Failure(found == Found::kTaken ? TW_UNAVAILABLE : TW_INVALID_ARGUMENT, common::Quoted(address_) + " " + m.why);
    listener_ = m.fd;
    Watch(listener_, nullptr, kListener, false);
    TW_TRY(bound->put(bound, m.bound.data(), m.bound.size()));
  }
  // The thread takes no signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = common::StartThread([this] { Drive(); });
  } catch (const std::exception& e) {
    why = e.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return why.empty() ? nullptr : Failure(TW_RESOURCE_EXHAUSTED, "no thread: " + why);
}

Endpoint::~Endpoint() {
  all_.clear();
  for (const int fd : {listener_, bell_, epoll_}) {
    if (fd >= 0) close(fd);
  }
}

// ---- entries ----

// A driver that is not asleep yet makes another turn before it sleeps: it may have looked already at what
// the entry has changed.
void Endpoint::Ring() {
  rung_ = true;
  if (!sleeping_) return;
  const uint64_t one = 1;
  (void)!write(bell_, &one, sizeof one);
}

void Endpoint::Queue(Call* c) {
  if (c->queued) return;
  c->queued = true;
  c->next = nullptr;
  (last_ ? last_->next : first_) = c;
  last_ = c;
}

tw_status* Endpoint::Connect(const std::string& address, void** out_peer) {
  if (!network_ && LeadsOut(address)) {
    return Failure(TW_PERMISSION_DENIED, common::Quoted(address) +
                                             " may be another machine, and UCX neither encrypts nor authenticates; set "
                                             "plugin.org.thalweg.ucx.trusted_network=1, or use the transport grpc");
  }
  Meeting m;
  const Found found = ConnectTo(address, network_, &m);
  if (found != Found::kYes) {
    const uint32_t code = found == Found::kNobody ? TW_UNAVAILABLE : found == Found::kOther ? TW_PERMISSION_DENIED : TW_INVALID_ARGUMENT;
    return Failure(code, common::Quoted(address) + " " + m.why);
  }
  if (IsTcp(m.fd)) KeepAlive(m.fd);
  std::lock_guard l(mu_);
  auto c = std::make_unique<Connection>(this, m.fd, true, address);
  *out_peer = c.get();
  all_.push_back(std::move(c));
  Ring();
  return nullptr;
}

tw_status* Endpoint::CallPeer(Connection* c, uint64_t id, const tw_message* m) {
  std::lock_guard l(mu_);
  TW_TRY(c->Start(id, m));
  Ring();
  return nullptr;
}

void Endpoint::Cancel(Connection* c, uint64_t id) {
  std::lock_guard l(mu_);
  c->Cancel(id);
  Ring();
}

void Endpoint::Answer(Call* c, const tw_message* m) {
  std::lock_guard l(mu_);
  c->connection->Answer(c, m);
  Ring();
}

void Endpoint::ClosePeer(Connection* c) {
  std::lock_guard l(mu_);
  c->Close();
  Ring();
}

void Endpoint::Close() {
  {
    std::lock_guard l(mu_);
    closing_ = true;
    Ring();
    changed_.notify_all();
  }
  thread_.join();
}

void Endpoint::Wake() {
  std::lock_guard l(mu_);
  Ring();
}

// ---- driving ----

// Lends a thread. The own thread steps aside, and rests a little longer than the loan.
uint32_t Endpoint::Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  constexpr uint64_t kMost = uint64_t{3600} * 1'000'000'000;
  const auto until = Clock::now() + std::chrono::nanoseconds(std::min(ns, kMost));
  Lock l(mu_);
  if (lent_ || closing_) return 0;
  lent_ = true;
  while (driven_) {
    Ring();
    changed_.wait(l);
  }
  driven_ = true;
  const auto asks = [&] {
    l.unlock();
    const bool is_over = over(arg) != 0;
    l.lock();
    return is_over;
  };
  while (!closing_ && !asks() && Clock::now() < until) Turn(l, until);
  driven_ = lent_ = false;
  rests_until_ = Clock::now() + kRest;
  changed_.notify_all();
  return 1;
}

void Endpoint::Drive() {
  Lock l(mu_);
  for (;;) {
    while (!closing_ && (lent_ || Clock::now() < rests_until_)) {
      if (lent_) {
        changed_.wait(l);
      } else {
        changed_.wait_until(l, rests_until_);
      }
    }
    while (driven_) changed_.wait(l);
    driven_ = true;
    const bool goes_on = Turn(l, Clock::now() + kLook);
    driven_ = false;
    if (lent_) changed_.notify_all();
    if (!goes_on) return;
  }
}

bool Endpoint::RunQueue(Lock& l) {
  const bool any = first_ != nullptr;
  // Calls that are queued meanwhile wait for the next turn, so that the workers are heard in between.
  Call* const end = last_;
  while (first_) {
    Call* c = first_;
    const bool is_last = c == end;
    first_ = c->next;
    if (!first_) last_ = nullptr;
    c->queued = false;
    c->connection->Step(l, c);
    if (is_last) break;
  }
  return any;
}

bool Endpoint::TendAll(Lock& l) {
  bool busy = false;
  const bool spins = spin_.count() > 0 && Clock::now() < spins_until_;
  for (size_t i = 0; i < all_.size(); ++i) busy |= all_[i]->Tend(l, spins);  // entries may add some meanwhile
  std::erase_if(all_, [](const auto& c) { return c->over(); });
  return busy;
}

bool Endpoint::Turn(Lock& l, Clock::time_point until) {
  bool busy = RunQueue(l);
  busy |= TendAll(l);
  if (closing_ && all_.empty()) return false;
  busy |= first_ != nullptr || std::exchange(rung_, false);
  if (busy && Clock::now() < glances_at_) return true;
  Sleep(l, busy ? Clock::time_point() : until);
  return true;
}

void Endpoint::Sleep(Lock& l, Clock::time_point until) {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  const auto most = std::min(until, Clock::now() + kLook);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(most - Clock::now()).count();
  sleeping_ = true;
  l.unlock();
  const int n = epoll_wait(epoll_, events, kEvents, int(std::max<long>(ms, 0)));
  l.lock();
  sleeping_ = false;
  for (int i = 0; i < n; ++i) {
    const auto source = Source(events[i].data.u64 & 3);
    auto* c = reinterpret_cast<Connection*>(events[i].data.u64 & ~uint64_t{3});
    uint64_t rings;
    if (source == kBell) (void)!read(bell_, &rings, sizeof rings);
    if (source == kListener) Accept();
    if (source == kSocket) c->OnSocket(l, events[i].events);
    if (source == kWork) c->OnWork();
  }
  if (n > 0) KeepAwake();
  glances_at_ = Clock::now() + kGlance;
}

void Endpoint::KeepAwake() {
  if (spin_.count() > 0) spins_until_ = Clock::now() + spin_;
}

void Endpoint::Accept() {
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage from = {};
    socklen_t size = sizeof from;
    const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) usleep(1000);  // the queue stays readable: do not spin
    if (fd < 0) return;
    const bool tcp = IsTcp(fd);
    const auto others = std::count_if(all_.begin(), all_.end(), [](const auto& c) { return !c->mine(); });
    const auto meet = std::count_if(all_.begin(), all_.end(), [](const auto& c) { return !c->mine() && c->meets(); });
    const bool admitted = !closing_ && (tcp || IsOwnUser(fd)) && size_t(others) < kConnections && size_t(meet) < kMeetings;
    if (!admitted) {
      close(fd);
      continue;
    }
    if (tcp) KeepAlive(fd);
    try {
      all_.reserve(all_.size() + 1);
      all_.push_back(std::make_unique<Connection>(this, fd, false, tcp ? "somebody on the network" : "a process of this user"));
    } catch (const std::exception&) {
      close(fd);  // no memory: the caller notices
    }
  }
}

// ---- epoll ----

void Endpoint::Watch(int fd, Connection* c, Source source, bool writes) {
  epoll_event e = {};
  e.events = EPOLLIN | (writes ? EPOLLOUT : 0u);
  e.data.u64 = TagOf(c, source);
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);
}

void Endpoint::Rewatch(int fd, Connection* c, Source source, bool writes) {
  epoll_event e = {};
  e.events = EPOLLIN | (writes ? EPOLLOUT : 0u);
  e.data.u64 = TagOf(c, source);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &e);
}

void Endpoint::Unwatch(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace thalweg::ucx_transport
