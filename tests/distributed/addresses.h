// Addresses for the tasks of tests, over the transport that a test is compiled for: TRANSPORT, its file, and SCHEME, "unix" or "grpc".
#pragma once
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

// A port of the loopback interface that was free a moment ago. The kernel gives others out before it gives one again.
inline int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    throw std::runtime_error("no free port");
  close(fd);
  return ntohs(at.sin_port);
}

// name: one that no other process uses.
inline std::string NewAddress(const std::string& name) {
  return std::strcmp(SCHEME, "grpc") == 0 ? "grpc:127.0.0.1:" + std::to_string(FreePort()) : SCHEME ":" + name;
}

// A connection to who listens at the address, by hand. -1: errno says why not.
inline int ConnectByHand(const std::string& address) {
  sockaddr_storage to = {};
  socklen_t size;
  const std::string rest = address.substr(address.find(':') + 1);
  const bool tcp = address.substr(0, 5) == "grpc:";
  if (tcp) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(uint16_t(std::stoi(rest.substr(rest.find(':') + 1))));
    std::memcpy(&to, &at, size = sizeof at);
  } else {
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    rest.copy(at.sun_path + 1, rest.size());
    std::memcpy(&to, &at, sizeof at);
    size = socklen_t(sizeof at.sun_family + 1 + rest.size());
  }
  const int fd = socket(to.ss_family, (tcp ? SOCK_STREAM : SOCK_SEQPACKET) | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), size) == 0) return fd;
  close(fd);
  return -1;
}
