#include "own_user.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/un.h>

namespace thalweg::grpc_transport {
namespace {

SocketAddress Named(const std::string& name) {
  SocketAddress a;
  auto* un = reinterpret_cast<sockaddr_un*>(&a.bytes);
  un->sun_family = AF_UNIX;
  const size_t n = name.copy(un->sun_path + 1, sizeof un->sun_path - 1);
  a.size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + n);
  return a;
}

// Returns the Unix sockets of that address and of the wildcard addresses, whose listeners can be
// reached here, too.
std::vector<SocketAddress> PlacesOf(const HostPort& at, std::string* why) {
  std::vector<SocketAddress> all;
  const std::string port = ":" + std::to_string(at.port);
  for (const SocketAddress& tcp : AddressesOf(at, why)) {
    all.push_back(OwnUserSocket(tcp));
    if (HostOf(tcp).find(':') == std::string::npos) all.push_back(Named("thalweg.grpc.0.0.0.0" + port));
  }
  all.push_back(Named("thalweg.grpc.[::]" + port));
  return all;
}

}  // namespace

SocketAddress OwnUserSocket(const SocketAddress& tcp) { return Named("thalweg.grpc." + TextOf(tcp)); }

bool IsOwnUser(int fd) {
  ucred who = {};
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

Met MeetOwnUser(const HostPort& at, int* out_fd, std::string* why) {
  Met met = Met::kNobody;
  for (const SocketAddress& place : PlacesOf(at, why)) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      *why = std::strerror(errno);
      return Met::kFailed;
    }
    // If many processes connect at once, the queue may be full.
    const timeval patience = {2, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int made;
    while ((made = connect(fd, place.get(), place.size)) != 0 && errno == EINTR) continue;
    const int error = errno;
    if (made == 0 && IsOwnUser(fd)) {
      fcntl(fd, F_SETFL, O_NONBLOCK);
      *out_fd = fd;
      return Met::kYes;
    }
    close(fd);
    if (made == 0) {
      met = Met::kOther;
    } else if (error != ECONNREFUSED) {
      *why = std::strerror(error);
      return Met::kFailed;
    }
  }
  return met;
}

bool SomebodyListens(const HostPort& at) {
  std::string why;
  for (const SocketAddress& place : AddressesOf(at, &why)) {
    const int fd = socket(place.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const bool made = fd >= 0 && connect(fd, place.get(), place.size) == 0;
    if (fd >= 0) close(fd);
    if (made) return true;
  }
  return false;
}

}  // namespace thalweg::grpc_transport
