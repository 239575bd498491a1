#include "address.h"

#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "../common/lookup.h"

namespace thalweg::grpc_transport {
namespace {

constexpr std::chrono::seconds kPatience(5);

const in_addr* AsV4(const SocketAddress& a) {
  if (a.bytes.ss_family == AF_INET) return &reinterpret_cast<const sockaddr_in*>(&a.bytes)->sin_addr;
  if (a.bytes.ss_family != AF_INET6) return nullptr;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&a.bytes)->sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&v6) ? reinterpret_cast<const in_addr*>(v6.s6_addr + 12) : nullptr;
}

}  // namespace

HostPort ParseHostPort(const std::string& address) {
  HostPort out;
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return out;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  int port = -1;
  const char *first = address.data() + colon + 1, *last = address.data() + address.size();
  const auto [end, error] = std::from_chars(first, last, port);
  if (host.empty() || first == last || error != std::errc() || end != last || port < 0 || port > 65535) return out;
  return {host, port};
}

bool IsLoopback(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  if (host == "localhost") return true;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::vector<SocketAddress> AddressesOf(const HostPort& at, std::string* why) {
  std::vector<SocketAddress> all;
  int error = 0;
  const auto found = common::Lookup(at.host, std::to_string(at.port), AI_NUMERICSERV | AI_PASSIVE, kPatience, &error);
  if (!found) *why = std::string("its host cannot be found: ") + gai_strerror(error);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    SocketAddress& one = all.emplace_back();
    std::memcpy(&one.bytes, a->ai_addr, one.size = a->ai_addrlen);
    for (size_t i = 0; i + 1 < all.size(); ++i) {
      if (TextOf(all[i]) != TextOf(one)) continue;
      all.pop_back();
      break;
    }
  }
  return all;
}

int PortOf(const SocketAddress& a) {
  if (a.bytes.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&a.bytes)->sin_port);
  return a.bytes.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&a.bytes)->sin6_port) : -1;
}

void SetPort(SocketAddress* a, int port) {
  if (a->bytes.ss_family == AF_INET) reinterpret_cast<sockaddr_in*>(&a->bytes)->sin_port = htons(uint16_t(port));
  if (a->bytes.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&a->bytes)->sin6_port = htons(uint16_t(port));
}

std::string HostOf(const SocketAddress& a) {
  char text[INET6_ADDRSTRLEN] = "";
  if (const in_addr* v4 = AsV4(a)) {
    inet_ntop(AF_INET, v4, text, sizeof text);
  } else if (a.bytes.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&a.bytes)->sin6_addr, text, sizeof text);
  }
  return text;
}

std::string TextOf(const SocketAddress& a) {
  const std::string host = HostOf(a);
  return (host.find(':') == host.npos ? host : "[" + host + "]") + ":" + std::to_string(PortOf(a));
}

bool IsWildcard(const SocketAddress& a) {
  const std::string host = HostOf(a);
  return host == "0.0.0.0" || host == "::";
}

}  // namespace thalweg::grpc_transport
