#include "loopback.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace thalweg::grpc_transport {
namespace {

constexpr int kListens = 0x0A, kTimeWait = 0x06;  // states in /proc/net/tcp; the second has no owner any more

// A row of /proc/net/tcp. Addresses are in its words, each as the machine's own byte order has it.
struct Row {
  std::string local;
  unsigned local_port = 0, remote_port = 0, state = 0;
};

// An IPv4 address as it is, however a socket came by it.
std::string Plain(std::string hex) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  return hex.size() == 32 && hex.starts_with(kMapped) ? hex.substr(kMapped.size()) : hex;
}

// Empty: it is no address.
std::string HexOf(const std::string& host) {
  uint32_t words[4];
  const int n = inet_pton(AF_INET, host.c_str(), words) == 1 ? 1 : inet_pton(AF_INET6, host.c_str(), words) == 1 ? 4 : 0;
  std::string hex;
  char word[9];
  for (int i = 0; i < n; ++i) hex.append(word, size_t(std::snprintf(word, sizeof word, "%08X", unsigned(words[i]))));
  return Plain(hex);
}

bool LoopbackOrAny(const std::string& hex) {
  if (hex.size() == 8) return hex == "00000000" || hex.substr(6) == "7F";
  return hex == "00000000000000000000000000000000" || hex == "00000000000000000000000001000000";
}

template <typename F>
void Look(const char* file, const F& wanted, bool* mine, bool* others) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    Row row;
    char local[40];
    unsigned uid;
    // slot: local:port remote:port state queues timer retransmits uid ...
    if (std::sscanf(line.c_str(), " %*d: %39[0-9A-F]:%x %*[0-9A-F]:%x %x %*s %*s %*s %u", local, &row.local_port, &row.remote_port,
                    &row.state, &uid) != 5) {
      continue;
    }
    row.local = Plain(local);
    if (row.state != kTimeWait && wanted(row)) (uid == geteuid() ? *mine : *others) = true;
  }
}

// Of all such sockets: where one of them is another user's, it is.
template <typename F>
Owner OwnerOf(const F& wanted) {
  bool mine = false, others = false;
  Look("/proc/net/tcp", wanted, &mine, &others);
  Look("/proc/net/tcp6", wanted, &mine, &others);
  return others ? Owner::kOther : mine ? Owner::kMe : Owner::kNobody;
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

Owner OwnerOfListener(int port) {
  return OwnerOf([port](const Row& r) { return r.state == kListens && int(r.local_port) == port && LoopbackOrAny(r.local); });
}

Owner OwnerOfPeer(const HostPort& peer, int port) {
  const std::string address = HexOf(peer.host);
  if (address.empty()) return Owner::kNobody;
  return OwnerOf([&](const Row& r) {
    return r.state != kListens && r.local == address && int(r.local_port) == peer.port && int(r.remote_port) == port;
  });
}

}  // namespace thalweg::grpc_transport
