#include "own_host.h"

#include <ifaddrs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace thalweg::cli {
namespace {

// Returns "" for a family without such addresses, and for IPv6 addresses of the link alone.
std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address && address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address && address->sa_family == AF_INET6) {
    const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&ip)) inet_ntop(AF_INET6, &ip, text, sizeof text);
  }
  return text;
}

// Returns our address on the default route; "" if there is none. Connecting a datagram socket looks
// the route up and sends nothing.
std::string DefaultAddress() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_in to = {}, from = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);  // an address for documentation: no host has it
  socklen_t size = sizeof from;
  const bool good = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
                    getsockname(fd, reinterpret_cast<sockaddr*>(&from), &size) == 0 && from.sin_addr.s_addr != htonl(INADDR_ANY);
  close(fd);
  return good ? AddressText(reinterpret_cast<sockaddr*>(&from)) : "";
}

}  // namespace

std::string OwnAddress(const std::string& interface) {
  if (interface.empty()) {
    if (std::string found = DefaultAddress(); !found.empty()) return found;
  }
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) throw std::runtime_error(std::string("cannot list the network interfaces: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, freeifaddrs);
  std::string names, second;  // second: an IPv6 address, which is taken where there is no other
  for (const ifaddrs* i = raw; i; i = i->ifa_next) {
    const std::string text = AddressText(i->ifa_addr);
    if (text.empty()) continue;
    names += (names.empty() ? "" : ", ") + std::string(i->ifa_name) + " (" + text + ")";
    const bool wanted = interface.empty() ? (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) : interface == i->ifa_name;
    if (wanted && text.find(':') == text.npos) return text;
    if (wanted && second.empty()) second = text;
  }
  if (!second.empty()) return second;
  if (interface.empty()) return "127.0.0.1";
  throw std::runtime_error("--interface: '" + interface + "' has no IP address on host " + OwnHostName() + "; it has " +
                           (names.empty() ? "none" : names));
}

std::string OwnPlace() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char network[64] = "";
  const ssize_t n = readlink("/proc/self/ns/net", network, sizeof network);
  return boot + " " + std::string(network, size_t(n > 0 ? n : 0));
}

std::string OwnHostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::vector<int> FreePorts(int64_t n) {
  std::vector<int> sockets, ports;
  std::string wrong;
  for (int64_t i = 0; i < n && wrong.empty(); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at = {};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_ANY);
    const bool good =
        fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 && getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
    if (!good) wrong = std::string("cannot find a free port: ") + std::strerror(errno);
    if (fd >= 0) sockets.push_back(fd);
    ports.push_back(ntohs(at.sin_port));
  }
  for (int fd : sockets) close(fd);
  if (!wrong.empty()) throw std::runtime_error(wrong);
  return ports;
}

}  // namespace thalweg::cli
