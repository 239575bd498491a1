// Addresses for the tasks of tests. They use the transport in the file that THALWEG_TEST_TRANSPORT
// names or, without it, the transport that a test is compiled for: TRANSPORT, the socket example,
// gRPC or UCX.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/support/free_port.h"

inline const std::string& Transport() {
  static const std::string file = [] {
    const char* named = std::getenv("THALWEG_TEST_TRANSPORT");
    return std::string(named ? named : TRANSPORT);
  }();
  return file;
}
inline bool OverGrpc() { return Transport().find("/libgrpc.so") != std::string::npos; }
inline bool OverUcx() { return Transport().find("/libucx.so") != std::string::npos; }
inline bool OverSockets() { return !OverGrpc() && !OverUcx(); }

// name: one that no other process uses.
inline std::string NewAddress(const std::string& name) {
  if (OverGrpc()) return "grpc:127.0.0.1:" + std::to_string(FreePort());
  return (OverUcx() ? "ucx:" : "unix:") + name;
}

// Opens a raw socket that listens at the address, or that is connected to the address. Returns -1
// on failure; errno gives the reason.
inline int SocketByHand(const std::string& address, bool listens) {
  sockaddr_storage at = {};
  socklen_t size;
  const std::string rest = address.substr(address.find(':') + 1);
  const bool tcp = address.starts_with("grpc:"), ucx = address.starts_with("ucx:");
  if (tcp) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(uint16_t(std::stoi(rest.substr(rest.find(':') + 1))));
    std::memcpy(&at, &in, size = sizeof in);
  } else {
    sockaddr_un un = {};
    un.sun_family = AF_UNIX;
    const std::string name = (ucx ? "thalweg.ucx." : "") + rest;  // plugins/ucx/place.h
    name.copy(un.sun_path + 1, sizeof un.sun_path - 1);
    std::memcpy(&at, &un, sizeof un);
    size = socklen_t(sizeof un.sun_family + 1 + name.size());
  }
  const int fd = socket(at.ss_family, (tcp || ucx ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const auto* to = reinterpret_cast<const sockaddr*>(&at);
  if (listens ? bind(fd, to, size) == 0 && listen(fd, 64) == 0 : connect(fd, to, size) == 0) return fd;
  close(fd);
  return -1;
}
// Opens the Unix socket beside an address "grpc:127.0.0.1:4000", through which processes of one
// user connect (plugins/grpc/own_user.h).
inline int OwnUserByHand(const std::string& address, bool listens) {
  const std::string name = "thalweg.grpc." + address.substr(address.find(':') + 1);
  sockaddr_un un = {};
  un.sun_family = AF_UNIX;
  name.copy(un.sun_path + 1, sizeof un.sun_path - 1);
  const auto size = socklen_t(sizeof un.sun_family + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* to = reinterpret_cast<const sockaddr*>(&un);
  if (listens ? bind(fd, to, size) == 0 && listen(fd, 64) == 0 : connect(fd, to, size) == 0) return fd;
  close(fd);
  return -1;
}
inline int ConnectByHand(const std::string& address) { return SocketByHand(address, false); }
inline int ListenByHand(const std::string& address) { return SocketByHand(address, true); }
// Connects to the address in the way of a process of the same user.
inline int ConnectAsOwnUser(const std::string& address) {
  const int own = address.starts_with("grpc:") ? OwnUserByHand(address, false) : -1;
  return own >= 0 ? own : ConnectByHand(address);
}
inline int ListenForOwnUser(const std::string& address) {
  return address.starts_with("grpc:") ? OwnUserByHand(address, true) : ListenByHand(address);
}
