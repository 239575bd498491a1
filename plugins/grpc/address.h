// Conversion between addresses as people write them and socket addresses. Threads: any.
#pragma once
#include <string>
#include <vector>

#include <sys/socket.h>

namespace thalweg::grpc_transport {

struct HostPort {
  std::string host;  // without brackets
  int port = -1;     // -1: the text is no valid address
};
HostPort ParseHostPort(const std::string& address);
// Returns true if only this machine can reach the host. Asks no name server: the only name that
// counts is localhost.
bool IsLoopback(const std::string& host);

// The address of a socket.
struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};
// Resolves a name or number; lists each address once. Returns empty on failure, with the reason in
// *why; waits for name servers for at most five seconds.
std::vector<SocketAddress> AddressesOf(const HostPort& at, std::string* why);
int PortOf(const SocketAddress& a);
void SetPort(SocketAddress* a, int port);
// A number without brackets; an IPv4 address stays IPv4, even if an IPv6 socket reports it. Empty
// if the address has no network family.
std::string HostOf(const SocketAddress& a);
// "127.0.0.1:4000", "[::1]:4000".
std::string TextOf(const SocketAddress& a);
bool IsWildcard(const SocketAddress& a);

}  // namespace thalweg::grpc_transport
