#include "front.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "../common/thread.h"
#include "own_user.h"
#include "watch.h"

namespace thalweg::grpc_transport {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kBacklog = 4096;
constexpr int kOwnBacklog = 128;                   // several processes may queue here, so it is short; a process that finds it full waits
constexpr int kAtOnce = 64;                        // connections of a socket, before other sockets have their turn
constexpr auto kLook = 1000ms;                     // between two checks of all sockets
constexpr auto kDeadline = 10s;                    // from a connection to its first admitted stream
constexpr auto kProbes = 2000ms, kHears = 2000ms;  // idle time before a probe; time for the probe to arrive
constexpr auto kFreed = 200ms;                     // time in which ended connections release their descriptors
constexpr auto kLongest = 300'000ms;               // between two vain replacements of a socket
constexpr uint64_t kDescriptors = 65536;

int Reserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

void Set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

// Closes the connection so that nothing of it remains here, not even a TCP state.
void Refuse(int fd) {
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
}

bool Same(const SocketAddress& a, const SocketAddress& b) {
  if (a.bytes.ss_family == AF_UNIX) return a.size == b.size && std::memcmp(&a.bytes, &b.bytes, a.size) == 0;
  return TextOf(a) == TextOf(b);
}

bool IsUnix(const SocketAddress& a) { return a.bytes.ss_family == AF_UNIX; }

std::string NameOf(const SocketAddress& a) {
  if (!IsUnix(a)) return TextOf(a);
  const auto* un = reinterpret_cast<const sockaddr_un*>(&a.bytes);
  return "@" + std::string(un->sun_path + 1, size_t(a.size) - offsetof(sockaddr_un, sun_path) - 1);
}

}  // namespace

uint64_t RaiseDescriptors() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1024;
  const rlim_t most = std::min<rlim_t>(files.rlim_max, kDescriptors);
  if (files.rlim_cur >= most) return files.rlim_cur;
  const rlimit raised = {most, files.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? most : files.rlim_cur;
}

Front::Front(std::shared_ptr<Log> log, Lets lets, std::function<void(int fd)> take)
    : log_(std::move(log)), lets_(lets), take_(std::move(take)), arrivals_(Arrivals::LimitsFor(RaiseDescriptors())) {
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  reserve_ = Reserve();
  if (wake_ >= 0 && reserve_ >= 0) return;
  const int error = errno;
  if (wake_ >= 0) close(wake_);
  throw std::system_error(error, std::generic_category(), "cannot listen");
}

Front::~Front() {
  Stop();
  CloseDoors();
  close(wake_);
  if (reserve_ >= 0) close(reserve_);
}

// ---- Sockets that listen ----

int Front::NewSocket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || family == AF_UNIX) return fd;
  Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // accepted sockets inherit it
  return fd;
}

// Returns NULL on failure, with the reason in *fault.
Front::Door* Front::Open(const SocketAddress& at, Fault* fault) {
  const int fd = NewSocket(at.bytes.ss_family);
  if (fd >= 0 && at.bytes.ss_family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !IsWildcard(at));
  if (fd < 0 || bind(fd, at.get(), at.size) != 0 || listen(fd, at.bytes.ss_family == AF_UNIX ? kOwnBacklog : kBacklog) != 0) {
    *fault = {std::strerror(errno), errno == EADDRINUSE};
    if (fd >= 0) close(fd);
    return nullptr;
  }
  Door& door = doors_.emplace_back();
  door.at = at;
  door.fd = fd;
  door.pause = kProbes;
  door.at.size = sizeof door.at.bytes;
  getsockname(fd, door.at.get(), &door.at.size);
  return &door;
}

void Front::CloseDoors() {
  for (Door& door : doors_) {
    if (door.fd >= 0) close(door.fd);
    EndProbe(&door);
  }
  doors_.clear();
}

// Opens the Unix socket first: a process that finds the port open then finds the Unix socket, too.
bool Front::ListenOnce(const std::vector<SocketAddress>& all, bool own_user, int* out_port, Fault* fault) {
  *out_port = PortOf(all[0]);
  bool any = false;
  for (SocketAddress at : all) {
    SetPort(&at, *out_port);
    Fault f;
    if (own_user && *out_port != 0 && !Open(OwnUserSocket(at), &f)) {
      *fault = {"the socket beside it, " + NameOf(OwnUserSocket(at)) + ": " + f.what, f.taken};
      return false;
    }
    const Door* tcp = Open(at, &f);
    if (!tcp) {
      *fault = f;
      if (f.taken) return false;
      continue;  // localhost may have a family that this machine does not support
    }
    any = true;
    const bool chosen = std::exchange(*out_port, PortOf(tcp->at)) == 0;
    if (own_user && chosen && !Open(OwnUserSocket(tcp->at), &f)) {
      *fault = {"the socket beside it, " + NameOf(OwnUserSocket(tcp->at)) + ": " + f.what, f.taken};
      return false;
    }
  }
  return any;
}

std::string Front::Listen(const HostPort& at, bool own_user, int* out_port) {
  constexpr int kTries = 16;  // if the kernel chooses the port
  std::string why;
  std::vector<SocketAddress> all = AddressesOf(at, &why);
  if (all.empty()) return why;
  // The wildcard address means both families, if both exist.
  if (IsWildcard(all[0])) {
    std::vector<SocketAddress> both = AddressesOf({"::", at.port}, &why);
    Fault fault;
    if (!both.empty() && ListenOnce(both, own_user, out_port, &fault)) return "";
    CloseDoors();
    if (fault.taken) return fault.what;
  }
  Fault fault;
  for (int i = 0; i < kTries; ++i) {
    if (ListenOnce(all, own_user, out_port, &fault)) return "";
    CloseDoors();
    if (at.port != 0 || !fault.taken) break;
  }
  return fault.what;
}

void Front::Start() {
  const NoSignals quiet;
  looked_ = steady_clock::now();
  for (Door& door : doors_) door.next = looked_ + kProbes;
  thread_ = common::StartThread([this] { Run(); });
}

void Front::Stop() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
}

// ---- Incoming connections ----

bool Front::Stream(const std::string& from) {
  std::lock_guard lock(mu_);
  return arrivals_.Stream(from);
}

void Front::LetIn(const std::string& from) {
  std::lock_guard lock(mu_);
  arrivals_.LetIn(from);
}

void Front::Run() {
  for (;;) {
    {
      std::lock_guard lock(mu_);
      if (stop_) return;
    }
    try {
      Turn();
    } catch (const std::exception&) {  // no memory for now: the connection is still in the kernel's queue, or was closed
      std::this_thread::sleep_for(10ms);
    }
  }
}

void Front::Turn() {
  std::vector<pollfd> all = {{wake_, POLLIN, 0}};
  for (Door& door : doors_) all.push_back({door.fd, POLLIN, 0});  // poll ignores -1
  const auto before = steady_clock::now();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(looked_ + kLook - before);
  poll(all.data(), all.size(), int(std::clamp<int64_t>(left.count() + 1, 0, kLook.count() + 1)));
  auto now = steady_clock::now();
  size_t i = 0;
  for (Door& door : doors_) {
    const short what = all[++i].revents;
    if (what & (POLLERR | POLLHUP | POLLNVAL)) {
      Reopen(&door, "it listens no longer", now);
    } else if (what & POLLIN) {
      Accept(&door);
    }
  }
  if (now - looked_ < kLook) return;
  // If this process was stopped, the peers could not prove themselves, so they are not late.
  const auto stood = now - looked_ > 3 * kLook ? now - looked_ : std::chrono::nanoseconds(0);
  looked_ = now;
  size_t ended = 0;
  {
    std::lock_guard lock(mu_);
    if (stood.count() == 0) ended = arrivals_.EndOlder(now - kDeadline);
  }
  if (ended)
    log_->Warn(std::to_string(ended) + " connections were ended that in " + std::to_string(kDeadline / 1s) + " s had nobody let in");
  if (reserve_ < 0) reserve_ = Reserve();
  for (Door& door : doors_) LookAfter(&door, now);
}

void Front::Accept(Door* door) {
  for (int i = 0; i < kAtOnce; ++i) {
    SocketAddress from;
    from.size = sizeof from.bytes;
    const int fd = accept4(door->fd, from.get(), &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      door->heard = true;
      full_since_ = Time();
      Welcome(door, fd, from);
      continue;
    }
    switch (errno) {
      case EAGAIN: return;
      case EMFILE:
      case ENFILE:
        if (!NoDescriptor(door)) return;
        break;
      case ENOBUFS:
      case ENOMEM: std::this_thread::sleep_for(1ms); return;
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
      case EOPNOTSUPP: return Reopen(door, "it cannot be listened at: " + std::string(std::strerror(errno)), steady_clock::now());
      default: break;  // an error of the connection, which is gone
    }
  }
}

// If there is no descriptor left, a new connection waits in the kernel's queue for a moment: ended
// connections keep theirs until gRPC's threads have noticed. After that it is refused. Returns
// false if the caller should stop accepting for now.
bool Front::NoDescriptor(Door* door) {
  const auto now = steady_clock::now();
  if (full_since_ == Time()) full_since_ = now;
  if (now - full_since_ < kFreed) {
    std::this_thread::sleep_for(1ms);
    return false;
  }
  log_->Warn("a connection was turned away: this process has no file descriptor left; raise its limit (ulimit -n, LimitNOFILE)");
  if (reserve_ < 0) {
    std::this_thread::sleep_for(1ms);
    reserve_ = Reserve();
    return false;
  }
  close(std::exchange(reserve_, -1));
  const int fd = accept4(door->fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) Refuse(fd);
  reserve_ = Reserve();
  return fd >= 0;
}

void Front::Welcome(Door* door, int fd, const SocketAddress& from) {
  struct Closes {
    int fd;
    ~Closes() {
      if (fd >= 0) Refuse(fd);
    }
  } mine{fd};
  if (door->probe >= 0 && Same(from, door->probe_at)) return;
  if (IsUnix(door->at)) {
    if (!IsOwnUser(fd)) return log_->Warn("a process of another user was turned away: without `credentials` only this user's may come in");
  } else if (lets_ == Lets::kOwnUser) {
    return log_->Warn("'" + TextOf(from) + "' was turned away: without `credentials` processes of this user come in by " +
                      NameOf(OwnUserSocket(door->at)) + ", and nobody by the network; give `credentials`, or ask for `insecure`");
  } else {
    std::string why;
    {
      std::lock_guard lock(mu_);
      why = arrivals_.Add(fd, from, steady_clock::now());
    }
    if (!why.empty()) return log_->Warn("'" + TextOf(from) + "' was turned away: " + why);
  }
  take_(std::exchange(mine.fd, -1));
}

// ---- Probes ----

void Front::LookAfter(Door* door, Time now) {
  if (door->fd < 0) return Reopen(door, "it was not listened at", now);
  if (std::exchange(door->heard, false)) {
    EndProbe(door);
    door->pause = kProbes;
    door->next = now + kProbes;
  } else if (door->probe >= 0) {
    if (now - door->probed >= kHears) Reopen(door, "it does not hear who comes", now);
  } else if (now >= door->next) {
    Probe(door, now);
  }
}

void Front::EndProbe(Door* door) {
  if (door->probe >= 0) close(std::exchange(door->probe, -1));
}

// Connects to the front's own socket as other processes do. If a local resource is missing for
// that, this says nothing of the socket.
void Front::Probe(Door* door, Time now) {
  SocketAddress to = door->at;
  door->next = now + door->pause;
  const int fd = NewSocket(to.bytes.ss_family);
  if (fd < 0) return;
  if (IsUnix(to)) {
    const sa_family_t any_name = AF_UNIX;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&any_name), sizeof any_name) != 0) return (void)close(fd);
  } else if (IsWildcard(to)) {
    std::string why;
    const auto here = AddressesOf({to.bytes.ss_family == AF_INET ? "127.0.0.1" : "::1", PortOf(to)}, &why);
    if (here.empty()) return (void)close(fd);
    to = here[0];
  }
  const int made = connect(fd, to.get(), to.size), error = made == 0 ? 0 : errno;
  if (error == ECONNREFUSED) {
    close(fd);
    return Reopen(door, "nobody listens there", now);
  }
  if (error != 0 && error != EINPROGRESS && error != EAGAIN) return (void)close(fd);
  door->probe = fd;
  door->probed = now;
  door->probe_at.size = sizeof door->probe_at.bytes;
  getsockname(fd, door->probe_at.get(), &door->probe_at.size);
}

void Front::Reopen(Door* door, const std::string& why, Time now) {
  EndProbe(door);
  if (door->fd >= 0) close(std::exchange(door->fd, -1));
  Fault fault;
  const Door* fresh = Open(door->at, &fault);
  log_->Warn("'" + NameOf(door->at) + "' is listened at anew: " + why + (fresh ? "" : "; not yet: " + fault.what));
  if (fresh) {
    door->fd = fresh->fd;
    doors_.pop_back();
  }
  // If a replacement does not help, as behind a packet filter, it is repeated ever more rarely.
  door->next = now + door->pause;
  door->pause = std::min<std::chrono::milliseconds>(2 * door->pause, kLongest);
  door->heard = false;
}

}  // namespace thalweg::grpc_transport
