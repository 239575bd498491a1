#include "place.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../common/lookup.h"

namespace thalweg::ucx_transport {
namespace {

constexpr std::chrono::seconds kLookUp(5);
constexpr char kPrefix[] = "thalweg.ucx.";
constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - sizeof kPrefix;
constexpr int kQueue = 128;

struct HostPort {
  std::string host;
  int port = -1;  // -1: the text is a name
};

HostPort Parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort at;
  if (colon == address.npos || colon == 0) return at;
  int port = -1;
  const char *first = address.data() + colon + 1, *last = address.data() + address.size();
  const auto [end, error] = std::from_chars(first, last, port);
  if (first == last || error != std::errc() || end != last || port < 0 || port > 65535) return at;
  at.host = address.substr(0, colon);
  if (at.host.size() > 2 && at.host.front() == '[' && at.host.back() == ']') at.host = at.host.substr(1, at.host.size() - 2);
  if (at.host == "localhost") at.host = "127.0.0.1";
  at.port = port;
  return at;
}

bool IsLoopback(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string Text(const std::string& host, int port) {
  return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

Found Failed(Meeting* out, std::string why) {
  if (out->fd >= 0) close(out->fd);
  out->fd = -1;
  out->why = std::move(why);
  return Found::kFailed;
}

socklen_t Name(const std::string& name, sockaddr_un* to) {
  *to = {};
  to->sun_family = AF_UNIX;
  const std::string whole = kPrefix + name;
  const size_t n = whole.copy(to->sun_path + 1, sizeof to->sun_path - 1);
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + n);
}

std::string WrongName(const std::string& name) {
  if (name.size() <= kLongest && name.find_first_of(std::string("\0 \n", 3)) == name.npos) return "";
  return "is no address; give a name of at most " + std::to_string(kLongest) + " bytes without spaces, or host:port";
}

int NewSocket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// A port in use is retried if it was ours to choose.
Found ListenByName(const HostPort& at, const std::string& address, Meeting* out) {
  std::random_device random;
  const bool chooses = address.empty() || at.port == 0;
  for (int tries = 0;; ++tries) {
    std::string name = at.port > 0 ? Text(at.host, at.port) : address;
    if (address.empty()) name = "p" + std::to_string(getpid()) + "-" + std::to_string(random());
    if (at.port == 0) name = Text(at.host, 20000 + int(random() % 40000));
    if (std::string wrong = WrongName(name); !wrong.empty()) return Failed(out, std::move(wrong));
    sockaddr_un un;
    const socklen_t size = Name(name, &un);
    out->fd = NewSocket(AF_UNIX);
    if (out->fd >= 0 && bind(out->fd, reinterpret_cast<sockaddr*>(&un), size) == 0 && listen(out->fd, kQueue) == 0) {
      out->bound = name;
      return Found::kYes;
    }
    const int error = errno;
    Failed(out, std::strerror(error));
    if (error != EADDRINUSE) return Found::kFailed;
    if (!chooses || tries == 1000) return Found::kTaken;
  }
}

}  // namespace

bool LeadsOut(const std::string& address) {
  const HostPort at = Parse(address);
  return at.port >= 0 && !IsLoopback(at.host);
}

Found ListenAt(const std::string& address, bool network, Meeting* out) {
  const HostPort at = Parse(address);
  if (at.port < 0 || !network) return ListenByName(at, address, out);
  int error = 0;
  const auto found = common::Lookup(at.host, std::to_string(at.port), AI_NUMERICSERV | AI_PASSIVE, kLookUp, &error);
  if (!found) return Failed(out, std::string("its host cannot be found: ") + gai_strerror(error));
  const int one = 1;
  out->fd = NewSocket(found->ai_family);
  if (out->fd < 0) return Failed(out, std::strerror(errno));
  setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (bind(out->fd, found->ai_addr, found->ai_addrlen) != 0 || listen(out->fd, kQueue) != 0 ||
      getsockname(out->fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const int why = errno;
    Failed(out, std::strerror(why));
    return why == EADDRINUSE ? Found::kTaken : Found::kFailed;
  }
  const in_port_t port =
      bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  out->bound = Text(at.host, ntohs(port));
  return Found::kYes;
}

Found ConnectTo(const std::string& address, bool network, Meeting* out) {
  const HostPort at = Parse(address);
  if (at.port < 0 || !network) {
    const std::string name = at.port < 0 ? address : Text(at.host, at.port);
    if (std::string wrong = name.empty() ? "is empty" : WrongName(name); !wrong.empty()) return Failed(out, std::move(wrong));
    sockaddr_un un;
    const socklen_t size = Name(name, &un);
    out->fd = NewSocket(AF_UNIX);
    if (out->fd >= 0 && connect(out->fd, reinterpret_cast<sockaddr*>(&un), size) == 0) {
      if (IsOwnUser(out->fd)) return Found::kYes;
      Failed(out, "belongs to another user");
      return Found::kOther;
    }
    const int error = errno;
    Failed(out, error == EAGAIN ? "has too many callers that wait" : std::strerror(error));
    return error == ECONNREFUSED || error == EAGAIN ? Found::kNobody : Found::kFailed;
  }
  int error = 0;
  const auto found = common::Lookup(at.host, std::to_string(at.port), AI_NUMERICSERV, kLookUp, &error);
  if (!found) {
    Failed(out, std::string("its host cannot be found: ") + gai_strerror(error));
    return error == EAI_AGAIN ? Found::kNobody : Found::kFailed;
  }
  out->fd = NewSocket(found->ai_family);
  if (out->fd < 0) return Failed(out, std::strerror(errno));
  if (connect(out->fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS) return Found::kYes;
  Failed(out, std::strerror(errno));
  return Found::kNobody;
}

bool IsOwnUser(int fd) {
  ucred who = {};
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

}  // namespace thalweg::ucx_transport
