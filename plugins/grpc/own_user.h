// Processes of the same user on the same machine connect through a Unix socket beside the TCP
// address. Its name is abstract, so it belongs to the network namespace of the address, and
// disappears with the process. The kernel tells each end the identity of the other (SO_PEERCRED,
// taken at connect and listen). Threads: any.
#pragma once
#include <string>

#include "address.h"

namespace thalweg::grpc_transport {

// "@thalweg.grpc.127.0.0.1:4000", where the @ stands for the zero byte of an abstract name.
SocketAddress OwnUserSocket(const SocketAddress& tcp);
// Returns true if the process that has connected, or listens there, has this process's effective
// user.
bool IsOwnUser(int fd);

enum class Met { kYes, kOther, kNobody, kFailed };
// Connects to the listener at that address of this machine. kYes: *out_fd is connected, and owned
// by the caller. kOther: the listener belongs to another user. kFailed: *why names the local
// failure.
Met MeetOwnUser(const HostPort& at, int* out_fd, std::string* why);
// Returns true if a process listens there by TCP. REQUIRES: a host of this machine.
bool SomebodyListens(const HostPort& at);

}  // namespace thalweg::grpc_transport
