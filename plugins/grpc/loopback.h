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
// Of the sockets of this machine with that port on a loopback address: those that listen, or those that are connected.
Owner OwnerOfPort(int port, bool listens);

}  // namespace thalweg::grpc_transport
