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

// In the words of /proc/net/tcp, each as the machine's own byte order has it.
bool LoopbackOrAny(std::string_view hex) {
  if (hex.size() == 8) return hex == "00000000" || hex.substr(6) == "7F";
  if (hex == "00000000000000000000000000000000" || hex == "00000000000000000000000001000000") return true;
  return hex.substr(0, 24) == "0000000000000000FFFF0000" && hex.substr(30) == "7F";
}

void Look(const char* file, int port, bool listens, bool* mine, bool* others) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    char local[40], remote[40];
    unsigned local_port, remote_port, state, uid;
    // slot: local:port remote:port state queues timer retransmits uid ...
    if (std::sscanf(line.c_str(), " %*d: %39[0-9A-F]:%x %39[0-9A-F]:%x %x %*s %*s %*s %u", local, &local_port, remote, &remote_port, &state,
                    &uid) != 6) {
      continue;
    }
    if (int(local_port) != port || (state == kListens) != listens || state == kTimeWait || !LoopbackOrAny(local)) continue;
    (uid == geteuid() ? *mine : *others) = true;
  }
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

Owner OwnerOfPort(int port, bool listens) {
  bool mine = false, others = false;
  Look("/proc/net/tcp", port, listens, &mine, &others);
  Look("/proc/net/tcp6", port, listens, &mine, &others);
  return others ? Owner::kOther : mine ? Owner::kMe : Owner::kNobody;
}

}  // namespace thalweg::grpc_transport
