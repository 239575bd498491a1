// Addresses as people write them and as sockets have them. Threads: any.
#pragma once
#include <string>
#include <vector>

#include <sys/socket.h>

namespace thalweg::grpc_transport {

struct HostPort {
  std::string host;  // without brackets
  int port = -1;     // -1: it makes no sense
};
HostPort ParseHostPort(const std::string& address);
// Whether nobody but this machine reaches it. Asks no name server: of names only localhost counts.
bool IsLoopback(const std::string& host);

// Of a socket.
struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};
// Where a name or number leads, each address once. Empty: *why says why not; name servers are waited for five seconds at most.
std::vector<SocketAddress> AddressesOf(const HostPort& at, std::string* why);
int PortOf(const SocketAddress& a);
void SetPort(SocketAddress* a, int port);
// A number, without brackets; IPv4 as it is, however a socket came by it. Empty: it is of no network.
std::string HostOf(const SocketAddress& a);
// "127.0.0.1:4000", "[::1]:4000".
std::string TextOf(const SocketAddress& a);
bool IsWildcard(const SocketAddress& a);

}  // namespace thalweg::grpc_transport
