#include "address.h"

#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>

#include "../common/collective_call.h"
#include "../common/lookup.h"
#include "../common/setting.h"

namespace thalweg::ring {
namespace {

using common::Fail;
using common::NumberSetting;
using common::ParseNumber;

constexpr std::chrono::seconds kLookup{5};

std::string Hex(uint64_t v) {
  char digits[17] = {};
  for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
  return digits;
}

SocketAddress Copied(const sockaddr* from, socklen_t size) {
  SocketAddress a;
  std::memcpy(a.get(), from, size);
  a.size = size;
  return a;
}

// Returns false for an address that other hosts cannot use: another family, or IPv6 of the link
// alone.
bool Usable(const sockaddr* a) {
  if (!a) return false;
  if (a->sa_family == AF_INET) return true;
  if (a->sa_family != AF_INET6) return false;
  sockaddr_in6 six = {};
  std::memcpy(&six, a, sizeof six);
  return !IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr);
}

// Finds our address on the default route. Connecting a datagram socket looks the route up and sends
// nothing; the addresses are for documentation, and no host has them.
bool OnDefaultRoute(SocketAddress* out) {
  for (const char* nobody : {"192.0.2.1:9", "[2001:db8::1]:9"}) {
    SocketAddress to;
    if (!to.Parse(nobody)) continue;
    const int fd = socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    *out = SocketAddress();
    const bool good = connect(fd, to.get(), to.size) == 0 && getsockname(fd, out->get(), &out->size) == 0 && Usable(out->get());
    close(fd);
    if (good) return true;
  }
  return false;
}

// Returns an address of the interface. An empty name means the first interface that is up and is no
// loopback; if there is none, the result is the loopback address.
SocketAddress OfInterface(const std::string& interface) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) Fail(TW_UNAVAILABLE, std::string("cannot list the network interfaces: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, freeifaddrs);
  std::string names;
  std::vector<SocketAddress> sixes;
  for (const ifaddrs* i = raw; i; i = i->ifa_next) {
    if (!Usable(i->ifa_addr)) continue;
    const bool four = i->ifa_addr->sa_family == AF_INET;
    const SocketAddress a = Copied(i->ifa_addr, four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    names += (names.empty() ? "'" : ", '") + std::string(i->ifa_name) + "'";
    const bool wanted = interface.empty() ? (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) : interface == i->ifa_name;
    if (wanted && four) return a;
    if (wanted) sixes.push_back(a);
  }
  if (!sixes.empty()) return sixes[0];
  if (!interface.empty()) {
    Fail(TW_INVALID_ARGUMENT, "setting 'interface' is '" + interface + "', and no interface of that name has an IP address; there are " +
                                  (names.empty() ? "none" : names));
  }
  SocketAddress loopback;
  loopback.Parse("127.0.0.1:0");
  return loopback;
}

SocketAddress OwnAddress(const Settings& settings) {
  if (settings.address.empty()) {
    SocketAddress found;
    if (settings.interface.empty() && OnDefaultRoute(&found)) return found;
    return OfInterface(settings.interface);
  }
  int error = 0;
  const common::AddressList all = common::Lookup(settings.address, "0", 0, kLookup, &error);
  if (!all) {
    Fail(TW_INVALID_ARGUMENT, "setting 'address' is '" + settings.address + "', which cannot be found: " + gai_strerror(error) +
                                  "; give a name or a number of this host");
  }
  return Copied(all->ai_addr, all->ai_addrlen);
}

std::string PortsText(const Settings& s) {
  if (s.first_port == 0) return "any port";
  if (s.first_port == s.last_port) return "port " + std::to_string(s.first_port);
  return "ports " + std::to_string(s.first_port) + "-" + std::to_string(s.last_port);
}

}  // namespace

Settings SettingsOf(const tw_host* host) {
  Settings s;
  s.address = common::Setting(host, "address");
  s.interface = common::Setting(host, "interface");
  s.window = NumberSetting<uint64_t>(host, "window", s.window, 4096, 1 << 30) / 64 * 64;
  s.shared_window = NumberSetting<uint64_t>(host, "shared_window", s.shared_window, 64, 1 << 30);
  s.lost_after = NumberSetting<uint32_t>(host, "lost_after_ms", s.lost_after, 1000, 3'600'000);
  s.host = common::Setting(host, "host");
  const std::string folder = common::Setting(host, "folder"), levels = common::Setting(host, "levels");
  if (!folder.empty()) s.folder = folder;
  if (!levels.empty() && levels != "auto" && levels != "off") {
    Fail(TW_INVALID_ARGUMENT, "setting 'levels' is '" + levels + "'; it must be auto or off");
  }
  s.levels = levels != "off";
  const std::string ports = common::Setting(host, "port");
  if (ports.empty()) return s;
  const size_t dash = ports.find('-');
  const std::string_view first = std::string_view(ports).substr(0, dash);
  const std::string_view last = dash == ports.npos ? first : std::string_view(ports).substr(dash + 1);
  if (!ParseNumber(first, &s.first_port) || !ParseNumber(last, &s.last_port) || s.first_port == 0 || s.last_port < s.first_port ||
      s.last_port > 65535) {
    Fail(TW_INVALID_ARGUMENT, "setting 'port' is '" + ports + "'; it must be a port, such as 4000, or a range, such as 4000-4099");
  }
  return s;
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&bytes_)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&bytes_)->sin6_port = htons(port);
}

std::string SocketAddress::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(bytes_);
    inet_ntop(AF_INET, &four.sin_addr, host, sizeof host);
    return std::string(host) + ":" + std::to_string(ntohs(four.sin_port));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(bytes_);
  inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof host);
  return "[" + std::string(host) + "]:" + std::to_string(ntohs(six.sin6_port));
}

bool SocketAddress::Parse(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon == text.npos || !ParseNumber(std::string_view(text).substr(colon + 1), &port)) return false;
  bytes_ = {};
  if (text[0] == '[') {
    if (colon < 2 || text[colon - 1] != ']') return false;
    auto& six = reinterpret_cast<sockaddr_in6&>(bytes_);
    six.sin6_family = AF_INET6;
    size = sizeof six;
    if (inet_pton(AF_INET6, text.substr(1, colon - 2).c_str(), &six.sin6_addr) != 1) return false;
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(bytes_);
    four.sin_family = AF_INET;
    size = sizeof four;
    if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &four.sin_addr) != 1) return false;
  }
  set_port(port);
  return true;
}

int Listen(const Settings& settings, SocketAddress* bound) {
  SocketAddress own = OwnAddress(settings);
  int error = 0;
  for (uint32_t port = settings.first_port; port <= settings.last_port; ++port) {
    own.set_port(uint16_t(port));
    const int fd = socket(own.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) Fail(TW_UNAVAILABLE, std::string("cannot make a socket: ") + std::strerror(errno));
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port of an ended process is free at once
    *bound = own;
    if (bind(fd, own.get(), own.size) == 0 && listen(fd, SOMAXCONN) == 0 && getsockname(fd, bound->get(), &bound->size) == 0) return fd;
    error = errno;
    close(fd);
    if (error != EADDRINUSE && error != EACCES) break;
  }
  const std::string at = own.text();
  const std::string what = "cannot listen at " + at.substr(0, at.rfind(':')) + ", " + PortsText(settings) + ": " + std::strerror(error);
  if (error == EADDRNOTAVAIL) {
    Fail(TW_INVALID_ARGUMENT, what + "; setting 'address' is '" + settings.address + "', which is no address of this host");
  }
  Fail(TW_UNAVAILABLE, what + "; give other ports by the setting 'port', one for each process on the host");
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof number, 0) != ssize_t(sizeof number))
      Fail(TW_UNAVAILABLE, std::string("no random number: ") + std::strerror(errno));
  }
  return number;
}

std::string OwnHostName() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || !name[0]) return "?";
  std::string host = name;
  std::replace(host.begin(), host.end(), ' ', '_');
  return host;
}

std::string Record::text() const {
  std::string s = "ring " + std::to_string(version) + " " + std::to_string(members) + " ";
  for (const uint64_t number : {process, token.words[0], token.words[1], door}) s += Hex(number) + " ";
  return s + std::to_string(pid) + " " + host + " " + address.text();
}

bool Record::Parse(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (words.size() < 2 || words[0] != "ring" || !ParseNumber(words[1], &version)) return false;
  if (version != kVersion) return true;
  if (words.size() != 10 || !ParseNumber(words[2], &members) || !ParseNumber(words[7], &pid)) return false;
  uint64_t* numbers[] = {&process, &token.words[0], &token.words[1], &door};
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (!ParseNumber(words[3 + i], numbers[i], 16)) return false;
  }
  host = words[8];
  return process != 0 && door != 0 && address.Parse(std::string(words[9]));
}

}  // namespace thalweg::ring
