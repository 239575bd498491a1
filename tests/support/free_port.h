// Returns a free port of the loopback interface for a test. Another process might get a port of the
// ephemeral range before the test listens there, since outgoing connections use that range;
// therefore the port is from below that range. No other test gets it while this process lives: each
// test holds a socket name for each of its ports, as support/free_port.py does. Threads: any.
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

// Returns true if no other process holds the port; this process then keeps it.
inline bool HoldPort(int port) {
  const std::string name = "thalweg-test-port-" + std::to_string(port);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  name.copy(at.sun_path + 1, sizeof at.sun_path - 1);  // an abstract name, which ends with the process
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0) return true;
  close(fd);
  return false;
}

inline int FreePort() {
  constexpr int kFirst = 12000, kCount = 20000;
  static std::atomic<int> next{getpid() * 37};
  for (int tries = 0; tries < kCount; ++tries) {
    const int port = kFirst + int(unsigned(next++) % kCount);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(uint16_t(port));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_free = bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    close(fd);
    if (is_free && HoldPort(port)) return port;
  }
  throw std::runtime_error("no free port");
}
