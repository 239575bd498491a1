// Which user is at the other end of a connection within this machine, as the kernel tells it. Threads: any.
#pragma once
#include <string>

namespace thalweg::grpc_transport {

struct HostPort {
  std::string host;  // without brackets
  int port = -1;     // -1: it makes no sense
};
HostPort ParseHostPort(const std::string& address);
// Whether nobody but this machine reaches it. Asks no name server: of names only localhost counts.
bool IsLoopback(const std::string& host);

enum class Owner { kMe, kOther, kNobody };
// Of what listens on this machine at that port of a loopback address.
Owner OwnerOfListener(int port);
// Of the socket with that address which is connected to that port.
Owner OwnerOfPeer(const HostPort& peer, int port);

}  // namespace thalweg::grpc_transport
